#pragma once

#include <string>
#include <string_view>

#include "health/evidence_file/replay.h"
#include "health/rules.h"

// The answers of `health replay` and `health rules` as JSON (docs/health-evidence.md).

namespace gpu_platform::health {

std::string replay_json(const Replay& replay);
std::string rules_json(const Rules& rules, std::string_view gpu_type, std::string_view node = {});

}  // namespace gpu_platform::health
