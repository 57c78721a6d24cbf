#pragma once

#include <string>

#include "base/result.h"

namespace gpu_platform::outbound {

// Returns the secret in a file of the site, at most 64 KiB, without blanks and line ends around it.
// The file must belong to root or to the user of this process, and others must have no access to
// it. Errors name the file and never its content. Waits for no other side of a FIFO.
base::Result<std::string> read_secret(const std::string& path);

}  // namespace gpu_platform::outbound
