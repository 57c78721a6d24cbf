#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/json_view.h"
#include "shims/options/option_table.h"
#include "shims/text/columns.h"
#include "shims/views/step_view.h"

// squeue --steps: a line for each step that runs.

namespace gpu_platform::shims {

struct QueueStepRow {
  const cli::Json& job;
  StepView step;
  base::Instant now;
};

base::Result<std::vector<Bound<QueueStepRow>>> step_columns_of(const Settings& settings);

// The steps of these jobs that run; only those that `wanted` names ("7.0,8.batch"), unless it is
// empty.
std::vector<QueueStepRow> running_steps(const std::vector<cli::Json>& jobs,
                                        const std::string& wanted, base::Instant now);

}  // namespace gpu_platform::shims
