#pragma once

#include "model/gpu_part.h"

// Which wall is in force around a job's part of a GPU. Never overstated: a rung is said only if its
// mechanism runs, and holds all processes that the job may have. Pure functions.

namespace gpu_platform::sharing {

// What a node has that can hold a job to its part of a GPU.
struct NodeMeans {
  // A probe of ours reads the memory of each process there, and the GPU answers it.
  bool watches_memory = false;
  // The driver limits the memory of a cgroup (nvmlDeviceSetMemoryLimits_v1 is there), and the node
  // part sets that limit. Drivers of today do not have it.
  bool limits_memory = false;
  // The node part freezes the cgroups of jobs outside their turns.
  bool freezes = false;
};

// What is known of the processes of a job.
struct JobMeans {
  // All of them are in the job's cgroup, those of its container and of `jobs exec`, too. Without
  // cgroups, and where a container engine keeps its own, they are not.
  bool is_in_cgroup = true;
  // They are clients of the MPS server: they load the driver's library dynamically, with the
  // environment that the platform gives them, in a container that has the server's folder. A
  // program that is linked statically loads it all the same.
  bool is_mps_client = true;
  // It has one process and will never have another one.
  bool has_one_process = false;
  // They run as root. Such a process can leave its cgroup and thaw it.
  bool is_of_root = false;
};

struct InForce {
  model::Wall wall;
  // A limit of the MPS server is one for each process: a job with several may have several times
  // as much of the GPU's compute.
  bool is_compute_per_process = false;

  friend bool operator==(const InForce&, const InForce&) = default;
};

InForce wall_in_force(model::ShareMode mode, const NodeMeans& node, const JobMeans& job);

// What is known of a job before it has processes.
struct KnownBefore {
  bool is_in_cgroup = true;
  bool is_of_root = false;
};

// The same for a job of which no more is known: what its grant says.
inline InForce promised_wall(model::ShareMode mode, const NodeMeans& node,
                             const KnownBefore& job = {}) {
  return wall_in_force(mode, node,
                       {.is_in_cgroup = job.is_in_cgroup, .is_of_root = job.is_of_root});
}

}  // namespace gpu_platform::sharing
