#pragma once

#include <linux/filter.h>

#include <vector>

// The system calls that the listener may make; all others fail. A classic BPF program.

namespace gpu_platform::listener {

std::vector<sock_filter> syscall_filter();

}  // namespace gpu_platform::listener
