#pragma once

#include "api/peer.h"
#include "base/result.h"

namespace gpu_platform::api {

struct CallContext;

// The history of GPUs, hosts and jobs: the calls of TelemetryService. Safe from any thread.
class TelemetryCalls {
 public:
  explicit TelemetryCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
