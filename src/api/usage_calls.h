#pragma once

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/usage.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What was used, and what it cost: the calls of UsageService. Safe from any thread. Each is one
// pass over the lines of the window that the caller may see: about a second for a million.
class UsageCalls {
 public:
  explicit UsageCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::Usage> get(const v1::GetUsageRequest& request, const Peer& peer) const;
  base::Result<v1::ListLedgerResponse> list_lines(const v1::ListLedgerRequest& request,
                                                  const Peer& peer) const;
  base::Result<v1::MonthlyReport> monthly(const v1::GetMonthlyReportRequest& request,
                                          const Peer& peer) const;
  base::Result<v1::Balance> balance(const v1::GetBalanceRequest& request, const Peer& peer) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
