#include "scheduling/plan_cycle.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

namespace {

class Cycle {
 public:
  Cycle(Cluster& cluster, const WaitingQueue& queue, const CycleOptions& options)
      : trial_(cluster), queue_(queue), options_(options) {}

  Plan run();

 private:
  struct Row {
    Stage stage;
    void (Cycle::*run)();
  };
  static const Row kRows[];

  void order() { is_ordered_ = true; }
  void place_in_order();
  // False when the cycle ends with this job.
  bool consider(const WaitingJob& job);
  bool is_known_unplaceable(const model::ResourceRequest& request) const;

  Trial trial_;
  const WaitingQueue& queue_;
  const CycleOptions& options_;
  Plan plan_;
  bool is_ordered_ = false;
  // Requests found to fit no node that is up, each once: a queue may be full of equal ones.
  std::vector<const model::ResourceRequest*> unplaceable_;
};

// The one list of stages. quota stands between order and place; reserve, backfill, preempt and
// defragment follow place, each with what the earlier ones left in the trial and the plan.
const Cycle::Row Cycle::kRows[] = {
    {Stage::kOrder, &Cycle::order},
    {Stage::kPlace, &Cycle::place_in_order},
};

Plan Cycle::run() {
  for (const auto& [stage, run_stage] : kRows) {
    if (!options_.stages.has(stage)) continue;
    if (options_.observer != nullptr) options_.observer->begin(stage);
    (this->*run_stage)();
    if (options_.observer != nullptr) options_.observer->end(stage);
  }
  return std::move(plan_);
}

void Cycle::place_in_order() {
  const auto visit = [this](const WaitingJob& job) { return consider(job); };
  if (is_ordered_) {
    queue_.for_each_while(visit);
  } else {
    queue_.for_each_by_id_while(visit);
  }
}

bool Cycle::consider(const WaitingJob& job) {
  if (plan_.starts.size() == options_.max_starts) {
    plan_.complete = false;
    return false;
  }
  const model::ResourceRequest& request = job.spec->request;
  if (is_known_unplaceable(request)) return true;
  std::optional<model::Allocation> allocation = place(trial_.cluster(), request);
  if (allocation.has_value()) {
    trial_.take(*allocation);
    plan_.starts.push_back({job.id, *std::move(allocation), model::StartWhy::kImmediate});
    return true;
  }
  if (options_.pass_unplaceable && !some_node_up_could_hold(trial_.cluster(), request)) {
    unplaceable_.push_back(&request);
    return true;
  }
  plan_.blocked_head = job.id;
  return false;
}

bool Cycle::is_known_unplaceable(const model::ResourceRequest& request) const {
  return std::ranges::any_of(unplaceable_, [&](const auto* known) { return *known == request; });
}

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kOrder:
      return "order";
    case Stage::kPlace:
      return "place";
  }
  CHECK(false);
  std::unreachable();
}

// A plan with starts is not kept: they change the cluster, or the caller could not apply them and
// has to get them again.
void CycleCache::remember(const Seen& seen, const Plan& plan) {
  if (!plan.starts.empty() || !plan.complete) {
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
  if (options.cache == nullptr) return Cycle(cluster, queue, options).run();
  const CycleCache::Seen seen{.cluster_version = cluster.version(),
                              .queue_version = queue.version(),
                              .policy = policy,
                              .stages = options.stages,
                              .pass_unplaceable = options.pass_unplaceable};
  if (const Plan* same = options.cache->find(seen)) return *same;
  Plan plan = Cycle(cluster, queue, options).run();
  options.cache->remember(seen, plan);
  return plan;
}

}  // namespace gpu_platform::scheduling
