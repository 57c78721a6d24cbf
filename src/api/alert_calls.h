#pragma once

#include "api/peer.h"
#include "base/result.h"

namespace gpu_platform::api {

struct CallContext;

// Alerts, rules, silences and channels: the calls of AlertService. Safe from any thread.
class AlertCalls {
 public:
  explicit AlertCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
