#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "health/verdict.h"
#include "model/evidence.h"

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

// How health keeps a GPU from work, as far as the breaker counts it. Ascending.
enum class Outage : std::uint8_t {
  kNone,      // it works, or gets no new work for as long as heat lasts
  kDegraded,  // it still runs jobs that accept it
  kOut,
};
Outage outage_of(Action action);

// A GPU as the breaker sees it.
struct BreakerGpu {
  Outage outage = Outage::kNone;  // in force
  bool is_proven = false;         // see is_proven()
  bool is_of_class = false;       // in the node class of the GPU in question
};

// Returns whether the GPU is lost or does not answer, as the latest evidence says.
bool is_silent(std::span<const model::Evidence> evidence);
// Returns whether no job could run on the GPU, or its latest reset or check has failed: that is a
// fact, and no judgement that may be wrong.
bool is_proven(std::span<const model::Evidence> evidence);

// Returns whether the breaker is asked before the outage of a GPU becomes `wanted`. It is not asked
// for what it does not count, for what lasts already, and for what takes out a proven GPU.
bool needs_breaker(const BreakerGpu& gpu, Outage wanted);

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

// Adds a GPU to the counts for another one whose outage is to become `wanted`. A proven one is not
// out for the breaker. A DEGRADED one holds only further DEGRADED ones back, and the last of a node
// class.
void count(const BreakerGpu& gpu, Outage wanted, BreakerCounts& counts);

// Whether one more GPU may be taken out. Recoveries do not ask.
BreakerAnswer ask_breaker(const BreakerLimits& limits, const BreakerCounts& counts,
                          std::string_view gpu_type);

}  // namespace gpu_platform::health
