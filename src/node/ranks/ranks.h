#pragma once

namespace gpu_platform::node {

// The first process of a job that has several: starts them all, as the job's user and inside its
// cgroup, and ends as the job does.
//
//   gpu-platform-node ranks GRACE_MS RANK... -- COMMAND...
//
// RANK: what a process has besides the common environment, NAME=VALUE lines. Once one of them ends
// badly the others get SIGTERM, and SIGKILL after the grace; the first bad end is the job's.
// Signals to the job reach each process itself and change nothing here. Returns the exit code;
// where that end was by a signal it ends by the same one.
int run_ranks(int argc, char** argv);

}  // namespace gpu_platform::node
