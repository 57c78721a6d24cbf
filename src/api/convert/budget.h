#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu_platform/v1/budgets.pb.h"
#include "model/command.h"

// Budgets between their messages and the model.

namespace gpu_platform::api {

// "team" and so on; the error names the field `holder`.
base::Result<model::QuotaHolder> parse_holder(std::string_view text);

base::Result<model::SetBudget> to_model(const v1::SetBudgetRequest& request);
base::Result<model::OverrideBudget> to_model(const v1::OverrideBudgetRequest& request);

// Fills the cleared message, but for what was spent. `now`: decides whether starts are barred.
void to_proto(const model::BudgetState& state, const std::string& currency, base::Instant now,
              v1::Budget& out);

}  // namespace gpu_platform::api
