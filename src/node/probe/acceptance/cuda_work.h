#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::node {

struct CudaWork {
  std::string device;  // its name
  std::uint64_t launches = 0;
  std::uint64_t checked = 0;  // numbers that the GPU computed and this CPU agrees with
  double launches_per_second = 0;
  std::vector<std::int64_t> ended_us;  // when each launch had been checked, by CLOCK_MONOTONIC
};

struct CudaWorkOptions {
  std::string library;  // libcuda
  base::Duration time;
  std::uint32_t rounds = 20'000;  // the length of one launch: about a millisecond on an H100
  base::Bytes memory;             // held beside what the work needs, until the process ends
};

// Keeps the first visible GPU busy for a time through the CUDA driver library (dlopen), and
// computes a part of its results again. An error where there is no GPU, or where a result is wrong.
base::Result<CudaWork> do_cuda_work(const CudaWorkOptions& options);

struct CudaError {
  int code = 0;  // CUresult
  std::string name;
};

// Lets a kernel write to an address that is not mapped and returns the error that CUDA reports.
// The process can do no more work on the GPU. An error of its own (kFailedPrecondition) if CUDA
// reports none.
base::Result<CudaError> do_cuda_fault(const std::string& library);

// The UUIDs of the GPUs that CUDA shows this process, as nvidia-smi writes them.
base::Result<std::vector<std::string>> cuda_gpus(const std::string& library);

}  // namespace gpu_platform::node
