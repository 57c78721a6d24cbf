#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::hardware {

struct ToolLimits {
  base::Duration time = base::seconds(10);
  std::size_t output_bytes = std::size_t{4} << 20;
};

struct ToolOutput {
  int exit_code = 0;
  std::string text;  // stdout and stderr, as they came
};

// Runs a program without a shell (a bare name is looked for in PATH) with an empty stdin and waits
// for its end. One that takes too long or says too much is killed, and that is an error; so is one
// that a signal ended. kNotFound where there is no such program. Blocks.
base::Result<ToolOutput> run_tool(const std::vector<std::string>& command, ToolLimits limits = {});

}  // namespace gpu_platform::hardware
