#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "execution/container/attempt_container.h"
#include "execution/container/container_failure.h"
#include "node/identity.h"

// Puts the mounts of a job and its folders in memory into its container, whose first process is
// held (start_hold.h). No engine is told of them: an engine, as root, makes the place for a mount
// wherever it is to be, also inside a folder of a user, and opens it by a name that the user can
// change meanwhile. Here each place is a descriptor, found part by part. Inside a mount of the job
// it is found, and made where it is missing, with the rights of the job's user, and no symbolic
// link is followed. Elsewhere, in the container's own file system, nothing is a user's before the
// job's program runs; there missing places are made, and the image's links followed, by root.
//
// Nothing is mounted at a place in /etc, /proc, /sys and /dev, under any name, but what is to be
// /dev/shm under this one: the memory of an MPS server. No job may ask for that place.
//
// Before, the files below the platform's /etc/passwd and /etc/group become the same: engines look
// there for the groups of a further command, also if something is mounted over them. From then on
// /etc is root's, and no user can put another one in its place.

namespace gpu_platform::execution {

struct ContainerPlace {
  std::string source;  // a place that only root reaches (MountStages); empty: a folder in memory
  std::string target;
  bool read_only = false;
  std::uint64_t bytes = 0;  // of a folder in memory
};

// `wait` returns false if what waits is to be given up; it is called with a descriptor that becomes
// readable when there is something to see.
ContainerDone<> put_places(const HeldProcess& first, const node::Identity& user,
                           std::vector<ContainerPlace> places,
                           const std::function<bool(int fd)>& wait);

}  // namespace gpu_platform::execution
