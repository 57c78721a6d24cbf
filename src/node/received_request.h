#pragma once

#include <string>
#include <string_view>

#include "node/protocol.h"

// A LaunchRequest that came from the daemon: how its bytes are read, and whether it may be obeyed.

namespace gpu_platform::node {

// The content of a sealed memory file, which its sender cannot change any more; empty when it is
// none. Stays mapped until release_request.
std::string_view map_request(int fd);
void release_request(std::string_view bytes);

// Returns why the request may not be started in this boot, for any user; empty when it may.
std::string error_of(const LaunchRequest& request, std::string_view boot_id);

}  // namespace gpu_platform::node
