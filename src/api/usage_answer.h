#pragma once

#include <string>

#include "accounting/balance.h"
#include "accounting/monthly.h"
#include "accounting/usage_query.h"
#include "accounting/usage_sum.h"
#include "base/units.h"
#include "gpu_platform/v1/usage.pb.h"
#include "model/ledger.h"
#include "model/price.h"

// Usage as messages. Money is rounded here, so that the rows of an answer add up to its totals.

namespace gpu_platform::api {

// Puts the groups and the total.
void put_usage(const accounting::UsageQuery& query, const accounting::UsageSum& sum,
               v1::Usage& out);

void to_proto(const model::LedgerLine& line, const model::PriceBook& prices, v1::LedgerLine& out);

// All but `partial` and `document`.
void to_proto(const accounting::MonthlyReport& report, v1::MonthlyReport& out);

void to_proto(const accounting::BalanceReport& report, v1::Balance& out);

// GPU-hours of shares × milliseconds.
double gpu_hours_of(__int128 time);
// "12.345600".
std::string money_text(base::MicroUsd amount);
base::Instant instant_at(model::Millis at);

}  // namespace gpu_platform::api
