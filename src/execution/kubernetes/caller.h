#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/units.h"
#include "kubernetes/client.h"
#include "os/clock.h"

namespace gpu_platform::execution {

// Calls one after the other, within one deadline. For what is done before the engine's own thread
// runs, or after it. Thread: the client's.
class Caller {
 public:
  Caller(kubernetes::Client& client, base::Duration patience)
      : client_(client), end_ns_(os::monotonic_ns() + patience.value()) {}

  kubernetes::Answer call(kubernetes::Request request) {
    std::optional<kubernetes::Answer> answer;
    request.timeout = std::min(request.timeout, left());
    client_.send(std::move(request), [&answer](const kubernetes::Answer& came) { answer = came; });
    while (!answer) {
      client_.poll(base::milliseconds(100));
      if (!answer && left() <= base::Duration()) return {.failure = "no answer in time"};
    }
    return *std::move(answer);
  }
  base::Duration left() const { return base::nanoseconds(end_ns_ - os::monotonic_ns()); }
  void wait(base::Duration time) {
    const std::int64_t until = std::min(end_ns_, os::monotonic_ns() + time.value());
    while (os::monotonic_ns() < until) {
      client_.poll(base::nanoseconds(until - os::monotonic_ns()));
    }
  }

 private:
  kubernetes::Client& client_;
  std::int64_t end_ns_;
};

}  // namespace gpu_platform::execution
