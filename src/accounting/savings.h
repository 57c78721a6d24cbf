#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "accounting/exact_cost.h"
#include "accounting/usage_sum.h"
#include "model/ledger.h"
#include "model/price.h"

// What spot capacity saves: what its use was billed, and what the same time would have been billed
// at the price that on-demand capacity had on the same node then.

namespace gpu_platform::accounting {

// The use of spot capacity. Times are in base::GpuShare × milliseconds.
struct SpotUse {
  std::string team;  // empty: jobs without a team
  std::string gpu_type;
  __int128 time = 0;       // that is billed
  __int128 unpriced = 0;   // of `time`: one of the two prices is not known; it is in no amount
  __int128 reclaimed = 0;  // of runs that were reclaimed: used, and not billed
  ExactCost paid;
  ExactCost on_demand;  // with the same discount

  // Negative: spot capacity was the dearer one.
  ExactCost saved() const { return on_demand - paid; }
  SpotUse& operator+=(const SpotUse& other);  // but for team and type
  friend bool operator==(const SpotUse&, const SpotUse&) = default;
};

// Adds up lines. Cost: the prices in force over each line of spot capacity.
class SpotSavings {
 public:
  // The prices must outlive it.
  SpotSavings(Span span, const model::PriceBook& prices) : span_(span), prices_(prices) {}

  void add(const model::LedgerLine& line);

  std::vector<SpotUse> rows() const;  // by team, then by type
  SpotUse total() const;

 private:
  void add_billed(const model::LedgerLine& line, Span used, SpotUse& row) const;

  const Span span_;
  const model::PriceBook& prices_;
  std::map<std::pair<std::string, std::string>, SpotUse> rows_;  // by team and type
};

}  // namespace gpu_platform::accounting
