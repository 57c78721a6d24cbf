#include "views/surplus_parts.h"
#include "model/job_spec.h"

#include <algorithm>

namespace gpu_platform::views {

bool accepts_pool(const model::JobSpec& spec, const scheduling::Pools& pools,
                  const std::string& name, const scheduling::GpusByType& gpus_by_type) {
  return !pools.is_by_type() || std::ranges::any_of(gpus_by_type, [&](const auto& of_type) {
    const auto* const pool = pools.of_type(of_type.first);
    return pool != nullptr && pool->first == name &&
           scheduling::accepts_type(spec.request, of_type.first);
  });
}

scheduling::ByPool<scheduling::SurplusParts> surplus_parts_of(
    const controller::Snapshot& snapshot, const scheduling::Pools& pools,
    const scheduling::GpusByType& gpus_by_type) {
  scheduling::ByPool<scheduling::SurplusParts> parts;
  for (const auto& [name, lending] : pools.all()) {
    const scheduling::PoolBalance& pool = lending.balance();
    if (!pool.guarantees().has_weights) continue;
    scheduling::WaitingGpus waiting;
    snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state != model::JobState::kQueued) return;
      if (!accepts_pool(*job.spec, pools, name, gpus_by_type)) return;
      const auto ask = scheduling::pool_ask(pool.guarantees(), *snapshot.policy, *job.spec);
      waiting[ask.holder] += ask.gpus;
    });
    parts.emplace(name, scheduling::surplus_parts(pool, waiting));
  }
  return parts;
}

}  // namespace gpu_platform::views
