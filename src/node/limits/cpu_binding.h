#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Where a job's threads run and its memory comes from: near its GPUs. Speed, not isolation: when
// the near memory is full it gets other memory, and a job may change both, but for its cores where
// the host has the cpuset controller (JobLimits).

namespace gpu_platform::node {

// A set of small numbers in the form that the kernel takes.
using Bits = std::vector<unsigned long>;

// "0-55,112-167"; nothing where it is malformed, empty or beyond 8191.
std::optional<Bits> parse_number_list(std::string_view text);

// The same in the other direction; empty for an empty set.
std::string format_number_list(const Bits& bits);
Bits common_numbers(const Bits& a, const Bits& b);

struct CpuBinding {
  Bits cpus;   // empty: any
  Bits nodes;  // NUMA nodes whose memory is preferred; empty: the one where a thread runs
};

// Binds the calling thread and whatever it starts. Plain system calls only. What the host does not
// have is left as it is.
void bind_self(const CpuBinding& binding);

}  // namespace gpu_platform::node
