#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/protocol.h"
#include "node/record.h"
#include "node/supervisor/life/job_life.h"

namespace gpu_platform::node {

// What a step runs, as JobStartOptions wants it.
std::vector<std::string_view> command_of(const LaunchRequest& request, JobStep step);
// Returns what the user's epilog is told about the command's end; nothing for the other steps.
std::vector<std::string> environment_of(JobStep step, const EndRecord& end);

}  // namespace gpu_platform::node
