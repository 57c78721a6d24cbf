#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "node/launcher/identities.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "node/supervisor/supervisor.h"

namespace gpu_platform::node {

struct LauncherOptions {
  std::string root;              // the launcher's own folder, see NodeFolders
  int socket_fd = -1;            // connected to the daemon; or:
  std::string listen_path;       // wait here for daemons, one after the other
  std::uint32_t client_uid = 0;  // the uid that may connect; root always may
  std::string jobs_scope;        // systemd's, for jobs' cgroups; empty: named after the folder
  IdentityRules identities;      // the users that jobs may run as
  bool mode_setting = false;     // jobs with GPUs may open /dev/nvidia-modeset
  std::int64_t client_gid = -1;  // may read records and kept output; -1: only we
  SiteHooks hooks;               // the site's own programs around each attempt
  bool filter_syscalls = true;   // of jobs
  std::string containers;        // the rules for jobs with an image; empty: there are none
  std::uint64_t container_timeout_ms = kContainerTimeoutMs;  // see ContainerClient
  std::string driver_rules;  // what the daemon may have done to GPUs; empty: see DriverRuns
  int error_fd = -1;         // where the caller will write our error: not for supervisors; -1: none
  std::span<char> title;     // memory of our arguments, which supervisors rename for ps
};

// Serves the daemon until it hangs up. Stateless: what it did is in the attempts' records, so
// it may die at any moment and its successor goes on. One launcher per folder: it holds a
// lock, which its successor waits for, and no supervisor is between fork and lock once the
// successor has it. Returns the exit code of the program; `error` says why when it is not 0.
int run_launcher(const LauncherOptions& options, std::string& error);

}  // namespace gpu_platform::node
