#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "hardware/host_topology.h"

namespace gpu_platform::hardware {

// The host of an emulated node, from the file beside its boards (host.json, version 1):
//   {"version": 1, "board": TEXT, "host_name": TEXT, "sockets": N, "cores": N, "memory_bytes": N,
//    "numa_nodes": [{"id": N, "socket": N, "cpus": "0-55,112-167", "memory_bytes": N}]}
// Sockets and cores may be missing and are then not known. Unknown keys are allowed, so that an
// older probe reads a newer file. `boot_id` is the real kernel's: the jobs of an emulated node run
// on it. NUMA nodes of PCI devices are not in the file; the emulated driver knows them.
base::Result<HostDescription> parse_host_file(const std::string& text, const std::string& path,
                                              const std::string& boot_id);

// Reads the file at each describe().
std::unique_ptr<HostTopology> open_host_file(std::string path, std::string boot_id);

}  // namespace gpu_platform::hardware
