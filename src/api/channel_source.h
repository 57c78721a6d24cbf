#pragma once

#include <functional>
#include <utility>

#include <unistd.h>

#include "base/result.h"
#include "model/channel.h"

namespace gpu_platform::api {

// Our end of a channel: a SOCK_SEQPACKET socket with one frame in each packet. Closing it hangs up.
class ChannelSocket {
 public:
  explicit ChannelSocket(int fd) : fd_(fd) {}
  ChannelSocket(ChannelSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ChannelSocket& operator=(ChannelSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ChannelSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Opens channels into running attempts. Safe from any thread.
class ChannelSource {
 public:
  using Opened = std::function<void(base::Result<ChannelSocket>)>;

  virtual ~ChannelSource() = default;
  // Returns at once. `opened` is called once, on whatever thread, or dropped when the program ends.
  virtual void open(model::ChannelOrder order, Opened opened) = 0;
};

}  // namespace gpu_platform::api
