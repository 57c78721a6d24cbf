#pragma once

#include <cstdint>

#include "node/launcher/launcher_host.h"

namespace gpu_platform::node {

// Has the program that speaks to the container engine remove what attempts that are over have left
// there, and unused images. No process waits for it. Does nothing where jobs have no image.
class ContainerCleaning {
 public:
  // Both must outlive it.
  ContainerCleaning(const LauncherOptions& options, const LauncherHost& host)
      : o_(options), host_(host) {}

  void start();
  // Jobs' images grow old meanwhile.
  void start_if_due();

 private:
  const LauncherOptions& o_;
  const LauncherHost& host_;
  std::int64_t started_ms_ = 0;  // on the boot clock
};

}  // namespace gpu_platform::node
