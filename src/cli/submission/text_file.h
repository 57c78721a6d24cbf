#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

// Returns the text of a file, which is relative to the current directory, or of standard input for
// "-". Errors say why in words that follow on the file's name, also for a text of more than
// `max_bytes`.
base::Result<std::string> read_text_file(const ProcessEnvironment& process_environment,
                                         const std::string& file, std::size_t max_bytes);

}  // namespace gpu_platform::cli
