#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "accounting/usage_sum.h"
#include "base/result.h"
#include "model/capacity.h"
#include "model/ledger.h"
#include "model/price.h"
#include "store/ledger.h"

namespace gpu_platform::api {

// Teams with sums of their own; those that appear later are one, "(other)".
inline constexpr std::size_t kMaxCostTeams = 50;

struct CostKey {
  std::string team;      // empty: no team, or time that no job had
  std::string gpu_type;  // empty: jobs without GPUs
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;

  friend auto operator<=>(const CostKey&, const CostKey&) = default;
};
using CostSums = std::map<CostKey, accounting::UsageFigures>;

// Counts what is used and what it costs, from the start of the program up to now, for the page of
// metrics. Its sums never fall: what was counted as billed stays so, although an attempt may be
// found not to be billed when it ends, and corrections do not count. Bills are made of the ledger
// itself.
//
// Safe from any thread.
class CostMeter {
 public:
  // Visits the lines that have a moment in the query's window: those of what is over, and those of
  // what goes on as of its end.
  using VisitLines =
      std::function<base::Status(const store::LedgerQuery&, const store::Ledger::Visit&)>;

  explicit CostMeter(model::Millis begin) : upto_(begin) {}

  // Adds what became of the time from the last count until `now`, and returns all sums. An earlier
  // `now` adds nothing. After an error nothing was added. Cost: the lines of that time.
  base::Result<CostSums> count(model::Millis now, const model::PriceBook& prices,
                               const VisitLines& visit);

 private:
  std::string team_named(const std::string& team);

  std::mutex mutex_;  // guards what follows
  model::Millis upto_;
  CostSums sums_;
  std::set<std::string, std::less<>> teams_;  // with sums of their own
};

}  // namespace gpu_platform::api
