#pragma once

#include <cstdint>
#include <string>

#include "node/cgroup.h"
#include "node/confinement.h"
#include "node/folders/node_folders.h"
#include "node/launcher/launcher.h"

namespace gpu_platform::node {

// What a launcher makes and finds on its machine before it serves: its folders, its lock, the FIFO
// of supervisors, the cgroups of jobs and what confines jobs here. The handles stay open until the
// process ends; a child of the launcher closes those that it must not keep.
struct LauncherHost {
  NodeFolders folders;
  CgroupBase base;  // of jobs' cgroups; its path is empty where there are none
  HostConfinement confinement;
  std::string token;             // of the folder; it names the cgroups
  std::string boot_id;           // of this boot
  std::string job_oom_score;     // the value that jobs get back; empty: theirs is as ours
  std::string container_client;  // the program; empty: jobs have no image
  std::string driver_program;    // of gpu-platform-driver; empty: it is not there
  int base_fd = -1;              // of `base`
  int lock_fd = -1;              // held as long as we live
  int notice_fd = -1;            // the FIFO's

  // The name of our containers where the engine is our own user's, which puts them into no cgroup
  // of ours. Empty with root's rights.
  std::string rootless_cluster() const;
};

// Waits for a predecessor's lock. Returns why it failed; empty: `host` is prepared. From then on
// signals to supervisors are blocked, and children vanish without being waited for.
std::string prepare(const LauncherOptions& options, LauncherHost& host);

// Ends what jobs have left in our groups and removes the groups, where no supervisor needs them.
void leave(const LauncherHost& host);

}  // namespace gpu_platform::node
