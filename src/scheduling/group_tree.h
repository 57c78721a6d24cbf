#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "base/units.h"
#include "model/ids.h"
#include "scheduling/gang/network_places.h"
#include "scheduling/node_shape.h"
#include "scheduling/placement/best_subset.h"

namespace gpu_platform::scheduling {

// The free state of a group of equal nodes, in the order in which best fit tries them.
struct GroupKey {
  std::uint32_t free_gpus = 0;
  std::uint32_t cpus = 0;
  base::Bytes memory;
  GpuMask gpus = 0;

  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

// Nodes that are equal in shape and free state.
struct Group {
  std::map<model::NodeId, LeafIndex> nodes;
  std::map<LeafIndex, std::set<model::NodeId>>
      by_leaf;  // the nodes of a leaf other than 0; none empty
  Reach reach;  // of the free GPUs, for the type that has most
};

struct Most {
  std::int64_t memory = 0;
  Reach reach;
};

// Keeps in each node of the tree the most free memory and the widest reach among the groups below
// it, so that the search skips whole subtrees instead of walking from one number of CPUs to the
// next.
template <class ConstNode, class Node, class Less, class Allocator>
class MostBelow {
 public:
  using metadata_type = Most;

  virtual ~MostBelow() = default;
  virtual ConstNode node_begin() const = 0;
  virtual ConstNode node_end() const = 0;

  void operator()(Node node, ConstNode end) {
    Most most{(*node)->first.memory.value(), (*node)->second.reach};
    for (const Node child : {node.get_l_child(), node.get_r_child()}) {
      if (child == end) continue;
      const Most& below = child.get_metadata();
      most.memory = std::max(most.memory, below.memory);
      most.reach.raise_to(below.reach);
    }
    // The library hands its metadata out as constant and has this cast in its own policies.
    const_cast<metadata_type&>(node.get_metadata()) = most;
  }
};

// Groups in order, each with its nodes. A red-black tree of libstdc++'s policy-based containers,
// because standard maps cannot carry the sums of their subtrees.
using GroupTree =
    __gnu_pbds::tree<GroupKey, Group, std::less<GroupKey>, __gnu_pbds::rb_tree_tag, MostBelow>;

struct GroupNeed {
  base::Bytes memory;
  std::uint32_t gpus = 0;
  PlacementRank rank = PlacementRank::kAcrossSockets;  // so many GPUs at this rank or better
};

// Returns the first group from `from` on that has this much free memory and a reach that holds the
// GPUs, or end(). O(log groups) if either alone decides.
GroupTree::const_iterator first_with(const GroupTree& groups, const GroupKey& from,
                                     const GroupNeed& need);

}  // namespace gpu_platform::scheduling
