#pragma once

#include "outbound/channel.h"
#include "outbound/outcome.h"

namespace gpu_platform::outbound {

// Runs the channel's program without a shell, as the user of this process: the body on its standard
// input, GPU_PLATFORM_CHANNEL, GPU_PLATFORM_KEY and GPU_PLATFORM_SUBJECT in its environment, PATH,
// and nothing else of ours. Exit code 0: it is sent. At the channel's timeout, and when `stop` (a
// descriptor; -1: none) can be read, the program is killed with its process group.
Outcome run_command(const Channel& channel, const Delivery& delivery, int stop);

}  // namespace gpu_platform::outbound
