#include "node/launcher/container_cleaning.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <iterator>
#include <string>

#include "os/clock.h"

namespace gpu_platform::node {

namespace {
constexpr std::int64_t kStartEveryMs = 3'600'000;
}

void ContainerCleaning::start() {
  const std::string cluster = host_.rootless_cluster();
  const std::string& base = host_.base.path;
  if (host_.container_client.empty() || (base.empty() && cluster.empty())) return;
  started_ms_ = os::boot_ms();
  std::string words[] = {host_.container_client,
                         "clean",
                         "--rules",
                         o_.containers,
                         cluster.empty() ? "--cgroup" : "--cluster",
                         cluster.empty() ? base : cluster,
                         "--root",
                         host_.folders.path};
  char* arguments[std::size(words) + 1] = {};
  for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  int pid = 0;
  posix_spawn(&pid, arguments[0], nullptr, &how, arguments, environ);
  posix_spawnattr_destroy(&how);
}

void ContainerCleaning::start_if_due() {
  if (os::boot_ms() - started_ms_ >= kStartEveryMs) start();
}

}  // namespace gpu_platform::node
