#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::model {

// A window's part of one node.
struct WindowPart {
  NodeId node;
  std::uint64_t gpus = 0;   // bit i: the GPU of index i
  bool whole_node = false;  // all GPUs that it had, and its CPUs and memory

  friend bool operator==(const WindowPart&, const WindowPart&) = default;
};

// A reservation of a time window: from `begin` until before `end` nobody but those named holds its
// GPUs. Which these are is chosen when it is made, and fixed.
struct Window {
  std::string name;
  base::Instant begin;
  base::Instant end;
  bool maintenance = false;           // for nobody; else teams or users are named
  std::vector<std::string> teams;     // ascending; with all teams below them
  std::vector<std::string> users;     // ascending
  std::vector<WindowPart> parts;      // ascending node
  std::vector<AttemptId> let_finish;  // ran when it was made, and may run into it; ascending
  std::string made_by;
  base::Instant made_at;

  std::uint32_t gpu_count() const;

  friend bool operator==(const Window&, const Window&) = default;
};

// One that begins later, or lasts longer, is refused.
inline constexpr base::Duration kLongestWindow = base::hours(90 * 24);
inline constexpr base::Duration kFarthestWindow = base::hours(366 * 24);
inline constexpr std::size_t kMostWindows = 100;
inline constexpr std::size_t kMostWindowUsers = 64;  // and teams, and so many nodes by name
inline constexpr std::size_t kMostWindowNodes = 4096;

// Both need some GPU, or all of a node.
bool overlap(const WindowPart& a, const WindowPart& b);
// Of two that have a moment and a part in common.
bool overlap(const Window& a, const Window& b);

// Letters, digits, '-', '_' and '.', 1 to 64 of them, first a letter or digit.
bool is_window_name(const std::string& name);

}  // namespace gpu_platform::model
