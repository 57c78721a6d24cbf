#pragma once

#include <vector>

#include "model/event.h"

namespace gpu_platform::controller {

// The events of a judgement, in the order in which they happen.
using Events = std::vector<model::Event>;

}  // namespace gpu_platform::controller
