#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/use.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What jobs did on their GPUs: the calls of UseService. Safe from any thread.
class UseCalls {
 public:
  explicit UseCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::JobUse> get(const v1::GetJobUseRequest& request, const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
