#pragma once

#include "gpu_platform/v1/budgets.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What teams, users and projects may spend: the calls of BudgetService. Safe from any thread.
class BudgetCalls {
 public:
  explicit BudgetCalls(const CallContext& context) : context_(context) {}

 private:
  [[maybe_unused]] const CallContext& context_;
};

}  // namespace gpu_platform::api
