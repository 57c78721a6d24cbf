#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "accounting/exact_cost.h"
#include "base/persistent_map.h"
#include "base/units.h"
#include "model/budget.h"
#include "model/capacity.h"
#include "model/job.h"
#include "model/ledger.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/price.h"

// What the attempts that have not been released spend of budgets. A meter does not tick: what runs
// at one price is one sum, from which the cost up to any moment follows, and the moment at which an
// amount is reached.

namespace gpu_platform::accounting {

// The prices by which an attempt is billed; all of it outlives the call.
struct MeterTerms {
  const base::PersistentMap<model::Node>& nodes;  // by NodeId
  const model::PriceBook& prices;
  const model::Policy& policy;
};

// Of one budget, in its present period.
class BudgetMeter {
 public:
  // GPUs that cost the same at any time.
  struct Cell {
    std::string gpu_type;
    model::CapacityClass capacity = model::CapacityClass::kOnDemand;
    std::string node;  // empty unless some price names nodes
    std::uint32_t discount = 0;

    friend auto operator<=>(const Cell&, const Cell&) = default;
  };

  BudgetMeter() = default;
  // `from` and `to`: of the period.
  BudgetMeter(model::Millis from, model::Millis to) : from_(from), to_(to) {}

  // The attempt is used, or has ended and is not released yet; of one that is neither, and of one
  // that ended so that it is not billed, nothing.
  // Cost: the GPUs of the attempt.
  void add(const MeterTerms& terms, const model::Job& job, const model::Attempt& attempt);
  // As it was added.
  void remove(const MeterTerms& terms, const model::Job& job, const model::Attempt& attempt);

  // Returns what all of it has cost in the period up to that time.
  ExactCost cost(const model::PriceBook& prices, model::Millis at) const;
  // Returns the first time of the period at which it has cost so much; nothing if it does not in
  // the period. Cost: the cells, and the prices that change in the period.
  std::optional<model::Millis> reaches(const model::PriceBook& prices, ExactCost amount) const;
  // Returns what it costs in a millisecond, by the prices of that time.
  ExactCost rate(const model::PriceBook& prices, model::Millis at) const;
  bool has_running() const { return running_ > 0; }

  // When the budget is to be counted next. The owner sets it with each change.
  base::Instant next;

  friend bool operator==(const BudgetMeter&, const BudgetMeter&) = default;

 private:
  struct Running {
    base::GpuShare share;
    ExactCost before;  // what it would have cost from the period's begin to its starts

    friend bool operator==(const Running&, const Running&) = default;
  };

  void change(const MeterTerms& terms, const model::Job& job, const model::Attempt& attempt,
              bool is_added);
  void change_cell(const model::PriceBook& prices, const Cell& cell, base::GpuShare share,
                   model::Millis started, bool is_added);

  model::Millis from_ = 0;
  model::Millis to_ = 0;
  std::map<Cell, Running> cells_;  // none without a share
  ExactCost flat_;                 // in a millisecond, of jobs without GPUs
  ExactCost flat_before_;
  ExactCost ended_;            // of attempts that are not released yet
  std::uint64_t running_ = 0;  // attempts
};

using BudgetMeters = std::map<model::BudgetKey, BudgetMeter>;

}  // namespace gpu_platform::accounting
