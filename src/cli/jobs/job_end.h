#pragma once

#include <optional>
#include <string>

#include "client/follow.h"

// The end of a job, told to people.

namespace gpu_platform::cli {

// "job 42 FAILED: signal SIGKILL (OUT_OF_MEMORY)".
std::string describe_end(const v1::Job& job);

// The end of the job as the exit code of `run`, with a line about what the code does not tell.
int tell_end(client::Console& console,
             const client::Called<std::optional<client::EndedJob>>& ended);

}  // namespace gpu_platform::cli
