#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpu_platform::node {

using CudaPointer = std::uint64_t;

// The functions of CUDA's driver library that the burn-in calls, in the form that CUDA 9 and later
// have. Each returns a CUresult.
struct CudaFunctions {
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_uuid)(unsigned char*, int) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*free_memory)(std::size_t*, std::size_t*) = nullptr;
  int (*allocate)(CudaPointer*, std::size_t) = nullptr;
  int (*release)(CudaPointer) = nullptr;
  int (*set_words)(CudaPointer, unsigned, std::size_t) = nullptr;
  int (*copy_to_gpu)(CudaPointer, const void*, std::size_t) = nullptr;
  int (*copy_from_gpu)(void*, CudaPointer, std::size_t) = nullptr;
  int (*copy_to_peer)(CudaPointer, void*, CudaPointer, void*, std::size_t) = nullptr;
  int (*load_module)(void**, const void*) = nullptr;
  int (*find_kernel)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
};

// Opens the library. Returns why it cannot be used, for people; empty: `functions` is complete. It
// stays loaded.
std::string open_cuda(const char* library, CudaFunctions& functions);

}  // namespace gpu_platform::node
