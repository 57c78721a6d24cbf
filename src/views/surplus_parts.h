#pragma once

#include <string>

#include "controller/snapshot.h"
#include "model/job.h"
#include "scheduling/pools/pools.h"
#include "scheduling/pools/surplus.h"

// The shares of GPUs beyond guarantees, as of a snapshot.

namespace gpu_platform::views {

// Returns whether the job accepts GPUs of the pool of that name.
bool accepts_pool(const model::JobSpec& spec, const scheduling::Pools& pools,
                  const std::string& name, const scheduling::GpusByType& gpus_by_type);

// Returns what each holder has and may have of the GPUs beyond guarantees, of each pool in which a
// weight is set. A waiting job counts in each pool whose GPUs it accepts. Cost: all jobs.
scheduling::ByPool<scheduling::SurplusParts> surplus_parts_of(
    const controller::Snapshot& snapshot, const scheduling::Pools& pools,
    const scheduling::GpusByType& gpus_by_type);

}  // namespace gpu_platform::views
