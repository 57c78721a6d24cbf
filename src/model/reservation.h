#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// How often a reservation comes again: at the same time of the day in UTC, which has no daylight
// saving. So each pattern repeats itself every week, and two of them can be compared for all time.
enum class Repeat : std::uint8_t { kNever, kHourly, kDaily, kWeekdays, kWeekends, kWeekly };
inline constexpr std::size_t kRepeats = 6;
std::string_view to_string(Repeat repeat);  // "weekdays"
std::optional<Repeat> parse_repeat(std::string_view text);

// It lasts from `begin` until before `end`.
struct Occurrence {
  base::Instant begin;
  base::Instant end;

  friend bool operator==(const Occurrence&, const Occurrence&) = default;
};

// A reservation: from `begin` until before `end` only jobs of the named teams and users hold its
// GPUs, and again at each occurrence after that. The GPUs are chosen when it is made; they are the
// same in all occurrences.
struct Reservation {
  std::string name;
  base::Instant begin;  // of the occurrence that has not ended yet
  base::Instant end;
  bool maintenance = false;            // for no jobs; else teams or users are named
  std::vector<std::string> teams;      // ascending; with all teams below them
  std::vector<std::string> users;      // ascending
  std::vector<ReservationPart> parts;  // ascending node
  std::vector<AttemptId> let_finish;   // ran when it was made, and may run into it; ascending
  std::string made_by;
  base::Instant made_at;
  Repeat repeat = Repeat::kNever;
  base::Instant last_begin;   // no occurrence begins later; unset: they never end
  base::Duration utc_offset;  // of the days of kWeekdays and kWeekends

  base::Duration length() const { return end - begin; }
  std::uint32_t gpu_count() const;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// One that begins later, or lasts longer, is refused.
inline constexpr base::Duration kLongestReservation = base::hours(90 * 24);
inline constexpr base::Duration kFarthestReservation = base::hours(366 * 24);
inline constexpr std::size_t kMaxReservations = 100;
inline constexpr std::size_t kMaxReservationUsers = 64;  // and teams, and so many nodes by name
inline constexpr std::size_t kMaxReservationNodes = 4096;
inline constexpr std::uint32_t kMaxOccurrences = 10'000;  // by count

// Both need some GPU, or all of a node.
bool overlap(const ReservationPart& a, const ReservationPart& b);
// Returns whether the two have a moment and a part in common, in any of their occurrences.
bool overlap(const Reservation& a, const Reservation& b);

// The occurrences from the one that has not ended yet on. Cost: constant.
//
// Returns the first one that ends after `at`; nothing if there is none.
std::optional<Occurrence> occurrence_after(const Reservation& reservation, base::Instant at);
// Returns the one that lasts at that moment.
std::optional<Occurrence> occurrence_at(const Reservation& reservation, base::Instant at);
// Returns the first one that has a moment in common with the span.
std::optional<Occurrence> occurrence_between(const Reservation& reservation, base::Instant begin,
                                             base::Instant end);
// Returns the first one in which something that begins at `earliest` or later and lasts for
// `needed` ends in time.
std::optional<Occurrence> occurrence_with_room(const Reservation& reservation,
                                               base::Instant earliest, base::Duration needed);
// Returns nothing if they never end.
std::optional<Occurrence> last_occurrence(const Reservation& reservation);
// Returns when the count-th occurrence begins, the present one being the first.
base::Instant begin_of_occurrence(const Reservation& reservation, std::uint32_t count);
// Returns the first occurrence of `a` that has a moment in common with one of `b`. Cost: the
// occurrences of two weeks.
std::optional<Occurrence> first_common(const Reservation& a, const Reservation& b);
// Returns whether one may begin then: kWeekdays and kWeekends have their days.
bool is_day_of(const Reservation& reservation, base::Instant begin);
// The time between two occurrences at least, so the longest that each may last.
base::Duration least_period(Repeat repeat);

// Letters, digits, '-', '_' and '.', 1 to 64 of them, first a letter or digit.
bool is_reservation_name(const std::string& name);

}  // namespace gpu_platform::model
