#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/resource_request.h"
#include "scheduling/cluster.h"
#include "scheduling/placement/choose_gpus.h"

namespace gpu_platform::scheduling {

// The criteria between nodes that could give a part; the smallest is the best, as for jobs on one
// node.
struct PartScore {
  PlacementRank rank = PlacementRank::kNvLink;
  std::uint32_t gpus = 0;  // what would be left free, here and below
  std::uint32_t cpus = 0;
  base::Bytes memory;

  friend auto operator<=>(const PartScore&, const PartScore&) = default;
};

// Equal nodes that could each give one part of a gang now. Refers into the cluster.
struct Candidate {
  PartScore score;
  const ShapeClass* shape_class = nullptr;
  const Group* group = nullptr;
  model::NodeId only;  // if valid, only this node of the group
  Demand demand;
  Subset gpus;

  // Calls visit(LeafIndex, number of nodes) for the places of its nodes.
  template <class Visit>
  void for_each_leaf(Visit&& visit) const {
    if (only.valid()) {
      visit(group->nodes.at(only), std::size_t{1});
      return;
    }
    std::size_t unnamed = group->nodes.size();
    for (const auto& [leaf, nodes] : group->by_leaf) {
      unnamed -= nodes.size();
      visit(leaf, nodes.size());
    }
    if (unnamed > 0) visit(LeafIndex{0}, unnamed);
  }

  // Visits its nodes in ascending order until visit(NodeId) returns false.
  template <class Visit>
  void for_each_node(Visit&& visit) const {
    if (only.valid()) {
      visit(only);
      return;
    }
    for (const auto& [node, place] : group->nodes) {
      if (!visit(node)) return;
    }
  }

  // The same for the nodes of one place.
  template <class Visit>
  void for_each_node_in(LeafIndex leaf, Visit&& visit) const {
    if (only.valid()) {
      if (group->nodes.at(only) == leaf) visit(only);
    } else if (leaf == 0) {
      for (const auto& [node, place] : group->nodes) {
        if (place == 0 && !visit(node)) return;
      }
    } else if (const auto there = group->by_leaf.find(leaf); there != group->by_leaf.end()) {
      for (const model::NodeId node : there->second) {
        if (!visit(node)) return;
      }
    }
  }
};

// Returns all nodes that could give the request now, read as a request for one node; on its
// nodelist, if it has one. The best come first; the order does not depend on the order in which
// nodes became known. Cost: by groups of equal nodes that have that many GPUs free.
std::vector<Candidate> candidates_for(const Cluster& cluster, const model::ResourceRequest& part,
                                      const GpuFilter& filter);

}  // namespace gpu_platform::scheduling
