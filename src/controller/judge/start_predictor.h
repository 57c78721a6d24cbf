#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

// What is predicted of starts, so that it can be compared with what comes of it: of each job once
// while it is in the queue, when it first gets a planned start, or soon after that where many do.
// Ownership: values. Thread: one owner.
class StartPredictor {
 public:
  // To be asked after the cycle's starts, with which the planned starts agree, where the plan is
  // new or next() says so. `books`: the state's, for trials; they are left as they were.
  Events judge(const State& state, scheduling::Books& books,
               const std::vector<scheduling::PlannedStart>& planned_starts, base::Instant now);
  // When those are predicted of which nothing is known yet; nothing where there are none.
  std::optional<base::Instant> next() const { return due_at_; }

 private:
  base::Instant paid_until_;  // what was predicted is worked off by then
  std::optional<base::Instant> due_at_;
};

}  // namespace gpu_platform::controller
