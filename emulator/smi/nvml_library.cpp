#include "smi/nvml_library.h"

#include <dlfcn.h>

namespace gpu_emulator {

NvmlLibrary::NvmlLibrary() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}

void* NvmlLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

std::string NvmlLibrary::words_for(Return code) const {
  auto* words = reinterpret_cast<decltype(nvmlErrorString)*>(symbol("nvmlErrorString"));
  return words == nullptr ? "Unknown Error" : words(code);
}

}  // namespace gpu_emulator
