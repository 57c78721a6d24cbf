#pragma once

#include <optional>
#include <string_view>
#include <vector>

// Where a job's threads run and its memory comes from: near its GPUs. Speed, not isolation: a job
// may change it, and when the near memory is full it gets other memory.

namespace gpu_platform::node {

// A set of small numbers in the form that the kernel takes.
using Bits = std::vector<unsigned long>;

// "0-55,112-167"; nothing where it is malformed, empty or beyond 8191.
std::optional<Bits> parse_number_list(std::string_view text);

struct CpuBinding {
  Bits cpus;   // empty: any
  Bits nodes;  // NUMA nodes whose memory is preferred; empty: the one where a thread runs
};

// Binds the calling thread and whatever it starts. Plain system calls only. What the host does not
// have is left as it is.
void bind_self(const CpuBinding& binding);

}  // namespace gpu_platform::node
