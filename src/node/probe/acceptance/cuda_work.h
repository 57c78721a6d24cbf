#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::node {

struct CudaWork {
  std::string device;  // its name
  std::uint64_t launches = 0;
  std::uint64_t checked = 0;  // numbers that the GPU computed and this CPU agrees with
};

// Keeps the first visible GPU busy for a time through the CUDA driver library (dlopen), and
// computes a part of its results again. An error where there is no GPU, or where a result is wrong.
base::Result<CudaWork> do_cuda_work(const std::string& library, base::Duration time);

}  // namespace gpu_platform::node
