#pragma once

#include <sys/types.h>

#include <expected>
#include <optional>
#include <string>
#include <vector>

// Starting another program, with nothing of ours but what is named.

namespace gpu_platform::os {

// What a descriptor of the child is, besides a descriptor of ours.
inline constexpr int kNull = -1;    // /dev/null
inline constexpr int kShared = -2;  // the same as ours of that number

// The number of the one descriptor that a child may have besides its three.
inline constexpr int kChildLink = 3;

struct ChildProgram {
  std::vector<std::string> words;  // the program's arguments, its name first
  std::string file;                // the file that is executed; empty: the first of the words
  bool searches_path = false;      // a name without a slash is looked up in our PATH
  std::optional<std::vector<std::string>> environment;  // NAME=VALUE; nothing: ours
  int input = kNull;
  int output = kNull;
  int errors = kShared;
  std::optional<int> link;     // its descriptor kChildLink, a descriptor of ours
  bool leads_session = false;  // without our terminal; else it leads a process group alone
};

// Starts the program. It can be signalled as a group (kill(-pid)), no signal is blocked or ignored
// in it, also if they are not so in us, and it has no descriptor but those named. The caller reaps
// it. The error is an errno.
std::expected<pid_t, int> start_child_process(const ChildProgram& child);

}  // namespace gpu_platform::os
