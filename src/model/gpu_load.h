#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

// The load that people outside the queue put on a GPU, and the rules by which jobs are placed
// beside it (R3.3).

namespace gpu_platform::model {

// What processes of no job make of a GPU, in coarse steps, so that it is told seldom. Rounded
// against the GPU.
struct GpuLoad {
  std::uint32_t utilization_percent = 0;  // mean over about a minute in which no job held it
  base::Bytes memory_free;

  friend bool operator==(const GpuLoad&, const GpuLoad&) = default;
};

// The site's rules. Where they are on, a GPU with unmanaged processes is not kept from work: it
// gets jobs while it passes the limits, and the least loaded GPUs are taken first. The defaults are
// those of the requirement.
struct LoadRules {
  bool is_on = false;
  std::uint32_t min_memory_mb = 8000;  // MiB that must be free, to get jobs
  std::uint32_t max_utilization = 50;  // percent, to get jobs
  std::uint32_t memory_weight = 60;    // of the score, relative to the next
  std::uint32_t utilization_weight = 40;
  // A node below both is idle, and its GPUs go before those of the others. Percent, the means of
  // its GPUs.
  std::uint32_t idle_utilization = 30;
  std::uint32_t idle_memory = 50;

  friend bool operator==(const LoadRules&, const LoadRules&) = default;
};

// Returns the availability in thousandths, 1000 of an idle GPU: memory_weight × the free share of
// the memory + utilization_weight × the idle share of the time, over the sum of the weights.
std::uint32_t availability(const GpuLoad& load, base::Bytes memory, const LoadRules& rules);

// Returns why the rules give the GPU no job, in words for people; empty: they do.
std::string why_too_loaded(const GpuLoad& load, const LoadRules& rules);

// How a GPU of an allocation was chosen, for those that were chosen by load.
struct GpuChoice {
  std::uint32_t node_place = 0;  // of its node in the allocation
  std::uint32_t index = 0;
  std::uint32_t availability = 1000;  // thousandths
  GpuLoad load;

  friend bool operator==(const GpuChoice&, const GpuChoice&) = default;
};

}  // namespace gpu_platform::model
