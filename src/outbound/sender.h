#pragma once

#include <memory>

#include "outbound/channel.h"
#include "outbound/outcome.h"
#include "outbound/transfer.h"

namespace gpu_platform::outbound {

// Sends messages to one channel, as its kind wants them. Secrets are read at each message. Thread:
// one.
class Sender {
 public:
  // `stop`: what is under way ends at once when this descriptor can be read; -1: there is none.
  Sender(Channel channel, int stop) : channel_(std::move(channel)), stop_(stop) {}

  Outcome send(const Delivery& delivery);

 private:
  base::Result<std::string> url() const;
  base::Result<std::vector<std::string>> headers(const Delivery& delivery) const;
  Outcome post(const std::string& url, const Delivery& delivery);
  Outcome mail(const std::string& url, const Delivery& delivery);

  const Channel channel_;
  const int stop_;
  std::unique_ptr<Transfer> transfer_;  // made with the first message that needs one
};

}  // namespace gpu_platform::outbound
