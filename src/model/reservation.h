#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::model {

// A reservation's part of one node.
struct ReservationPart {
  NodeId node;
  std::uint64_t gpus = 0;   // bit i: the GPU of index i
  bool whole_node = false;  // all GPUs that it had, and its CPUs and memory

  friend bool operator==(const ReservationPart&, const ReservationPart&) = default;
};

// A reservation: from `begin` until before `end` nobody but those named holds its
// GPUs. Which these are is chosen when it is made, and fixed.
struct Reservation {
  std::string name;
  base::Instant begin;
  base::Instant end;
  bool maintenance = false;            // for nobody; else teams or users are named
  std::vector<std::string> teams;      // ascending; with all teams below them
  std::vector<std::string> users;      // ascending
  std::vector<ReservationPart> parts;  // ascending node
  std::vector<AttemptId> let_finish;   // ran when it was made, and may run into it; ascending
  std::string made_by;
  base::Instant made_at;

  std::uint32_t gpu_count() const;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// One that begins later, or lasts longer, is refused.
inline constexpr base::Duration kLongestReservation = base::hours(90 * 24);
inline constexpr base::Duration kFarthestReservation = base::hours(366 * 24);
inline constexpr std::size_t kMaxReservations = 100;
inline constexpr std::size_t kMaxReservationUsers = 64;  // and teams, and so many nodes by name
inline constexpr std::size_t kMaxReservationNodes = 4096;

// Both need some GPU, or all of a node.
bool overlap(const ReservationPart& a, const ReservationPart& b);
// Of two that have a moment and a part in common.
bool overlap(const Reservation& a, const Reservation& b);

// Letters, digits, '-', '_' and '.', 1 to 64 of them, first a letter or digit.
bool is_reservation_name(const std::string& name);

}  // namespace gpu_platform::model
