#pragma once

#include <cstdint>

// Where there is no cgroup: what can be found of a job through /proc. Advisory: a process that
// forks while the tree is walked, or whose supervisor is dead, can be missed.

namespace gpu_platform::node {

// Sends the signal to every descendant of the calling process. With PR_SET_CHILD_SUBREAPER set,
// that is every process of the job, double forks included. Returns how many were found.
int signal_descendants(int signal);

// Start time of a process in clock ticks since boot, 0 when there is no such process. With the pid
// it names a process for the whole boot.
std::uint64_t start_ticks_of(int pid);

// For a job whose supervisor is dead: SIGKILL to the session and process group its first process
// led. Refuses when the pid now belongs to another process. True when nothing of the group is left.
bool kill_process_group(int leader, std::uint64_t start_ticks);

}  // namespace gpu_platform::node
