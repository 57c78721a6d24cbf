#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/advice.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What was saved, what the month will cost and what could cost less: the calls of AdviceService.
// Safe from any thread. Each is one pass over the lines of its window that the caller may see:
// about a second for a million.
class AdviceCalls {
 public:
  explicit AdviceCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::Savings> savings(const v1::GetSavingsRequest& request, const Peer& peer) const;
  base::Result<v1::Forecast> forecast(const v1::GetForecastRequest& request,
                                      const Peer& peer) const;
  // Looks at what was read of the attempts with the most GPU-hours, too: a second more at most.
  base::Result<v1::Advice> advice(const v1::GetAdviceRequest& request, const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
