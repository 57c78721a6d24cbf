#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/audit.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of AuditService. Safe from any thread.
class AuditCalls {
 public:
  explicit AuditCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListAuditResponse> list(const v1::ListAuditRequest& request,
                                           const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
