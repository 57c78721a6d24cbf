#pragma once

#include <string>
#include <vector>

#include "doctor/findings.h"

// What `gpu-platform doctor` prints besides its table.

namespace gpu_platform::doctor {

// Returns the findings as one JSON document on one line, without its end (docs/contract.md). Bytes
// that are not UTF-8 are replaced.
std::string findings_json(const std::vector<Finding>& findings);

// Returns a heading and one line for each finding that has advice; empty if none has.
std::string advice_text(const std::vector<Finding>& findings);

}  // namespace gpu_platform::doctor
