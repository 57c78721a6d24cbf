#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The device nodes that a job may use. Pure: the kernel's list of drivers is an argument.
//
// A job gets the NVIDIA nodes of its own GPUs and, with any GPU, the control nodes that all GPUs
// share (the node for mode setting, which drawing needs, only if the site allows it). Every other
// NVIDIA node is refused, under any name and with any owner, because the kernel checks the number.
// The rules for other devices:
//   block devices, physical memory and ports, direct rendering: refused
//   mknod: refused, except for the whiteouts (0:0) of overlay file systems, which open nothing
//   other character devices: their owner and mode decide. Terminals, FUSE and the adapters of fast
//     networks get their numbers when their driver is loaded, so a list of ordinary devices would
//     break a host that loads drivers later. The modes bind every user except root.

namespace gpu_platform::node {

struct DeviceNumber {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend auto operator<=>(const DeviceNumber&, const DeviceNumber&) = default;
};

// GPUs have this major; the number within it is the driver's "minor number", not NVML's index.
// Source: nv-chardev-numbers.h of NVIDIA's open kernel modules.
inline constexpr std::uint32_t kGpuMajor = 195;
inline constexpr std::uint32_t kMaxGpuMinor = 247;

// The rules for character devices. A device is allowed if it is in `allowed`, else refused if its
// major is in `guarded`. Both ascending, without repeats.
struct DeviceRules {
  std::vector<DeviceNumber> allowed;
  std::vector<std::uint32_t> guarded;
  friend bool operator==(const DeviceRules&, const DeviceRules&) = default;
};

struct DeviceGrounds {
  std::string_view proc_devices;  // what /proc/devices says
  bool mode_setting = false;      // /dev/nvidia-modeset too
};
// Returns the rules for a job with these GPUs.
DeviceRules device_rules(const DeviceGrounds& grounds, std::span<const DeviceNumber> gpus);

// Returns why a job may not get one of these; empty if each is a GPU of this node, or a capability
// of one (MIG). `gpu_minors`: the GPUs that the driver knows. Without a driver any number that a
// GPU can have is accepted, because there is no device behind it.
std::string error_in_devices(std::span<const DeviceNumber> devices, std::string_view proc_devices,
                             const std::optional<std::vector<std::uint32_t>>& gpu_minors);

// Returns "Device Minor" from the text of /proc/driver/nvidia/gpus/*/information.
std::optional<std::uint32_t> parse_device_minor(std::string_view information);

}  // namespace gpu_platform::node
