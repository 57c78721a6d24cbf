#pragma once

#include <cstdint>
#include <string>

#include "node/identity.h"

namespace gpu_platform::node {

struct MpsKeeperOptions {
  // From the launcher (SOCK_SEQPACKET): MpsServer; to it: MpsState.
  int socket = -1;
  int folder = -1;                  // of the daemon (mps_folder()), made by MpsPlaces
  int cgroup = -1;                  // for the daemon and its servers
  std::string path;                 // of the folder
  bool has_own_memory = true;       // shm/ of the folder is /dev/shm for the daemon
  Identity user;                    // that the daemon runs as
  int log_fd = -1;                  // where a line is written of each loss; -1: nowhere
  const char* oom_score = nullptr;  // see LauncherHost::job_oom_score
  std::int64_t look_every_ms = 5000;
  int answer_ms = 10'000;  // in which a daemon answers
};

// The whole life of the keeper of one MPS daemon: starts the daemon or takes over the one that is
// there, gives it the limits of its jobs and reads them back, and tells its launcher. It looks at
// the daemon again and again. One that has ended, cannot be reached or hangs is killed with its
// servers and started again. After a job has left, a server is ended as soon as it has no client,
// so that no later job meets one that was left in disorder.
//
// Returns after an order without jobs and after SIGTERM, SIGINT or SIGHUP: then the daemon and all
// of its servers have ended. When the launcher hangs up it returns, too, and the daemon lives on
// for the next one.
//
// Runs in a process of its own, with no thread beside it, and blocks all of its signals. With
// memory of its own it makes a mount namespace, in which shm/ of the folder is /dev/shm.
void run_mps_keeper(const MpsKeeperOptions& options);

}  // namespace gpu_platform::node
