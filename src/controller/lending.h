#pragma once

#include <string>
#include <vector>

#include "controller/state.h"

namespace gpu_platform::controller {

// Work that cannot be stopped on what is guaranteed to others, and attempts that say of themselves
// that they borrow, or do not, where it is otherwise: there should be none.
std::vector<std::string> passed_guarantees(const State& state);

}  // namespace gpu_platform::controller
