#pragma once

#include <functional>

#include "model/ids.h"

namespace gpu_platform::node {

struct SliceKeeperOptions {
  int socket = -1;  // from the launcher (SOCK_SEQPACKET): TimeSlices and GpuIsIdle; when it closes,
                    // the keeper ends
  // Opens an attempt's cgroup; -1: it is not there. The caller closes it.
  std::function<int(model::AttemptId)> open_cgroup;
  int log_fd = -1;  // where a line is written of each job that cannot be frozen; -1: nowhere
};

// The whole life of the keeper of one GPU's turns: freezes and thaws the cgroups of the jobs that
// its launcher names, so that one of them is awake at a time (TurnWheel). It waits in poll for its
// launcher, the next end of a turn and changes of the cgroups, and does nothing between.
//
// Returns when the launcher hangs up, or after SIGTERM, SIGINT or SIGHUP: then none of the cgroups
// is frozen. After SIGKILL those that were frozen are; the launcher, which sees that, thaws them.
//
// Runs in a process of its own, with no thread beside it, and blocks all of its signals.
void run_slice_keeper(const SliceKeeperOptions& options);

}  // namespace gpu_platform::node
