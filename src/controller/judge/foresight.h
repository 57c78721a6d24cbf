#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

// What is foreseen of starts, so that it can be compared with what comes of it: of each job once
// while it is in the queue, when it first gets a reservation, or soon after that where many do.
// Ownership: values. Thread: one owner.
class Foresight {
 public:
  // To be asked after the cycle's starts, with which the reservations agree, where the plan is new
  // or next() says so. `books`: the state's, for trials; they are left as they were.
  Events judge(const State& state, scheduling::Books& books,
               const std::vector<scheduling::Reservation>& reservations, base::Instant now);
  // When those are foreseen of which nothing is known yet; nothing where there are none.
  std::optional<base::Instant> next() const { return due_at_; }

 private:
  base::Instant paid_until_;  // what was foreseen is worked off by then
  std::optional<base::Instant> due_at_;
};

}  // namespace gpu_platform::controller
