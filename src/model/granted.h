#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/allocation.h"
#include "model/topology.h"

// What an attempt was given, in the words that its nodes had for it then. An allocation has numbers
// alone, and a number may name another GPU later, or none.

namespace gpu_platform::model {

struct Node;

struct GrantedGpu {
  std::string uuid;   // empty: it was not known
  std::string model;  // "NVIDIA H100 80GB HBM3"
  GpuLink link;       // the slowest to the attempt's others on the node

  friend bool operator==(const GrantedGpu&, const GrantedGpu&) = default;
};

struct GrantedNode {
  std::string name;              // empty: it was not known
  std::uint32_t sockets = 0;     // that the GPUs lie on; 0: the node does not tell
  std::vector<GrantedGpu> gpus;  // as NodeAllocation::grants

  friend bool operator==(const GrantedNode&, const GrantedNode&) = default;
};

using Granted = std::vector<GrantedNode>;  // as Allocation::nodes

// Returns whether it has what the allocation has; not where it is empty and the allocation is not.
bool is_of(const Granted& granted, const Allocation& allocation);

GrantedNode granted_on(const Node& node, const NodeAllocation& part);

// `nodes` finds a node by its id's value, or nothing: a base::PersistentMap<Node>.
template <class Nodes>
Granted granted_of(const Allocation& allocation, const Nodes& nodes) {
  Granted granted;
  granted.reserve(allocation.nodes.size());
  for (const NodeAllocation& part : allocation.nodes) {
    const Node* node = nodes.find(part.node.value);
    if (node != nullptr) {
      granted.push_back(granted_on(*node, part));
    } else {
      granted.push_back({{}, 0, std::vector<GrantedGpu>(part.grants.size())});
    }
  }
  return granted;
}

}  // namespace gpu_platform::model
