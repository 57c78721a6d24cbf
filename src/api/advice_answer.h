#pragma once

#include <vector>

#include "accounting/advice.h"
#include "accounting/forecast.h"
#include "accounting/savings.h"
#include "gpu_platform/v1/advice.pb.h"
#include "model/ledger.h"

// Savings, forecast and advice as messages. Money is rounded here, so that the rows of a table add
// up to its total.

namespace gpu_platform::api {

// The rows and the total.
void put_savings(const accounting::SpotSavings& savings, v1::Savings& out);

// All but `currency` and `partial`. `now`: when it was made.
void to_proto(const accounting::Forecast& forecast, model::Millis now, v1::Forecast& out);

struct FamilyFinding {
  accounting::JobFamily family;
  accounting::MeasuredUse use;
  accounting::TypeAdvice advice;
};
void put_families(const std::vector<FamilyFinding>& findings, v1::Advice& out);

void put_activities(const accounting::TeamActivities& teams, v1::Advice& out);

// `window`: that the advice is of.
void put_reserved(const std::vector<accounting::ReservedAdvice>& reserved, accounting::Span window,
                  v1::Advice& out);

}  // namespace gpu_platform::api
