#pragma once

#include <string>

namespace gpu_platform::model {

// The page docs/states.md, made from the tables in states.h: for each machine a diagram (mermaid)
// and every transition with its reason. A test holds the page to this text.
std::string state_diagrams();

}  // namespace gpu_platform::model
