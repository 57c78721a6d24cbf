#pragma once

#include <string>

#include "cli/text/text.h"
#include "gpu_platform/v1/planning.pb.h"

// What would be, as text for people.

namespace gpu_platform::cli {

// Returns what `jobs explain` prints of an Explanation: why the job waits and until when, or why it
// runs where it does.
std::string explanation_page(const v1::Explanation& explanation, const PageStyle& style);

// Returns what `check` prints of a CheckResult.
std::string check_page(const v1::CheckResult& result, const PageStyle& style);

}  // namespace gpu_platform::cli
