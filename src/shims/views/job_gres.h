#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_platform/v1/jobs.pb.h"
#include "shims/views/node_view.h"

// Which GPUs, CPUs and memory of its nodes a job has. Pure.

namespace gpu_platform::shims {

struct JobPart {
  std::string node;
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::string gpu_type;            // as the node's gres names it; empty: not known, or no GPUs
  std::vector<std::int64_t> gpus;  // their numbers on the node
  std::string shared = {};         // "shard:2": the part that it has of its one GPU
};

// In the order of the nodes' names; none while it has no node. `nodes` are those of the cluster.
std::vector<JobPart> parts_of(const v1::Job& job, const std::vector<NodeView>& nodes);

// "gpu:H100-80GB:2(IDX:0-1)"; empty without GPUs.
std::string gres_of(const JobPart& part);

// "JOB_GRES=gpu:…" and a line for each run of nodes with the same numbers, as "scontrol show job
// -d" has them. CPUs are counted and not numbered here, so CPU_IDs begins with 0 for each job.
struct GresLine {
  std::string nodes;  // "a1,b[1-2]"
  std::string cpus;   // "0-3"
  std::int64_t memory_mib = 0;
  std::string gres;
};
std::string gres_of_job(const std::vector<JobPart>& parts);
std::vector<GresLine> gres_lines(const std::vector<JobPart>& parts);

}  // namespace gpu_platform::shims
