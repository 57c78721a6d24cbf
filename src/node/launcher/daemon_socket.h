#pragma once

#include <string>

#include "node/launcher/launcher.h"

namespace gpu_platform::node {

// The place where a launcher that runs by itself waits for daemons: a named socket in a folder that
// no other user can change. It belongs to the daemon's user.
class DaemonSocket {
 public:
  // In place of a predecessor's: the launcher's lock is held. Returns why it failed, or nothing.
  std::string open(const std::string& path, std::uint32_t client_uid);
  // Waits for the next daemon. Returns -1 with errno. The caller closes it.
  int accept() const;
  // Returns whether root or the daemon's user is at its other end.
  bool may_connect(int connection) const;
  // For a child of the launcher.
  void close_in_child() const;

 private:
  int fd_ = -1;
  std::uint32_t client_uid_ = 0;
};

}  // namespace gpu_platform::node
