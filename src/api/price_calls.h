#pragma once

#include "gpu_platform/v1/prices.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What GPUs cost: the calls of PriceService. Safe from any thread.
class PriceCalls {
 public:
  explicit PriceCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
