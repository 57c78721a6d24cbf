#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gpu_platform::health {

// What the registers of an XID 74 say (A100 and H100), as NVSentinel reads them (#364). A fault
// that is `on_repeat` counts only from the second one on a GPU.
struct NvlinkFault {
  enum class Kind : std::uint8_t {
    kUnread,  // no registers, or none of the known bits
    kDriver,  // a report to NVIDIA, nothing to repair
    kSignal,  // signal integrity of the link
    kMemory,  // ECC or parity in the link's logic
    kHardware,
  };
  Kind kind = Kind::kUnread;
  bool on_repeat = false;
  std::string_view text;
};
NvlinkFault read_nvlink_registers(std::span<const std::uint32_t> registers);

}  // namespace gpu_platform::health
