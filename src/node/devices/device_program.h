#pragma once

#include <linux/bpf.h>

#include <string>
#include <vector>

#include "node/devices/device_rules.h"

// Device rules as a program that the kernel asks at every open and mknod of a process in a cgroup
// (BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15). It belongs to the cgroup: it applies to all that the
// processes execute, with any environment, outlives supervisor, launcher and daemon, and
// ends with the cgroup. The kernel also asks the programs of the cgroups above, and all must agree.

namespace gpu_platform::node {

// Loops free, at most a few instructions for each rule.
std::vector<bpf_insn> assemble(const DeviceRules& rules);

// Loaded programs, kept for the next job with the same devices: loading is the slowest part of the
// work for a job's devices. Copies share the handles, which stay open as long as the process.
class DevicePrograms {
 public:
  // Returns a handle that stays ours; -1 if it cannot be loaded, and `why` says so: without root,
  // in a container without CAP_BPF, on a kernel without the program type.
  int load(const DeviceRules& rules, std::string& why);

 private:
  struct Loaded {
    DeviceRules rules;
    int program = -1;
  };
  std::vector<Loaded> loaded_;
};

// Attaches a program to a cgroup by its open directory. Returns an empty text, or why it failed.
std::string attach_device_program(int cgroup_fd, int program);

}  // namespace gpu_platform::node
