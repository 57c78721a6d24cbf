#pragma once

#include <vector>

#include "model/event.h"

namespace gpu_platform::controller {

// What a judgement comes to, in the order in which it happens.
using Events = std::vector<model::Event>;

}  // namespace gpu_platform::controller
