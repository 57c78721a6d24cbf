#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/budgets.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What teams, users and projects may spend: the calls of BudgetService. Safe from any thread.
class BudgetCalls {
 public:
  explicit BudgetCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListBudgetsResponse> list(const v1::ListBudgetsRequest& request,
                                             const Peer& peer) const;
  base::Result<v1::Budget> get(const v1::GetBudgetRequest& request, const Peer& peer) const;

  void set(const v1::SetBudgetRequest& request, const Peer& peer, Resume resume,
           Done<v1::Budget> done) const;
  void override_budget(const v1::OverrideBudgetRequest& request, const Peer& peer, Resume resume,
                       Done<v1::Budget> done) const;
  void remove(const v1::RemoveBudgetRequest& request, const Peer& peer, Resume resume,
              Done<v1::Budget> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
