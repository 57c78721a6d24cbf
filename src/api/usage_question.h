#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accounting/usage_query.h"
#include "api/ledger_view.h"
#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/advice.pb.h"
#include "gpu_platform/v1/usage.pb.h"
#include "model/caller.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "store/ledger.h"

// What a question about usage means: its window, and which lines count.

namespace gpu_platform::api {

struct UsageWindow {
  base::Instant from;
  base::Instant to;

  store::LedgerQuery query() const {
    return {.from = model::millis_of(from), .to = model::millis_of(to)};
  }
};

// A job, or all members of an array.
struct AskedJobs {
  model::JobId first;
  model::JobId last;
  // It is known from its lines alone: this is the answer if it has none.
  std::optional<base::Error> unknown;
};

struct UsageQuestion {
  UsageWindow window;
  accounting::UsageQuery query;
  std::optional<AskedJobs> jobs;

  // The lines to look at; is_of() says which of them count.
  store::LedgerQuery lines() const;
  bool is_of(const model::LedgerLine& line) const;
};

// Errors name the field. kNotFound also for a job that the caller may not see.
base::Result<UsageQuestion> to_question(const v1::GetUsageRequest& request, const JobReader& reader,
                                        const LedgerView& view, const model::Caller& caller);
base::Result<UsageQuestion> to_question(const v1::ListLedgerRequest& request,
                                        const JobReader& reader, const LedgerView& view,
                                        const model::Caller& caller);
// The team, and the teams that lie below it now.
std::vector<std::string> teams_of(const std::string& top, const LedgerView& view);
base::Result<UsageWindow> to_window(const v1::GetBalanceRequest& request, base::Instant now);
base::Result<UsageWindow> to_window(const v1::GetSavingsRequest& request, base::Instant now);
base::Result<UsageWindow> to_window(const v1::GetAdviceRequest& request, base::Instant now);

}  // namespace gpu_platform::api
