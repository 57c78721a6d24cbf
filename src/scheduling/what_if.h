#pragma once

#include <memory>
#include <optional>
#include <span>

#include "scheduling/plan_cycle.h"

namespace gpu_platform::scheduling {

// Answers what jobs would get in the present cycle if it starts none: waiting jobs with a changed
// request, and jobs that do not exist yet. It uses the very steps of plan_cycle, so that a job for
// which start_of() answers would start in that cycle.
//
// The books must outlive it; nothing else may write to them meanwhile. Thread: the owner's. Cost: a
// placement for each question; slot_of() as Timeline::earliest.
class WhatIf {
 public:
  // `planned starts` are those of the cycle's plan. Only the ones that rank before `rank` count,
  // and all preemption holds.
  WhatIf(Books& books, const model::Policy& policy, const CycleOptions& options,
         std::span<const PlannedStart> planned_starts, const Rank& rank);
  ~WhatIf();
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  // Returns where the job would start at once.
  std::optional<model::Allocation> start_of(const WaitingJob& waiting);
  // Returns where and when it would start at the latest, behind the planned starts.
  std::optional<Slot> slot_of(const WaitingJob& job);
  // Returns the jobs that would be stopped for it if it could not start within the grace. Call it
  // once, and last.
  std::optional<Preemption> preemption_for(const WaitingJob& waiting);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpu_platform::scheduling
