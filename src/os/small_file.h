#pragma once

#include <string>
#include <string_view>

// Reading and writing the small files of /proc and the cgroup tree. `dir` may be AT_FDCWD.

namespace gpu_platform::os {

// The content, at most 1 MiB of it; empty when it cannot be read (errno says why).
std::string read_small_file(int dir, const char* path);

// One write(2) of the whole text; false with errno when it was not taken.
bool write_small_file(int dir, const char* path, std::string_view text);

// The number that follows `key` at the start of a line ("usage_usec 4711"), or -1.
long long number_after(std::string_view text, std::string_view key);

}  // namespace gpu_platform::os
