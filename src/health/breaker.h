#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The circuit breaker: how many GPUs health may take out on its own. A wrong rule or a storm must
// not take a cluster down. Beyond the limit judging goes on and nothing is done.

namespace gpu_platform::health {

struct BreakerLimits {
  std::uint32_t percent = 10;  // of the GPUs of a type
  // May be out, however few there are: one, and two from one whole machine of eight on, where ten
  // percent would let the first suspect hide the second.
  std::size_t at_least = 1;
  std::size_t at_least_of_many = 2;
  std::size_t many = 8;
  std::size_t at_most = 0;  // 0: no limit besides the percent
};

// Returns how many GPUs of a type with so many may be out at once.
std::size_t max_out(const BreakerLimits& limits, std::size_t of_type);

// How many there are, and how many of them health keeps out now, the GPU in question not counted.
struct BreakerCounts {
  std::size_t of_type = 0;
  std::size_t out_of_type = 0;
  std::size_t of_class = 0;  // GPUs of nodes of the same class; 0: not known
  std::size_t out_of_class = 0;
};

struct BreakerAnswer {
  bool is_allowed = true;
  std::string text;  // why not, and what helps; empty if it is allowed
};

// Whether one more GPU may be taken out. Recoveries do not ask.
BreakerAnswer ask_breaker(const BreakerLimits& limits, const BreakerCounts& counts,
                          std::string_view gpu_type);

}  // namespace gpu_platform::health
