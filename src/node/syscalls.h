#pragma once

#include <cstdint>

// System calls that the C library of Debian 12 does not offer, or not in the form needed here.
// All return -1 with errno on failure, as system calls do.

namespace gpu_platform::node {

int open_pidfd(int pid);
int signal_pidfd(int pidfd, int signal);
// Queues the signal with 64 bits of data, which the receiver finds in signalfd_siginfo::ssi_ptr.
int queue_signal(int pidfd, int signal, std::uint64_t data);

// The default action for a signal, also for the two that the C library keeps for itself: ignoring
// is inherited through exec, and a job must begin as from a fresh login.
void reset_signal(int signal);

// Forks like fork(2), but the child is born in the cgroup (-1: in the caller's). For a process
// without threads.
int fork_into_cgroup(int cgroup_fd);
// fork(2) that also opens a handle of the child. For a process without threads.
int fork_with_pidfd(int* pidfd);

}  // namespace gpu_platform::node
