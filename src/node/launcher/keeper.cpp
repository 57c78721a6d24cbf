#include "node/launcher/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>

#include "node/cgroup.h"
#include "node/small_file.h"

namespace gpu_platform::node {

namespace {

// Empty: moved.
std::string move_into_child() {
  const auto mount = find_cgroup2_mount(read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
  const auto own = find_cgroup2_path(read_small_file(AT_FDCWD, "/proc/self/cgroup"));
  if (!mount || !own) return "no cgroup v2 tree is mounted";
  const std::string child = *mount + *own + "/keeper";
  if (mkdir(child.c_str(), 0755) != 0 && errno != EEXIST) return "make " + child;
  if (!write_small_file(AT_FDCWD, (child + "/cgroup.procs").c_str(), "0")) return "enter " + child;
  return {};
}

}  // namespace

int keep_cgroup() {
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGTERM);
  sigaddset(&endings, SIGINT);
  sigprocmask(SIG_BLOCK, &endings, nullptr);
  if (const std::string failure = move_into_child(); !failure.empty()) {
    perror(("gpu-platform-node keeper: " + failure).c_str());
    return 1;
  }
  int signal = 0;
  return sigwait(&endings, &signal) == 0 ? 0 : 1;
}

}  // namespace gpu_platform::node
