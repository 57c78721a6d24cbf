#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job.h"

// Refusals that several judges give.

namespace gpu_platform::controller {

// The state of the job does not allow what is asked for. `field` is what is at fault.
std::unexpected<base::Error> refused(std::string message, std::string field = "id");
// `what` ends "and cannot be": "held".
std::unexpected<base::Error> has_ended(const model::Job& job, std::string_view what);

}  // namespace gpu_platform::controller
