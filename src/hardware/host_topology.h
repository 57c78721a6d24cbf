#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// Reads CPUs, memory and the places of devices from the running kernel, or from the description of
// an emulated node. Not thread-safe.
class HostTopology {
 public:
  virtual ~HostTopology() = default;

  virtual base::Result<HostDescription> describe() = 0;

  // NUMA node of the device at a PCI address of any spelling; nothing where it is not known, and
  // then the GPU driver's own word counts.
  virtual std::optional<std::uint32_t> numa_node_of(std::string_view pci_address) = 0;
};

}  // namespace gpu_platform::hardware
