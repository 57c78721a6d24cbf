#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/kpi.pb.h"

namespace gpu_platform::api {

struct CallContext;

// Key figures of the site: the calls of KpiService. Safe from any thread.
class KpiCalls {
 public:
  explicit KpiCalls(const CallContext& context) : context_(context) {}

  // One pass over all ended jobs that are kept: tenths of a second for a million. The readings of
  // many GPUs over a long time take as long.
  base::Result<v1::Kpi> get(const v1::GetKpiRequest& request, const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
