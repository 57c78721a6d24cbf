#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_platform::node {

// A process that has the device of a GPU open.
struct DeviceHolder {
  std::uint32_t pid = 0;
  std::uint32_t minor = 0;  // of /dev/nvidiaN
  std::string name;         // of the process, as ps shows it

  friend bool operator==(const DeviceHolder&, const DeviceHolder&) = default;
};

// Returns who has one of these devices open, in ascending order, as far as this process may see: as
// root all. This process and the driver's own persistence service, which lets go for a reset, are
// left out. `proc` is where the kernel shows processes.
std::vector<DeviceHolder> device_holders(const std::vector<std::uint32_t>& minors,
                                         const std::string& proc = "/proc");

}  // namespace gpu_platform::node
