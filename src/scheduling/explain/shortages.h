#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/job.h"
#include "model/node.h"
#include "model/wait_reason.h"
#include "scheduling/explain/gpu_offer.h"

namespace gpu_platform::scheduling {

// Why a request does not start on each of a set of nodes, counted: every node once, under the first
// constraint it fails in the order of model::Shortage, or under kFits. Works on model::Node values,
// so on published snapshots as well. The request must outlive the counter.
class ShortageCounter {
 public:
  explicit ShortageCounter(const model::ResourceRequest& request)
      : request_(request), offers_(request) {}

  void visit(const model::Node& node);
  // Only constraints that some node fails (or kFits), ascending; they add up to the nodes visited.
  std::vector<model::WaitCount> counts() const;
  // True when some visited node that is up could hold the request if nothing else ran on it.
  bool some_node_up_could_hold() const { return some_node_up_could_hold_; }

 private:
  const model::ResourceRequest& request_;
  GpuOffers offers_;
  std::array<model::WaitCount, model::kShortages> counts_ = {};
  bool some_node_up_could_hold_ = false;
};

// `nodes` offers for_each(visit(key, const model::Node&)), as base::PersistentMap<model::Node>
// does.
template <class Nodes>
std::vector<model::WaitCount> count_shortages(const Nodes& nodes,
                                              const model::ResourceRequest& request) {
  ShortageCounter counter(request);
  nodes.for_each([&](const auto&, const model::Node& node) { counter.visit(node); });
  return counter.counts();
}

}  // namespace gpu_platform::scheduling
