#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shims/command_call.h"

// The commands of scontrol that change jobs, through the daemon's calls of the same meaning.

namespace gpu_platform::shims {

// hold, uhold, release, requeue, requeuehold, top, update.
bool changes_jobs(std::string_view command);

// `words` begins with the command. All jobs are tried; the exit code.
int change_jobs(CommandCall& call, std::span<const std::string> words);

}  // namespace gpu_platform::shims
