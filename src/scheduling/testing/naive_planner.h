#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/allocation.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::scheduling {

// The rules of a cycle, written down once more without any index: it sorts the jobs, scans every
// node and tries every type. Tests compare plan_cycle with it, and benchmarks measure it against
// plan_cycle.
Plan naive_plan(std::vector<model::Node> nodes, std::vector<WaitingJob> jobs,
                const model::Policy& policy);

// Places a request for one node. `rules`: which GPUs may be shared.
std::optional<model::Allocation> naive_place(const std::vector<model::Node>& nodes,
                                             const model::ResourceRequest& request,
                                             const model::Sharing& rules = {});

// The facts about a gang that need no choice of nodes.
struct NaiveGang {
  std::size_t parts = 0;
  model::NetworkLevel level = model::NetworkLevel::kAnywhere;
  // The number of nodes that could give a part, in the place at that level that has the fewest and
  // still enough.
  std::size_t nodes_there = 0;

  friend bool operator==(const NaiveGang&, const NaiveGang&) = default;
};
std::optional<NaiveGang> naive_gang(const std::vector<model::Node>& nodes,
                                    const model::ResourceRequest& request);

bool naive_fits(const std::vector<model::Node>& nodes, const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
