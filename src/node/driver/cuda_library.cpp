#include "node/driver/cuda_library.h"

#include <dlfcn.h>

#include <type_traits>

namespace gpu_platform::node {

std::string open_cuda(const char* library, CudaFunctions& functions) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "there is no libcuda";
  std::string why;
  const auto take = [&](auto& function, const char* name) {
    void* const symbol = dlsym(handle, name);
    if (symbol == nullptr && why.empty()) why = std::string("libcuda lacks ") + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  take(functions.init, "cuInit");
  take(functions.device_count, "cuDeviceGetCount");
  take(functions.device_get, "cuDeviceGet");
  take(functions.device_uuid, "cuDeviceGetUuid");
  take(functions.error_name, "cuGetErrorName");
  take(functions.retain_context, "cuDevicePrimaryCtxRetain");
  take(functions.set_context, "cuCtxSetCurrent");
  take(functions.synchronize, "cuCtxSynchronize");
  take(functions.free_memory, "cuMemGetInfo_v2");
  take(functions.allocate, "cuMemAlloc_v2");
  take(functions.release, "cuMemFree_v2");
  take(functions.set_words, "cuMemsetD32_v2");
  take(functions.copy_to_gpu, "cuMemcpyHtoD_v2");
  take(functions.copy_from_gpu, "cuMemcpyDtoH_v2");
  take(functions.copy_to_peer, "cuMemcpyPeer");
  take(functions.load_module, "cuModuleLoadData");
  take(functions.find_kernel, "cuModuleGetFunction");
  take(functions.launch, "cuLaunchKernel");
  return why;
}

}  // namespace gpu_platform::node
