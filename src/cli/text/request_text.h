#pragma once

#include <cstdint>
#include <string>

#include "gpu_platform/v1/jobs.pb.h"

// What a job asks for, as text for people.

namespace gpu_platform::cli {

// The GPUs that a specification asks for on all its nodes; a part counts as one.
std::uint64_t total_gpus(const v1::JobSpec& spec);
// The same with 0.5 for a half.
double gpus_in_all(const v1::JobSpec& spec);

// "2 GPUs on 2 nodes of type H100, 8 CPUs, the node's share of memory": one line.
std::string asked_for(const v1::JobSpec& spec);

}  // namespace gpu_platform::cli
