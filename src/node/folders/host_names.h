#pragma once

#include <string>
#include <string_view>

// The names of emulated nodes in a job's /etc/hosts: all of them are this host. Pure.

namespace gpu_platform::node {

// Comma-separated, set by the daemon for jobs on emulated nodes. Users cannot set a variable of
// this beginning.
inline constexpr std::string_view kEmulatedNodes = "GPU_PLATFORM_EMULATED_NODES=";

// The text of the host's own file with a line for the names that it does not have. Names that are
// none of a host are left out. Empty if there is nothing to add.
std::string hosts_with_names(std::string_view hosts, std::string_view names);

}  // namespace gpu_platform::node
