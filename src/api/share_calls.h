#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/shares.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of ShareService: fair-share usage and quotas. Safe from any thread.
class ShareCalls {
 public:
  explicit ShareCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListSharesResponse> list(const v1::ListSharesRequest& request,
                                            const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
