#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "shims/options/option_table.h"
#include "shims/steps/step_places.h"
#include "shims/steps/step_shares.h"
#include "shims/submission/resources.h"

// Which nodes of its job a step may have, and what it needs on each: the allocation options of srun
// in a job. Pure.

namespace gpu_platform::shims {

struct StepPlan {
  Resources resources;
  Layout layout;
  std::vector<NodeRoom> rooms;    // of the job's nodes that the step may have, in their order
  std::vector<ShareWish> wishes;  // one for each node of the layout
};

struct StepAmounts {
  std::uint32_t cpus = 0;
  std::uint64_t memory_bytes = 0;
};

// Without a wish for GPUs a step has all of its nodes' GPUs; without --exact, or -c, which stands
// for it, all of their CPUs; memory is taken where --mem and the like say how much. Errors say what
// the job does not have.
base::Result<StepPlan> plan_step(const Settings& settings, const std::vector<StepNode>& job);

// The job's nodes and GPUs that were taken.
StepPlaces places_of(const StepPlan& plan, const std::vector<StepNode>& job,
                     const std::vector<NodeShare>& shares);

// The CPUs and memory of the plan on all its nodes; all memory of a node where the step asks for
// none.
StepAmounts amounts_of(const StepPlan& plan, const std::vector<StepNode>& job);

// The first nodes of the plan with their first GPUs: where nothing is counted.
std::vector<NodeShare> first_shares(const StepPlan& plan);

}  // namespace gpu_platform::shims
