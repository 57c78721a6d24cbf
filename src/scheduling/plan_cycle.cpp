#include "scheduling/plan_cycle.h"

#include <utility>

#include "base/check.h"
#include "scheduling/cycle/cycle.h"

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
    case Stage::kYield:
      return "yield";
  }
  CHECK(false);
  std::unreachable();
}

Plan plan_cycle(Books& books, const model::Policy& policy, const CycleOptions& options) {
  CHECK(books->queue.empty() || books->queue.is_ordered_by(policy));
  return Cycle(books, policy, options).run();
}

Plan plan_supposed(Books& books, const Supposition& supposed, const model::Policy& policy,
                   const CycleOptions& options) {
  CHECK(supposed.queue.empty() || supposed.queue.is_ordered_by(policy));
  return Cycle(books, supposed, policy, options).run();
}

Plan CycleCache::plan(Books& books, const model::Policy& policy, const CycleOptions& options) {
  Seen seen{books.version(), policy, options.stages, options.pass_unplaceable};
  const bool is_due = plan_.look_again_at && *plan_.look_again_at <= options.now;
  if (seen_ == seen && !is_due) return plan_;
  Plan plan = plan_cycle(books, policy, options);
  // A plan with starts or preemptions is not kept: they change what the next cycle sees, or the
  // caller could not apply them and has to get them again.
  const bool changes_something = !plan.starts.empty() || !plan.preemptions.empty() ||
                                 !plan.yields.empty() || !plan.void_holds.empty();
  if (changes_something || !plan.complete) {
    seen_.reset();
    return plan;
  }
  seen_ = std::move(seen);
  plan_ = plan;
  plan_.unchanged = true;
  return plan;
}

}  // namespace gpu_platform::scheduling
