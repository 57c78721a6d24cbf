#pragma once

#include <functional>
#include <string>

#include "base/units.h"

namespace gpu_platform::execution {

// The callbacks of a caller that waits for a step of minutes.
struct LongStep {
  // Takes the progress as a text for users: "pulling the image, 43 %".
  std::function<void(const std::string&)> tell;
  // Waits that long. Returns false if the step is cancelled.
  std::function<bool(base::Duration)> wait;
};

}  // namespace gpu_platform::execution
