#pragma once

#include <string>
#include <string_view>

#include "node/protocol.h"

namespace gpu_platform::node {

// Returns why these rules do not let the daemon have this done to GPUs; empty: they do. A rule is a
// line "allow WHAT", WHAT being reset, check or power; '#' begins a comment. Rules with any other
// line allow nothing.
std::string refusal_of(std::string_view rules, DriverVerb verb);

// The same for the rules in a file that only root, or this process's user, can write.
std::string refusal_of_file(const std::string& path, DriverVerb verb);

}  // namespace gpu_platform::node
