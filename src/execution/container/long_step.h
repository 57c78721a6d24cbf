#pragma once

#include <functional>
#include <string>

#include "base/units.h"

namespace gpu_platform::execution {

// What a step that may take minutes needs of the one who waits for it.
struct LongStep {
  // Takes what is being done now, for people: "pulling the image, 43 %".
  std::function<void(const std::string&)> tell;
  // Waits that long; false: the step is to be given up.
  std::function<bool(base::Duration)> wait;
};

}  // namespace gpu_platform::execution
