#pragma once

#include <string>

namespace gpu_platform::api {

// The options of the command line that say what a job is to be, as a table in Markdown
// (docs/cli.md). Its last column says which of them 'jobs update' has too.
std::string option_table();

}  // namespace gpu_platform::api
