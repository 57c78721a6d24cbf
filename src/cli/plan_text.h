#pragma once

#include <string>

#include "base/units.h"
#include "cli/json_view.h"

// What would be, as text for people.

namespace gpu_platform::cli {

// Of an Explanation: why the job waits and until when, or why it runs where it does: `jobs
// explain`.
std::string explanation_page(const Json& explanation, base::Instant now);

// Of a CheckResult: `check`.
std::string check_page(const Json& result, base::Instant now);

}  // namespace gpu_platform::cli
