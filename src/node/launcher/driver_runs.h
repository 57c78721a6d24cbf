#pragma once

#include <string>
#include <vector>

#include "node/launcher/children.h"
#include "node/launcher/launcher_host.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// Runs gpu-platform-driver for one request each: the only program of ours that writes to a GPU's
// driver. A copy of the launcher watches it and kills it at its deadline, so a driver that hangs
// holds up nothing else. One request for real GPUs is at work at a time; the others wait, within
// their deadline.
class DriverRuns {
 public:
  // All must outlive it.
  DriverRuns(const LauncherOptions& options, const LauncherHost& host, Children& children)
      : o_(options), host_(host), children_(children) {}
  ~DriverRuns();
  DriverRuns(const DriverRuns&) = delete;
  DriverRuns& operator=(const DriverRuns&) = delete;

  // The answer comes on that socket, which stays the caller's.
  void start(const RunDriver& order, int socket);

 private:
  std::string refusal_of_order(const RunDriver& order) const;
  void forget_ended();

  const LauncherOptions& o_;
  const LauncherHost& host_;
  Children& children_;
  std::vector<int> watchers_;  // pidfds
};

}  // namespace gpu_platform::node
