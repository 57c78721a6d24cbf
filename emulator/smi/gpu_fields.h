#pragma once

#include <span>
#include <string_view>

#include "smi/reading.h"

namespace gpu_emulator {

class Gpu;

// One field of --query-gpu.
struct GpuField {
  std::string_view names;  // separated by spaces; the first is the one of the header
  std::string_view unit;   // in the header
  Reading (*read)(const Gpu&);
};

// In the order of the original's list. A field that NVML tells nothing about is there and answers
// "[N/A]". The fields about no single GPU (timestamp, driver_version, count) are not among them.
std::span<const GpuField> gpu_fields();

}  // namespace gpu_emulator
