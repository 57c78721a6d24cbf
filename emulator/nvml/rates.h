#pragma once

#include <cstdint>

#include "board_state.h"

// The traffic of the boards' links. It follows the load by fixed shares, so that counters and
// throughputs of one GPU agree with each other.

namespace gpu_emulator {

// The SM clocks that a GPU offers lie this far apart.
inline constexpr std::uint32_t kClockStepMhz = 15;

// Returns the traffic into the GPU at this utilization: a tenth of what the link can carry.
inline std::uint64_t pcie_kilobytes_per_second(const GpuState& gpu, std::uint64_t percent) {
  constexpr std::uint64_t kMegabytesPerLane[] = {0, 250, 500, 985, 1969, 3938, 7563, 15125};
  const std::uint64_t full = kMegabytesPerLane[gpu.pcie_generation % 8] * gpu.pcie_width;
  return full * 1000 * percent / 1000;
}

// Returns the rate of one link in one direction, as NVML gives it for NVLink versions.
inline std::uint32_t nvlink_megabytes_per_second(const NvLink& link) {
  switch (link.version) {
    case 1:
      return 20'000;
    case 2:
      return 25'781;
    case 4:
      return 25'000;
    case 6:
      return 26'562;
    case 7:
      return 53'125;
    default:
      return 0;
  }
}

// Returns the amount sent through one link (and as much is received) in a time during which the GPU
// was wholly busy: a fifth of what the link can carry.
inline std::uint64_t nvlink_kibibytes(const NvLink& link, std::uint64_t busy_us) {
  if (link.active == 0) return 0;
  return busy_us * nvlink_megabytes_per_second(link) / 5 / 1024;
}

}  // namespace gpu_emulator
