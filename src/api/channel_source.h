#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <unistd.h>

#include "base/result.h"
#include "model/channel.h"

namespace gpu_platform::api {

// Our end of a channel: a SOCK_SEQPACKET socket with one frame in each packet. Closing it hangs up.
class ChannelSocket {
 public:
  // The owner of the socket keeps `witness` as long as the channel is open; its destructor notices
  // the end.
  explicit ChannelSocket(int fd, std::shared_ptr<const void> witness = nullptr)
      : fd_(fd), witness_(std::move(witness)) {}
  ChannelSocket(ChannelSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), witness_(std::move(other.witness_)) {}
  ChannelSocket& operator=(ChannelSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(witness_, other.witness_);
    return *this;
  }
  ~ChannelSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int release() { return std::exchange(fd_, -1); }
  std::shared_ptr<const void> witness() const { return witness_; }

 private:
  int fd_;
  std::shared_ptr<const void> witness_;
};

// Opens channels into running attempts. Safe from any thread.
class ChannelSource {
 public:
  using Opened = std::function<void(base::Result<ChannelSocket>)>;

  virtual ~ChannelSource() = default;
  // Returns at once. `opened` is called once, on any thread, or dropped when the program ends.
  virtual void open(model::ChannelOrder order, Opened opened) = 0;
};

}  // namespace gpu_platform::api
