#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "execution/kubernetes/workloads/pod.h"
#include "model/job.h"

// The job that stands for a workload of others. Pure.

namespace gpu_platform::execution {

// What a node has for pods, with all that is used of it.
struct NodeSize {
  std::string name;
  std::map<std::string, std::string> labels;
  std::uint32_t gpus = 0;
  std::uint32_t cpus = 0;
  base::Bytes memory;
};

// The pods that hold what the job asks for: those with GPUs where there are any, else all.
bool holds_gpus(const WorkloadPod& pod);
std::vector<const WorkloadPod*> holders_of(const std::vector<WorkloadPod>& pods);

// The nodes that a pod's nodeSelector admits.
std::vector<NodeSize> nodes_for(const WorkloadPod& pod, const std::vector<NodeSize>& nodes);

// Each node gets as many of N equal pods as fit, the same number on all. `pods`: all of
// the workload, at least one. `time_limit`: of its owner; zero: none. The specification has no user
// and no team. The error says in words what the platform cannot do: pods that ask for different
// numbers of GPUs, a pod that no node can hold, an unknown priority.
base::Result<model::JobSpec> spec_of_workload(const std::vector<WorkloadPod>& pods,
                                              base::Duration time_limit,
                                              const std::vector<NodeSize>& nodes);

}  // namespace gpu_platform::execution
