#include "sharing/rungs.h"

namespace gpu_platform::sharing {

using model::Rung;
using model::ShareMode;

namespace {

bool stays_in_cgroup(const JobMeans& job) {
  return job.is_in_cgroup && !job.is_of_root;
}

// A process that is in no cgroup of the job is not known to be the job's.
Rung watched(const NodeMeans& node, const JobMeans& job) {
  return node.watches_memory && stays_in_cgroup(job) ? Rung::kWatchdog : Rung::kAdvisory;
}

// The limit of one process is that of the job if it has one alone; the watchdog adds up several.
// Whether a cgroup's limit holds for what a server allocates for its clients is not known.
InForce of_mps(const NodeMeans& node, const JobMeans& job) {
  InForce in_force{{watched(node, job), Rung::kAdvisory}};
  if (!job.is_mps_client) return in_force;
  if (job.has_one_process) in_force.wall.memory = Rung::kMpsLimit;
  in_force.wall.compute = Rung::kMpsLimit;
  in_force.is_compute_per_process = !job.has_one_process;
  return in_force;
}

InForce of_time_slices(const NodeMeans& node, const JobMeans& job) {
  const bool is_limited = node.limits_memory && stays_in_cgroup(job);
  const bool is_frozen = node.freezes && stays_in_cgroup(job);
  return {{is_limited ? Rung::kDriverLimit : watched(node, job),
           is_frozen ? Rung::kFrozen : Rung::kAdvisory}};
}

}  // namespace

InForce wall_in_force(ShareMode mode, const NodeMeans& node, const JobMeans& job) {
  switch (mode) {
    case ShareMode::kNone:
      return {{Rung::kHardware, Rung::kHardware}};
    case ShareMode::kTimeSlice:
      return of_time_slices(node, job);
    case ShareMode::kMps:
      return of_mps(node, job);
  }
  return {{Rung::kAdvisory, Rung::kAdvisory}};
}

}  // namespace gpu_platform::sharing
