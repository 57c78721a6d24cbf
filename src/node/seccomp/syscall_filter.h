#pragma once

#include <linux/filter.h>

#include <span>
#include <string>

// The system calls that a job has no use for and that open much of the kernel: keyrings, programs
// in the kernel, modules, another kernel to boot and the like. docs/isolation.md has the list with
// its reasons. A classic BPF program, made when this is compiled; the job's processes inherit it.

namespace gpu_platform::node {

// The program; for tests too.
std::span<const sock_filter> syscall_filter();

// Why this kernel cannot filter system calls; empty when it can.
std::string error_in_syscall_filter();

// Filters the calls of the calling process and of what it starts, for ever. It must be bound to
// gain no rights (no_new_privs) or be root. Raw calls only: 0 or -errno.
int install_syscall_filter();

}  // namespace gpu_platform::node
