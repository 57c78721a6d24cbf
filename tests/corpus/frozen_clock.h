#pragma once

#include <cstdint>

namespace gpu_platform::corpus {

// From now on this process's time of day is this one; 0: it goes on as the host's.
void freeze_time(std::int64_t unix_ns);

}  // namespace gpu_platform::corpus
