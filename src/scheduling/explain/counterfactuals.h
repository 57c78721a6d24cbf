#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/what_if.h"

// The changes to its request with which a waiting job would start at once.

namespace gpu_platform::scheduling {

enum class Change : std::uint8_t {
  kGpus,
  kGpuShare,  // a smaller part of a GPU
  kGpuTypes,
  kGpuMemory,
  kNuma,
  kCapacity,
  kDegraded,  // it accepts degraded GPUs
  kCpus,
  kMemory,
  kTimeLimit,
  kPreemptible,  // it may be stopped for others: then it may borrow from them
};

std::string_view to_string(Change change);  // "gpus"

// The request with this one change, as small as possible. It starts in the present cycle.
struct Counterfactual {
  Change change = Change::kGpus;
  model::ResourceRequest request;
  base::Duration time_limit;

  friend bool operator==(const Counterfactual&, const Counterfactual&) = default;
};

// Returns the change as the command line asks for it: "--gpus 3", "--time 40m".
std::string option_of(const Counterfactual& changed);

// Returns the changes in the order of Change; among types the one with the most room comes first,
// and at most three are named. Each change was found by asking `what_if`, which must have been made
// for the job's rank. There is none for a job that would start as it is. Cost: some tens of
// placements.
std::vector<Counterfactual> counterfactuals(WhatIf& what_if, const Cluster& cluster,
                                            const WaitingJob& job);

}  // namespace gpu_platform::scheduling
