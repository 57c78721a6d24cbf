#pragma once

#include "api/peer.h"
#include "base/result.h"

namespace gpu_platform::api {

struct CallContext;

// Key figures of the site: the calls of KpiService. Safe from any thread.
class KpiCalls {
 public:
  explicit KpiCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
