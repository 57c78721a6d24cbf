#pragma once

#include <string>

#include "base/units.h"
#include "cli/json_view.h"

// What would be, as text for people.

namespace gpu_platform::cli {

// Returns what `jobs explain` prints of an Explanation: why the job waits and until when, or why it
// runs where it does.
std::string explanation_page(const Json& explanation, base::Instant now);

// Returns what `check` prints of a CheckResult.
std::string check_page(const Json& result, base::Instant now);

}  // namespace gpu_platform::cli
