#pragma once

#include "simulation/faults/run_faults.h"

namespace gpu_platform::simulation {

enum class FaultReportAs { kText, kJson };

// What `gpu-platform simulate faults` does: runs the worlds and prints the report on stdout, with
// `shows_progress` how far it is on stderr where that is a terminal. Returns whether nothing was
// found. Should an assumption of the program itself break (it aborts), the command that repeats the
// world is printed first. `options.before_seed` is not called.
bool report_faults(FaultOptions options, FaultReportAs as, bool shows_progress);

}  // namespace gpu_platform::simulation
