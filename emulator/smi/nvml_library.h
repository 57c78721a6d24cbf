#pragma once

#include <string>

#include "nvml/nvml_exports.h"

namespace gpu_emulator {

// libnvidia-ml.so.1 as the dynamic linker finds it: NVIDIA's or the emulated one. It is never
// unloaded.
class NvmlLibrary {
 public:
  NvmlLibrary();

  bool is_there() const { return handle_ != nullptr; }
  bool has(const char* name) const { return symbol(name) != nullptr; }

  // Calls the function of that name, which must have the type `Function`. A library that lacks it
  // answers kFunctionNotFound.
  template <class Function, class... Arguments>
  Return call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Function*>(symbol(name));
    return function == nullptr ? kFunctionNotFound : function(arguments...);
  }

  // NVML's own words for a code.
  std::string words_for(Return code) const;

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
};

}  // namespace gpu_emulator
