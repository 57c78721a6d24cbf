#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "node/probe/probe_runner.h"
#include "os/descriptor.h"

namespace gpu_platform::node {

// A running probe: its pid, the pidfd that tells of its end, and our end of the socket.
struct ProbeChild {
  pid_t pid = 0;
  os::Descriptor pidfd;
  os::Descriptor socket;
};

// Starts a probe with posix_spawn, so that a large daemon is not copied. The child has a process
// group of its own (the terminal's Ctrl-C is not for it), default signals, no descriptors of ours
// but its socket, and stderr.
base::Result<ProbeChild> spawn_probe(const ProbeRunnerOptions& options, const ProbeTarget& target);

// Reaps the child and returns in words how it ended; empty if it has not ended yet.
std::string reap(const ProbeChild& child);

}  // namespace gpu_platform::node
