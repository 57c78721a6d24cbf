#pragma once

#include <string>

#include "cli/client_names.h"

namespace gpu_platform::cli {

// Prints to stderr what the job did on its GPUs, if that is known.
void tell_use(Console& console, Client& client, const std::string& id);

}  // namespace gpu_platform::cli
