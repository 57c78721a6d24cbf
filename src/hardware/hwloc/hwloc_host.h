#pragma once

#include <memory>
#include <string>

#include "hardware/host_topology.h"

namespace gpu_platform::hardware {

struct HwlocOptions {
  // A machine in hwloc's own short form, "package:2 numa:2 core:8 pu:2", instead of this one.
  std::string synthetic;
};

// The running machine as hwloc sees it: sockets, cores, NUMA nodes and where PCI devices hang.
// Name, boot id, total memory and the CPUs that we may use are the kernel's own word, and so is
// everything where hwloc fails. hwloc's own use of GPU drivers is switched off: only the
// probe's calls may hang in one.
std::unique_ptr<HostTopology> open_hwloc_host(std::unique_ptr<HostTopology> kernel,
                                              HwlocOptions options = {});

}  // namespace gpu_platform::hardware
