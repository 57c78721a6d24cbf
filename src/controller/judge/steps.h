#pragma once

#include <optional>

#include "base/result.h"
#include "model/command.h"
#include "model/event.h"
#include "model/job.h"
#include "store/store.h"

// What processes of a job report of its steps.

namespace gpu_platform::controller {

// Returns the record of the step; nothing if the job has it already, or has its end. A report is
// believed as far as it makes sense for this job: everything in it is the job's own word. Refused
// where the attempt does not run, the job has as many steps as are kept, or a value is out of
// range; the error names the field.
base::Result<std::optional<model::StepRecorded>> judge_step(const model::Job& job,
                                                            const model::RecordStep& command,
                                                            base::Instant now,
                                                            store::Headroom headroom);

}  // namespace gpu_platform::controller
