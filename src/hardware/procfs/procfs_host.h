#pragma once

#include <memory>
#include <string>

#include "hardware/host_topology.h"

namespace gpu_platform::hardware {

// The running kernel's files, under other roots in tests.
struct ProcfsRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// CPUs are those online that this process may use; memory is what the kernel manages.
std::unique_ptr<HostTopology> open_procfs_host(ProcfsRoots roots = {});

}  // namespace gpu_platform::hardware
