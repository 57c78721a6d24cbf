#pragma once

#include <optional>
#include <string>

#include "cli/client_names.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"

// What happens next to a job that was just submitted, for a person at a terminal.

namespace gpu_platform::cli {

// Returns "it waits: 1 node is 4 GPUs short; with --time 4h it starts now", or "it starts on
// dgx-1:0-1", or nothing if that is not known yet.
std::string next_step_text(const v1::Explanation& explanation, base::Instant now);

// Whether both streams are terminals: scripts read the bare id and nothing else.
bool is_told_next_step(const ProcessEnvironment& process_environment);

// Asks the daemon a few times within half a second, as long as the job's first turn is still to
// come. Nothing if it cannot say.
std::string next_step_of(Console& console, Client& client, const std::string& id);

}  // namespace gpu_platform::cli
