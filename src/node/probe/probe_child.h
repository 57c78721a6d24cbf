#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "node/probe/probe_runner.h"

namespace gpu_platform::node {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A running probe: its pid, the pidfd that tells of its end, and our end of the socket.
struct ProbeChild {
  pid_t pid = 0;
  OwnedFd pidfd;
  OwnedFd socket;
};

// By posix_spawn, so that a large daemon is not copied. The child has a process group of its own
// (the terminal's Ctrl-C is not for it), default signals, no descriptors of ours but its socket,
// and stderr.
base::Result<ProbeChild> spawn_probe(const ProbeRunnerOptions& options, const ProbeTarget& target);

// How a child ended, in words; empty when it has not ended yet. Reaps it.
std::string reap(const ProbeChild& child);

}  // namespace gpu_platform::node
