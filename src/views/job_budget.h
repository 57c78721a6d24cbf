#pragma once

#include <string>

#include "controller/snapshot.h"
#include "model/job.h"

namespace gpu_platform::views {

// Says when the job ends by its own budget if it gets the dearest GPUs that it accepts: "budget
// 10.00: pays for 1 h 49 min on H100-80GB; the job ends then". Empty: it has none, or that pays for
// its whole limit. Cost: the GPUs of all nodes if it has one.
std::string budget_note(const controller::Snapshot& snapshot, const model::JobSpec& spec);

}  // namespace gpu_platform::views
