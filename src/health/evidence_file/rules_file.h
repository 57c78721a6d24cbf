#pragma once

#include <string_view>

#include "base/result.h"
#include "health/rules.h"

namespace gpu_platform::health {

// Reads {"profile": "nvidia", "rules": [{"rule": "xid-31", "gpu_type": "H100", "action": "DEGRADE",
// "mode": "SHADOW"}]}. Both are optional. Errors name the field and the allowed values.
base::Result<Rules> read_rules(std::string_view text);

}  // namespace gpu_platform::health
