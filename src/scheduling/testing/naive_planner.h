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

// The rules of a cycle written down once more without any index: sorts the jobs, scans every node,
// tries every type. What tests compare plan_cycle with, and what benchmarks measure it against.
Plan naive_plan(std::vector<model::Node> nodes, std::vector<WaitingJob> jobs,
                const model::Policy& policy);

// Of a request for one node.
std::optional<model::Allocation> naive_place(const std::vector<model::Node>& nodes,
                                             const model::ResourceRequest& request);

// What there is to say of a gang without choosing its nodes.
struct NaiveGang {
  std::size_t parts = 0;
  model::NetworkLevel level = model::NetworkLevel::kAnywhere;
  // That could give a part, in the place at that level where they are fewest and still enough.
  std::size_t nodes_there = 0;

  friend bool operator==(const NaiveGang&, const NaiveGang&) = default;
};
std::optional<NaiveGang> naive_gang(const std::vector<model::Node>& nodes,
                                    const model::ResourceRequest& request);

bool naive_fits(const std::vector<model::Node>& nodes, const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
