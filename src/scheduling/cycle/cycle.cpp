#include "scheduling/cycle/cycle.h"

#include <utility>

namespace gpu_platform::scheduling {

namespace {

bool always(const Cycle&) {
  return true;
}

// A job does not fit, and what happens to the jobs behind it depends on their order.
bool has_blocked_head(const Cycle& cycle) {
  return cycle.line.is_ordered && cycle.line.blocked != nullptr;
}

// With depth 0 the order is strict and no job passes a blocked head.
bool may_pass(const Cycle& cycle) {
  return cycle.cycle.depth > 0 || cycle.line.blocked == nullptr;
}

// Serves the first job that does not fit, if no places are kept.
void preempt_for_head(Cycle& cycle) {
  const WaitingJob* const head = cycle.limits.narrowed(*cycle.line.blocked, Purpose::kTurn);
  if (head == nullptr || cycle.cycle.hold_of(*head) != nullptr) return;
  cycle.fit.make_for(*head, cycle.cycle.slot_of(*head));
}

}  // namespace

// The one list of stages, with the condition under which each has work. The same object preempts in
// two ways: backfill asks it while it seeks a job's place, and if no places are kept the row here
// runs it for the head. defragment belongs before lend, with what the earlier stages left in the
// trial and the plan.
const Cycle::Row Cycle::kRows[] = {
    {Stage::kOrder, always, [](Cycle& cycle) { cycle.line.run(); }},
    {Stage::kQuota, always, [](Cycle& cycle) { cycle.limits.run(); }},
    {Stage::kPlace, always, [](Cycle& cycle) { cycle.placing.run(); }},
    {Stage::kBackfill,
     [](const Cycle& cycle) { return cycle.cycle.keeps_places() && has_blocked_head(cycle); },
     [](Cycle& cycle) { cycle.backfilling.run(); }},
    {Stage::kPreempt,
     [](const Cycle& cycle) {
       return !cycle.cycle.keeps_places() && has_blocked_head(cycle) && cycle.fit.may_stop_jobs();
     },
     preempt_for_head},
    {Stage::kLend,
     [](const Cycle& cycle) {
       return !cycle.borrowers.empty() && cycle.line.is_ordered && may_pass(cycle);
     },
     [](Cycle& cycle) { cycle.borrowers.run(); }},
    // Yielding is judged by the places that were kept in this very cycle. If that stage is off or
    // did not finish, no attempt is judged.
    {Stage::kYield,
     [](const Cycle& cycle) {
       return cycle.cycle.plan.complete && cycle.cycle.options.stages.has(Stage::kBackfill);
     },
     [](Cycle& cycle) { cycle.yielding.run(); }},
};

Plan Cycle::run() {
  StageObserver* const observer = cycle.options.observer;
  for (const auto& [stage, has_work, run_stage] : kRows) {
    if (!cycle.options.stages.has(stage)) continue;
    if (observer != nullptr) observer->begin(stage);
    if (has_work(*this)) run_stage(*this);
    if (observer != nullptr) observer->end(stage);
  }
  if (observer != nullptr) observer->end_cycle(line.considered);
  return std::move(cycle.plan);
}

}  // namespace gpu_platform::scheduling
