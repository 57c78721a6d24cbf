#include "controller/promised_start.h"

#include "scheduling/quota/subjects.h"

namespace gpu_platform::controller {

namespace {

// Returns whether places in the queue change with usage, or whether jobs of lower rank may have
// others stopped, which then wait again where they stood.
bool depends_on_use(const model::Policy& policy) {
  if (scheduling::guarantees_anything(*policy.organisation)) return true;
  return policy.order == model::QueueOrder::kFairShare ||
         (policy.order == model::QueueOrder::kWeighted && policy.weights.fair_share != 0);
}

// Returns whether a job may become overdue before that start and then go before it. One that is
// submitted from now on becomes so after all that are there.
bool may_be_passed_by_overdue(const State& state, const scheduling::PlannedStart& planned) {
  const model::Policy& policy = *state.policy;
  if (policy.overdue_after == base::Duration()) return false;
  const bool is_by_class = policy.order == model::QueueOrder::kPriority;
  const model::Job* job = find_job(state, planned.job);
  if (is_by_class && job != nullptr && job->overdue_since.is_set()) return false;
  const scheduling::StarvationQueue& waiting = state.books->starvation_queue;
  if (waiting.has_passed()) return true;
  const auto next = waiting.next();
  if (!next || (is_by_class && next->job == planned.job)) return false;
  return next->since + policy.overdue_after <= planned.slot.start;
}

}  // namespace

const scheduling::PlannedStart* promised_start(
    const State& state, const std::vector<scheduling::PlannedStart>& planned) {
  if (planned.empty() || depends_on_use(*state.policy)) return nullptr;
  return may_be_passed_by_overdue(state, planned.front()) ? nullptr : &planned.front();
}

}  // namespace gpu_platform::controller
