#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/units.h"
#include "kubernetes/client.h"
#include "os/clock.h"

namespace gpu_platform::execution {

// How long is waited for answers.
struct CallLimits {
  base::Duration timeout;  // of all calls together
  // Asked again and again: true, and nothing is waited for any more. Empty: never.
  std::function<bool()> must_end = {};
};

// Calls one after the other, within one deadline. For what is done before the engine's own thread
// runs, or after it. Thread: the client's.
class Caller {
 public:
  Caller(kubernetes::Client& client, CallLimits limits)
      : client_(client),
        must_end_(std::move(limits.must_end)),
        end_ns_(os::monotonic_ns() + limits.timeout.value()) {}

  kubernetes::Answer call(kubernetes::Request request) {
    std::optional<kubernetes::Answer> answer;
    request.timeout = std::min(request.timeout, left());
    const kubernetes::RequestId id = client_.send(
        std::move(request), [&answer](const kubernetes::Answer& came) { answer = came; });
    while (!answer) {
      client_.poll(kStep);
      if (answer || left() > base::Duration()) continue;
      client_.cancel(id);
      return {.failure = "no answer in time"};
    }
    return *std::move(answer);
  }
  // Nothing, once the waiting must end.
  base::Duration left() const {
    if (must_end_ && must_end_()) return {};
    return base::nanoseconds(end_ns_ - os::monotonic_ns());
  }
  void wait(base::Duration time) {
    const std::int64_t until = os::monotonic_ns() + time.value();
    while (os::monotonic_ns() < until && left() > base::Duration()) {
      client_.poll(std::min(kStep, base::nanoseconds(until - os::monotonic_ns())));
    }
  }

 private:
  static constexpr base::Duration kStep = base::milliseconds(100);

  kubernetes::Client& client_;
  std::function<bool()> must_end_;
  std::int64_t end_ns_;
};

}  // namespace gpu_platform::execution
