#pragma once

#include <span>
#include <string>
#include <vector>

#include "shims/text/columns.h"
#include "shims/views/node_view.h"

// The columns of sinfo. Pure.

namespace gpu_platform::shims {

// Nodes in one line.
struct NodeGroup {
  const Partition* partition = nullptr;  // of the line
  std::vector<const NodeView*> nodes;    // may be empty
};

// A column, and whether nodes that differ in it have lines of their own.
struct NodeField {
  Field<NodeGroup> field;
  bool splits = false;
};

std::span<const NodeField> sinfo_fields();

// Node counts as sinfo's %F has them: allocated, idle, other, total.
struct NodeUse {
  std::size_t allocated = 0;
  std::size_t idle = 0;
  std::size_t other = 0;
};
NodeUse use_of(const NodeGroup& group);

}  // namespace gpu_platform::shims
