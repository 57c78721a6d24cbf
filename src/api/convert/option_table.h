#pragma once

#include <string>

namespace gpu_platform::api {

// Returns the command-line options of a job as a table in Markdown (docs/cli.md). Its last column
// says which of them 'jobs update' has too.
std::string option_table();

}  // namespace gpu_platform::api
