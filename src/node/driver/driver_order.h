#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node/protocol.h"

namespace gpu_platform::node {

// What one run of gpu-platform-driver is to do.
struct DriverOrder {
  DriverVerb verb = DriverVerb::kQuickCheck;
  std::vector<std::string> gpus;  // UUIDs
  std::uint32_t watts = 0;        // of kPower
  std::uint64_t limit_ms = 0;     // after which the program is killed
  std::string library = "libnvidia-ml.so.1";
  std::string nvidia_smi;  // of an emulated board; empty: NVIDIA's, where its driver puts it

  bool is_emulated() const { return !nvidia_smi.empty(); }
};

// Reads the arguments after the program's name; nothing: they are not what the launcher gives.
std::optional<DriverOrder> parse_driver_order(std::span<const std::string_view> arguments);

}  // namespace gpu_platform::node
