#pragma once

#include <cstdint>
#include <string>
#include <vector>

// One job's container, from its image to its end. This runs in a process of its own, which the
// job's supervisor starts with its own rights: it alone opens the engine's socket. What it does is
// bounded by the site's rules, for any request of the daemon. If the launcher has root's rights,
// so has it; else the engine must be the user's own Podman, without root's rights ("rootless").

namespace gpu_platform::execution {

struct ContainerRunOptions {
  std::string rules;   // path of the site's rules
  std::string cgroup;  // absolute path of the attempt's; empty: see `cluster`
  // Without root's rights, with the engine of our own user, which puts the container into no cgroup
  // of ours: the name by which its containers are told from those of other launchers. Else empty.
  std::string cluster;
  std::string attempt;  // "42-1"
  std::string root;     // the launcher's folder; empty: fetched images are not remembered
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::string> groups;  // numbers
  std::string name;                 // of the account; empty: it has none
  int request_fd = 3;               // an encoded node::LaunchRequest
  int report_fd = 4;  // a file: gets the line "doing: what", "failed: why", "oom" or "ended"
};

// Copies the container's output to descriptors 1 and 2 and returns its exit code. SIGTERM before
// the container has begun ends it; afterwards the signals are for the container's own processes,
// which get them directly, or from here (node::container_signal_number) where they are in no cgroup
// of ours. After SIGUSR1 it ends within seconds, also if the engine hangs.
int run_container(const ContainerRunOptions& options);

}  // namespace gpu_platform::execution
