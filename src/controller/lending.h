#pragma once

#include <string>
#include <vector>

#include "controller/state.h"

namespace gpu_platform::controller {

// Finds violations of lending: work that cannot be stopped on GPUs that are guaranteed to others,
// and attempts with a wrong mark whether they borrow. There should be none.
std::vector<std::string> passed_guarantees(const State& state);

}  // namespace gpu_platform::controller
