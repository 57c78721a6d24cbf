#pragma once

#include <linux/bpf.h>

#include <string>
#include <vector>

#include "node/devices/device_rules.h"

// Device rules as a program that the kernel asks at every open and mknod of a process in a cgroup
// (BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15). It belongs to the cgroup: it holds for whatever the
// processes exec or change in their environment, outlives supervisor, launcher and daemon, and goes
// with the cgroup. Programs of the cgroups above are asked too, and all must agree.

namespace gpu_platform::node {

// Loops free, at most a few instructions for each rule.
std::vector<bpf_insn> assemble(const DeviceRules& rules);

// Attaches them to a cgroup by its open directory. Empty, or why it cannot be done: without root,
// in a container without CAP_BPF, on a kernel without the program type.
std::string guard_devices(int cgroup_fd, const DeviceRules& rules);

}  // namespace gpu_platform::node
