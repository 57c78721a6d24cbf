#include "scheduling/group_tree.h"

namespace gpu_platform::scheduling {

namespace {

using Node = GroupTree::node_const_iterator;

struct TreeSearch {
  const GroupKey& from;
  const GroupNeed& need;
  GroupTree::const_iterator none;
  Node end;

  GroupTree::const_iterator below(Node node) const {
    if (node == end || !is_enough(node.get_metadata())) return none;
    const GroupKey& key = (*node)->first;
    if (key < from) return below(node.get_r_child());
    if (const auto found = below(node.get_l_child()); found != none) return found;
    const bool is_found = is_enough({key.memory.value(), (*node)->second.reach});
    return is_found ? *node : below(node.get_r_child());
  }

  bool is_enough(const Most& most) const {
    return most.memory >= need.memory.value() && most.reach.holds(need.rank, need.gpus);
  }
};

}  // namespace

GroupTree::const_iterator first_with(const GroupTree& groups, const GroupKey& from,
                                     const GroupNeed& need) {
  const TreeSearch search{from, need, groups.end(), groups.node_end()};
  return search.below(groups.node_begin());
}

}  // namespace gpu_platform::scheduling
