#include "views/planned_starts.h"

#include <limits>

#include "scheduling/plan_cycle.h"

namespace gpu_platform::views {

namespace {

PlannedStarts starts_of(const std::vector<scheduling::PlannedStart>& planned_starts) {
  PlannedStarts starts;
  for (const scheduling::PlannedStart& each : planned_starts) starts[each.job] = each.slot.start;
  return starts;
}

}  // namespace

PlannedStarts last_planned_starts(const controller::Snapshot& snapshot) {
  return snapshot.planned_starts == nullptr ? PlannedStarts() : starts_of(*snapshot.planned_starts);
}

model::JobId guaranteed_start(const controller::Snapshot& snapshot) {
  return snapshot.promised;
}

PlannedStarts plan_all_starts(PlanningView& view) {
  model::Policy policy = *view.snapshot().policy;
  if (policy.backfill_depth == 0) return {};
  policy.backfill_depth = std::numeric_limits<std::uint32_t>::max();
  const base::Instant now = view.snapshot().at;
  const scheduling::Plan plan =
      scheduling::plan_cycle(view.books(), policy, PlanningView::options(now));
  PlannedStarts planned_starts = starts_of(plan.planned_starts);
  for (const scheduling::Start& start : plan.starts) planned_starts[start.job] = now;
  return planned_starts;
}

}  // namespace gpu_platform::views
