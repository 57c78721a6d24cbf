#pragma once

#include <span>
#include <string>

#include "shims/command_call.h"

// The commands of scontrol that change nodes and reservations, through the daemon's calls of the
// same meaning.

namespace gpu_platform::shims {

// "update NodeName=…", "create reservation …", "delete reservation=…".
bool changes_site(std::span<const std::string> words);

// `words` begins with the command. The exit code.
int change_site(CommandCall& call, std::span<const std::string> words);

}  // namespace gpu_platform::shims
