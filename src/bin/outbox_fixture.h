#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "outbound/outbox.h"

namespace gpu_platform::bin {

// What was put, in memory. Outlives the outbox that a part owns.
struct Sent {
  std::mutex mutex;
  std::vector<outbound::Delivery> deliveries;
  bool is_full = false;
  std::size_t max_bytes = SIZE_MAX;  // of a message
  std::uint64_t tries = 0;           // of put()
  std::uint64_t waiting = 0;         // what the channel has, as it says

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return deliveries.size();
  }
  std::string body(std::size_t i) {
    const std::lock_guard lock(mutex);
    return deliveries.at(i).body;
  }
  void set_full(bool full) {
    const std::lock_guard lock(mutex);
    is_full = full;
  }
};

class FakeOutbox final : public outbound::Outbox {
 public:
  explicit FakeOutbox(Sent& sent) : sent_(sent) {}

  base::Status put(outbound::Delivery delivery) override {
    const std::lock_guard lock(sent_.mutex);
    ++sent_.tries;
    if (delivery.body.size() > sent_.max_bytes) {
      return base::invalid("body", "a message has fewer bytes");
    }
    if (sent_.is_full) return base::fail(base::ErrorCode::kResourceExhausted, "no space");
    sent_.deliveries.push_back(std::move(delivery));
    return {};
  }
  void set_channels(std::vector<outbound::Channel>) override {}
  base::Status try_now(const outbound::Delivery& delivery) override {
    if (delivery.body.find("this is a test") != std::string::npos) return {};
    return base::fail(base::ErrorCode::kInternal, "no test");
  }
  std::vector<outbound::ChannelState> states() const override {
    const std::lock_guard lock(sent_.mutex);
    outbound::ChannelState state;
    state.channel = "hook";
    state.waiting = sent_.waiting;
    return {state};
  }

 private:
  Sent& sent_;
};

}  // namespace gpu_platform::bin
