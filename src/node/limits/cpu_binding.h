#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Binds a job's threads and memory to places near its GPUs. This is for speed, not isolation: if
// the near memory is full, the job gets other memory. A job may change both, except for its cores
// if the host has the cpuset controller (JobLimits).

namespace gpu_platform::node {

// A set of small numbers in the form that the kernel takes.
using Bits = std::vector<unsigned long>;

// Reads "0-55,112-167"; returns nothing if it is malformed, empty or beyond 8191.
std::optional<Bits> parse_number_list(std::string_view text);

// The same in the other direction; empty for an empty set.
std::string format_number_list(const Bits& bits);
Bits common_numbers(const Bits& a, const Bits& b);

struct CpuBinding {
  Bits cpus;   // empty: any
  Bits nodes;  // NUMA nodes with the preferred memory; empty: the one where a thread runs
};

// Binds the calling thread and everything that it starts. Makes only plain system calls. Leaves
// alone what the host does not have.
void bind_self(const CpuBinding& binding);

}  // namespace gpu_platform::node
