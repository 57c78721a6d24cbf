#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Which tasks of a step run on which of its nodes: --distribution. Pure.

namespace gpu_platform::shims {

struct Distribution {
  enum class Kind { kBlock, kCyclic, kPlane };
  Kind kind = Kind::kBlock;
  std::uint32_t plane = 1;  // tasks in each turn of a plane
};

// "block", "cyclic:block", "plane=4", "*". What is behind a colon or a comma is about the CPUs of a
// node and changes nothing.
base::Result<Distribution> parse_distribution(std::string_view text);

// The ranks of each node's tasks, ascending. The nodes have equal numbers of them, or the first
// ones have one more; a plane may make them differ more. There is a task for each node.
using Layout = std::vector<std::vector<std::uint32_t>>;
Layout layout_of(std::uint32_t tasks, std::uint32_t nodes, const Distribution& distribution = {});

std::vector<std::uint32_t> counts_of(const Layout& layout);

// "2(x3),1": as SLURM_TASKS_PER_NODE has it.
std::string per_node_text(const std::vector<std::uint32_t>& counts);

}  // namespace gpu_platform::shims
