#pragma once

#include <cstdint>

// Finds the processes of a job through /proc if there is no cgroup. This is advisory: it can miss a
// process that forks while the tree is walked, or that has a dead supervisor.

namespace gpu_platform::node {

// Sends the signal to every descendant of the calling process. With PR_SET_CHILD_SUBREAPER set,
// that is every process of the job, double forks included. Returns how many were found.
int signal_descendants(int signal);

// Start time of a process in clock ticks since boot, 0 when there is no such process. With the pid
// it names a process for the whole boot.
std::uint64_t start_ticks_of(int pid);

// Sends, for a job with a dead supervisor, a signal that ends it to the session and process group
// that its first process led. Refuses if the pid now belongs to another process. Returns true if
// nothing of the group is left.
bool end_process_group(int leader, std::uint64_t start_ticks, int signal);

}  // namespace gpu_platform::node
