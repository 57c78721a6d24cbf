#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

// Records predictions of starts, so that they can be compared with the actual starts. Each job gets
// one while it is in the queue: when it first gets a planned start, or soon after that if many jobs
// do. Of the jobs behind those, some get one deep in the queue (is_early), from which the platform
// learns how far such predictions are off.
// Ownership: values. Thread: one owner.
class StartPredictor {
 public:
  // To be called after the cycle's starts, with which the planned starts agree, if the plan is new
  // or next() says so. `books`: the state's, for trials; they are left as they were.
  Events judge(const State& state, scheduling::Books& books,
               const std::vector<scheduling::PlannedStart>& planned_starts, base::Instant now);
  // Returns when the jobs without a prediction get theirs; nothing if there are none.
  std::optional<base::Instant> next() const { return due_at_; }

 private:
  Events judge_first(const State& state, scheduling::Books& books,
                     const std::vector<scheduling::PlannedStart>& planned_starts,
                     base::Instant now);
  Events judge_deep(const State& state, scheduling::Books& books, base::Instant now);

  base::Instant paid_until_;  // the earlier predictions are paid for by then
  base::Instant deep_at_;     // not before this time the next ones deep in the queue
  std::optional<base::Instant> due_at_;
};

}  // namespace gpu_platform::controller
