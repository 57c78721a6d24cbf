#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpu_platform::node {

struct CudaOutcome {
  bool has_run = false;                         // false: there is no library that can be used
  std::map<std::string, std::string> failures;  // by UUID
  std::string detail;                           // what was done, or why nothing
};

struct CudaDepth {
  std::uint32_t patterns = 1;  // in memory, each with its inverse
  std::int64_t work_ms = 0;    // of arithmetic on each GPU
};
inline constexpr CudaDepth kQuickDepth{1, 2'000};
inline constexpr CudaDepth kDeepDepth{8, 30'000};

// Burns in GPUs through CUDA's driver library: patterns in most of the memory that is free,
// arithmetic with a known result on all multiprocessors, and copies between each two of them. What
// fails is a GPU's failure; a copy is one of both ends.
CudaOutcome check_with_cuda(const std::vector<std::string>& uuids, CudaDepth depth,
                            const char* library);

}  // namespace gpu_platform::node
