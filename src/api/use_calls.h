#pragma once

#include "api/peer.h"
#include "base/result.h"

namespace gpu_platform::api {

struct CallContext;

// What jobs did on their GPUs: the calls of UseService. Safe from any thread.
class UseCalls {
 public:
  explicit UseCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
