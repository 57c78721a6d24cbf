#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The file of srun --multi-prog: which program each task runs (srun(1), "MULTIPLE PROGRAM
// CONFIGURATION"). Pure.

namespace gpu_platform::shims {

// The words of each task's program, by its number: "0,2-3 ./a %t" and "* ./b %o", with comments,
// quotes, and lines that go on after a backslash. `arguments` go behind those of the file. Errors
// name the line. A task without a program is an error.
base::Result<std::vector<std::vector<std::string>>> programs_of_tasks(
    std::string_view file, std::uint32_t tasks, const std::vector<std::string>& arguments);

}  // namespace gpu_platform::shims
