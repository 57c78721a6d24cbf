#include "scheduling/cycle/cycle.h"

#include <algorithm>
#include <utility>

#include "scheduling/backfill/yielding.h"

namespace gpu_platform::scheduling {

namespace {

bool always(const Cycle&) {
  return true;
}

// Somebody does not fit, and what is done about those behind depends on their order.
bool has_blocked_head(const Cycle& cycle) {
  return cycle.line.is_ordered && cycle.line.blocked != nullptr;
}

// With depth 0 order is strict and nobody passes a blocked head.
bool may_pass(const Cycle& cycle) {
  return cycle.ground.depth > 0 || cycle.line.blocked == nullptr;
}

// The first that does not fit, where no places are kept.
void preempt_for_head(Cycle& cycle) {
  const WaitingJob& head = *cycle.line.blocked;
  if (cycle.ground.hold_of(head) == nullptr) {
    cycle.fit.make_for(head, cycle.ground.slot_of(head));
  }
}

// Those that are to yield by now stop if they stand in a place that is kept; else not.
void judge_those_who_yield(Cycle& cycle) {
  Ground& ground = cycle.ground;
  const base::Instant now = ground.options.now;
  ground.plan.yields = judge_yielding(ground.timeline, ground.running, ground.plan.planned_starts,
                                      now, ground.policy.stop_grace);
  const auto& yielding = ground.running.yielding();
  const auto next = std::ranges::upper_bound(yielding, now, {}, &RunningEnds::Key::end);
  if (next != yielding.end()) ground.look_again_at(next->end);
}

}  // namespace

// The one list of stages, and when each has nothing to do. A fit is made by the same object in two
// ways: backfill asks for it as it seeks the place of each, and where no places are kept the row
// here does for the head. defragment belongs before lend, with what the earlier ones left in the
// trial and the plan.
const Cycle::Row Cycle::kRows[] = {
    {Stage::kOrder, always, [](Cycle& cycle) { cycle.line.run(); }},
    {Stage::kQuota, always, [](Cycle& cycle) { cycle.limits.run(); }},
    {Stage::kPlace, always, [](Cycle& cycle) { cycle.placing.run(); }},
    {Stage::kBackfill,
     [](const Cycle& cycle) { return cycle.ground.keeps_places() && has_blocked_head(cycle); },
     [](Cycle& cycle) { cycle.backfilling.run(); }},
    {Stage::kPreempt,
     [](const Cycle& cycle) {
       return !cycle.ground.keeps_places() && has_blocked_head(cycle) &&
              cycle.fit.may_stop_somebody();
     },
     preempt_for_head},
    {Stage::kLend,
     [](const Cycle& cycle) {
       return !cycle.borrowers.empty() && cycle.line.is_ordered && may_pass(cycle);
     },
     [](Cycle& cycle) { cycle.borrowers.run(); }},
    // Beside the places that were kept in this very cycle: where there are none for want of their
    // stage, or not all of them, nobody is judged.
    {Stage::kYield,
     [](const Cycle& cycle) {
       return cycle.ground.plan.complete && cycle.ground.options.stages.has(Stage::kBackfill);
     },
     judge_those_who_yield},
};

Plan Cycle::run() {
  for (const auto& [stage, has_work, run_stage] : kRows) {
    if (!ground.options.stages.has(stage)) continue;
    StageObserver* const observer = ground.options.observer;
    if (observer != nullptr) observer->begin(stage);
    if (has_work(*this)) run_stage(*this);
    if (observer != nullptr) observer->end(stage);
  }
  return std::move(ground.plan);
}

}  // namespace gpu_platform::scheduling
