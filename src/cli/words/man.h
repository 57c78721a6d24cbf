#pragma once

#include <span>
#include <vector>

#include "cli/cli.h"
#include "cli/text/roff.h"

namespace gpu_platform::cli {

// gpu-platform(1), and a page for each first word of a command: gpu-platform-submit(1),
// gpu-platform-jobs(1) with all that 'jobs' does, … Made of what the commands themselves say.
std::vector<ManPage> man_pages(std::span<const OtherCommand> others);

}  // namespace gpu_platform::cli
