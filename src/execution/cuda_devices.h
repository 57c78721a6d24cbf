#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execution/engine.h"

// What CUDA_VISIBLE_DEVICES has for the GPUs of a job. Pure.

namespace gpu_platform::execution {

// Many programs read the variable as small integers, and an MIG device has no number in CUDA.
enum class CudaNames : std::uint8_t {
  kAuto,   // numbers; UUIDs where one of the GPUs is an MIG device
  kIndex,  // numbers
  kUuid,   // UUIDs
};

// Returns the name of each GPU, in their order. `sees_others`: the job's processes see all GPUs of
// the node, and so the numbers are those of the node's driver; else they are 0 to N-1. Both are in
// PCI order, which CUDA has with CUDA_DEVICE_ORDER=PCI_BUS_ID.
std::vector<std::string> cuda_devices(const std::vector<LaunchGpu>& gpus, CudaNames names,
                                      bool sees_others);

}  // namespace gpu_platform::execution
