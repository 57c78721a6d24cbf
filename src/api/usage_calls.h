#pragma once

#include "gpu_platform/v1/usage.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What was used, and what it cost: the calls of UsageService. Safe from any thread.
class UsageCalls {
 public:
  explicit UsageCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
