#pragma once

#include <compare>
#include <string>

namespace gpu_platform::execution {

// A device of a ResourceSlice, by what allocates it.
struct DeviceName {
  std::string driver;
  std::string pool;
  std::string device;

  friend auto operator<=>(const DeviceName&, const DeviceName&) = default;
};

}  // namespace gpu_platform::execution
