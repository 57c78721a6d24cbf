#pragma once

#include <optional>
#include <string>
#include <string_view>

// The text of /proc/self/mountinfo, and of /proc files in lines. Pure.

namespace gpu_platform::node {

// Cuts the first line from the front of the text; without its line feed.
std::string_view take_line(std::string_view& text);

struct Mount {
  std::string root;     // of what is mounted, within its file system
  std::string point;    // where
  std::string type;     // "cgroup2"
  std::string options;  // of the file system, "rw,memory"
};

// Cuts the first mount from the front of the text; lines that are none are skipped.
std::optional<Mount> take_mount(std::string_view& mountinfo);

}  // namespace gpu_platform::node
