#include "node/driver/power_limit.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace gpu_platform::node {

namespace {

constexpr int kSuccess = 0;
constexpr int kNoPermission = 4;

// The one function of NVML that writes, and what it needs. Apart from hardware/nvml, which only
// reads. The library stays loaded until the process ends, which is soon.
class WritingNvml {
 public:
  explicit WritingNvml(const std::string& library)
      : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    is_open_ = call<int()>("nvmlInit_v2") == kSuccess;
  }
  WritingNvml(const WritingNvml&) = delete;
  WritingNvml& operator=(const WritingNvml&) = delete;
  ~WritingNvml() {
    if (is_open_) call<int()>("nvmlShutdown");
  }
  bool is_open() const { return is_open_; }

  // -1: the library has no such function.
  template <class Function, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<Function*>(symbol(name));
    return function == nullptr ? -1 : function(arguments...);
  }

  std::string words(int code) const {
    auto* const function = reinterpret_cast<const char* (*)(int)>(symbol("nvmlErrorString"));
    return code < 0 || function == nullptr ? "the driver's library lacks the function"
                                           : function(code);
  }

 private:
  void* symbol(const char* name) const {
    return handle_ == nullptr ? nullptr : dlsym(handle_, name);
  }

  void* handle_;
  bool is_open_ = false;
};

std::string in_watts(std::uint32_t milliwatts) {
  return fmt::format("{} W", milliwatts / 1000);
}

}  // namespace

std::string set_power_limit(const std::string& library, const std::string& uuid,
                            std::uint32_t milliwatts) {
  const WritingNvml nvml(library);
  if (!nvml.is_open()) return library + " cannot be opened";
  void* gpu = nullptr;
  int code = nvml.call<int(const char*, void**)>("nvmlDeviceGetHandleByUUID", uuid.c_str(), &gpu);
  if (code != kSuccess) return "the driver does not list it: " + nvml.words(code);
  unsigned least = 0;
  unsigned most = 0;
  code = nvml.call<int(void*, unsigned*, unsigned*)>("nvmlDeviceGetPowerManagementLimitConstraints",
                                                     gpu, &least, &most);
  if (code != kSuccess) return "its board has no power limit: " + nvml.words(code);
  if (milliwatts < least || milliwatts > most) {
    return fmt::format("{} is no power limit of its board: give {} to {}", in_watts(milliwatts),
                       in_watts(least), in_watts(most));
  }
  code = nvml.call<int(void*, unsigned)>("nvmlDeviceSetPowerManagementLimit", gpu, milliwatts);
  if (code == kNoPermission) {
    return "the driver lets only root set it: run the launcher as root (docs/deployment.md)";
  }
  return code == kSuccess ? "" : "the driver refuses: " + nvml.words(code);
}

}  // namespace gpu_platform::node
