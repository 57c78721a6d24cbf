#include "scheduling/plan_cycle.h"

#include <utility>

#include "base/check.h"
#include "scheduling/cycle.h"

namespace gpu_platform::scheduling {

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kOrder:
      return "order";
    case Stage::kQuota:
      return "quota";
    case Stage::kPlace:
      return "place";
    case Stage::kBackfill:
      return "backfill";
    case Stage::kPreempt:
      return "preempt";
    case Stage::kLend:
      return "lend";
  }
  CHECK(false);
  std::unreachable();
}

// A plan with starts or preemptions is not kept: they change what the next cycle sees, or the
// caller could not apply them and has to get them again.
void CycleCache::remember(const Seen& seen, const Plan& plan) {
  if (!plan.starts.empty() || !plan.preemptions.empty() || !plan.yields.empty() ||
      !plan.void_claims.empty() || !plan.complete) {
    clear();
    return;
  }
  seen_ = seen;
  plan_ = plan;
  plan_.unchanged = true;
}

Plan plan_cycle(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
                const CycleOptions& options) {
  CHECK(queue.empty() || queue.is_ordered_by(policy));
  if (options.cache == nullptr) return Cycle(cluster, queue, policy, options).run();
  const CycleCache::Seen seen{
      .cluster_version = cluster.version(),
      .queue_version = queue.version(),
      .running_version = options.running == nullptr ? 0 : options.running->version(),
      .claims_version = options.claims == nullptr ? 0 : options.claims->version(),
      .quotas_version = options.quotas == nullptr ? 0 : options.quotas->version(),
      .windows_version = options.windows == nullptr ? 0 : options.windows->version(),
      .lending_version = options.lending == nullptr ? 0 : options.lending->version(),
      .policy = policy,
      .stages = options.stages,
      .pass_unplaceable = options.pass_unplaceable};
  if (const Plan* same = options.cache->find(seen, options.now)) return *same;
  Plan plan = Cycle(cluster, queue, policy, options).run();
  options.cache->remember(seen, plan);
  return plan;
}

}  // namespace gpu_platform::scheduling
