#include "node/process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "node/syscalls.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

std::string proc_path(int pid, std::string_view rest) {
  return "/proc/" + std::to_string(pid) + std::string(rest);
}

// Field of /proc/PID/stat, counted from 1 as in proc(5); the name in field 2 may hold blanks and
// brackets.
std::string stat_field(int pid, int number) {
  const std::string text = os::read_small_file(AT_FDCWD, proc_path(pid, "/stat").c_str());
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return {};
  for (int field = 2; field < number; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return {};
  }
  return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

std::vector<int> children_of(int pid) {
  const std::string path = proc_path(pid, "/task/") + std::to_string(pid) + "/children";
  const std::string text = os::read_small_file(AT_FDCWD, path.c_str());
  std::vector<int> children;
  const char* at = text.c_str();
  while (true) {
    char* end = nullptr;
    const long child = std::strtol(at, &end, 10);
    if (end == at) return children;
    if (child > 0) children.push_back(static_cast<int>(child));
    at = end;
  }
}

int signal_below(int pid, int signal, int depth) {
  constexpr int kMaxDepth = 64;
  int found = 0;
  if (depth > kMaxDepth) return found;
  for (const int child : children_of(pid)) {
    const int handle = open_pidfd(child);
    if (handle < 0) continue;
    // Reused meanwhile, or moved to the subreaper: then it is found there in the next round.
    if (stat_field(child, 4) == std::to_string(pid)) {
      found += signal_below(child, signal, depth + 1) + 1;
      signal_pidfd(handle, signal);
    }
    close(handle);
  }
  return found;
}

}  // namespace

int signal_descendants(int signal) {
  return signal_below(getpid(), signal, 0);
}

std::uint64_t start_ticks_of(int pid) {
  return std::strtoull(stat_field(pid, 22).c_str(), nullptr, 10);
}

bool end_process_group(int leader, std::uint64_t start_ticks, int signal) {
  if (leader <= 1) return true;
  const std::uint64_t now = start_ticks_of(leader);
  // While members of the group live, its number is given to no new process: another start time
  // means that none is left.
  if (now != 0 && now != start_ticks) return true;
  if (kill(-leader, signal) == 0) return false;
  return errno == ESRCH;
}

}  // namespace gpu_platform::node
