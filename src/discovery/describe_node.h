#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "hardware/readings.h"
#include "model/node.h"

// From what a machine says of itself to the node that the scheduler knows.

namespace gpu_platform::discovery {

struct NodeIdentity {
  std::string name;  // empty: the host's own
  bool emulated = false;
};

struct DescribedNode {
  model::NodeInfo info;
  // Notes for the log: why there are no GPUs, which GPUs were left out, what is not known.
  std::vector<std::string> notes;

  friend bool operator==(const DescribedNode&, const DescribedNode&) = default;
};

// The UUID that each GPU had first, by its PCI address, within one boot of the machine: what a
// driver says of a GPU's name is believed once.
struct KnownGpus {
  std::string boot_id;
  std::map<std::string, std::string> uuids;

  friend bool operator==(const KnownGpus&, const KnownGpus&) = default;
};

// GPUs keep the driver's order. A GPU that cannot be used (no UUID, no memory size, refused by the
// driver) is left out with a note; two GPUs with one UUID or one PCI address are an error, because
// it could not be told which of them a job holds. A GPU with another UUID than the one that `known`
// has for its place is left out too: a job holds the GPU under its former name. `known` is updated.
// A machine without GPUs is a node with CPUs and a note.
base::Result<DescribedNode> describe_node(const NodeIdentity& identity,
                                          const hardware::Inventory& inventory, KnownGpus& known);

}  // namespace gpu_platform::discovery
