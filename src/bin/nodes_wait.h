#pragma once

#include <chrono>
#include <functional>

namespace gpu_platform::bin {

// A driver that no process holds open takes seconds per GPU to load. After this time the daemon
// serves without the nodes that have not answered, and adds them when they do.
inline constexpr std::chrono::seconds kDiscoveryLimit{60};

// Returns whether it was so within the limit; gives up when the process is to end. `is_so_within`
// waits for that time; `must_end` may be null.
inline bool are_known_in_time(const std::function<bool(std::chrono::milliseconds)>& is_so_within,
                              const std::function<bool()>& must_end,
                              std::chrono::milliseconds limit = kDiscoveryLimit) {
  constexpr std::chrono::milliseconds kStep{200};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!is_so_within(kStep)) {
    const bool is_over = std::chrono::steady_clock::now() >= end;
    if (is_over || (must_end && must_end())) return false;
  }
  return true;
}

}  // namespace gpu_platform::bin
