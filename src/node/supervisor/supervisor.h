#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "node/confinement.h"
#include "node/folders/node_folders.h"
#include "node/protocol.h"
#include "node/record.h"
#include "node/site_hooks.h"

namespace gpu_platform::node {

// More than the client takes by itself (10 s), and than any time that it gives an engine to stop.
inline constexpr std::uint64_t kContainerTimeoutMs = 90'000;

// What speaks to the container engine for a job with an image.
struct ContainerClient {
  std::string program;  // empty: there is none
  std::string rules;    // its file
  // The name that marks the containers of a launcher without root's rights, because they are in no
  // cgroup of the platform. Else empty.
  std::string cluster;
  std::uint64_t timeout_ms = kContainerTimeoutMs;  // with one that was told of the kill
};

struct SupervisorOptions {
  model::AttemptId attempt;
  const LaunchRequest* request = nullptr;
  const NodeFolders* folders = nullptr;
  std::string cgroup_base;  // below which the job gets its cgroup; empty: isolation is advisory
  int base_fd = -1;         // the same, open
  const HostConfinement* confinement = nullptr;  // what this host can hold
  int record_fd = -1;                            // created and locked by the launcher
  int notice_fd = -1;                            // FIFO to the daemon, not blocking; -1: none
  const char* oom_score = nullptr;               // see JobStartOptions
  const SiteHooks* hooks = nullptr;
  ContainerClient containers;
  std::span<char> title;  // the memory of our arguments, for ps; may be empty
};

// The whole life of one attempt: starts the job, keeps its output, enforces time limit and stop
// orders, records how it ended, and ends when no process of it is left. Runs in a process forked
// for it, with all signals blocked and no thread beside it; needs neither launcher nor daemon once
// it runs.
//
// Its phases: the site's prolog; the job, which is the user's prolog, the command and the user's
// epilog; clearing; the site's epilog; clearing again. Each is left out where there is nothing to
// do. A job is its first process: when that one ends (or the user's epilog after it), what it left
// running gets the grace time (SIGTERM, then SIGKILL) and is not waited for otherwise. The end is
// recorded before that, "cleaned" after everything. The site's epilog is run once for every attempt
// that came as far as the site's prolog or its own start; nothing stops it but its own time.
[[noreturn]] void run_supervisor(const SupervisorOptions& options);

// In the place of a supervisor that was lost before the site's epilog began: runs that epilog, in a
// cgroup and groups like the job's, and records its end as "cleaned". `request` is that of the
// epilog (owed_epilog.h), `end` the job's where it was recorded. No process of the job may be left.
[[noreturn]] void run_lost_epilog(const SupervisorOptions& options,
                                  const std::optional<EndRecord>& end);

// What both begin with: signals, a session and a name of their own.
void take_own_place(const SupervisorOptions& options);

}  // namespace gpu_platform::node
