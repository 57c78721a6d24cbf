#pragma once

#include <optional>
#include <vector>

#include "model/allocation.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::scheduling {

// The rules of a cycle written down once more without any index: sorts the jobs, scans every node,
// tries every type. What tests compare plan_cycle with, and what benchmarks measure it against.
Plan naive_plan(std::vector<model::Node> nodes, std::vector<WaitingJob> jobs,
                const model::Policy& policy);

std::optional<model::Allocation> naive_place(const std::vector<model::Node>& nodes,
                                             const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
