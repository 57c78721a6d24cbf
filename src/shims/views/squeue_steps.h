#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/options/option_table.h"
#include "shims/text/columns.h"
#include "shims/views/step_view.h"

// squeue --steps: a line for each step that runs.

namespace gpu_platform::shims {

struct QueueStepRow {
  const v1::Job& job;
  StepView step;
  base::Instant now;
};

base::Result<std::vector<Bound<QueueStepRow>>> step_columns_of(const Settings& settings);

// The steps of these jobs that run; only those that `wanted` names ("7.0,8.batch"), unless it is
// empty.
std::vector<QueueStepRow> running_steps(const std::vector<v1::Job>& jobs, const std::string& wanted,
                                        base::Instant now);

}  // namespace gpu_platform::shims
