#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/units.h"
#include "model/quota_excess.h"

// Budgets: what a team, a user or a project may spend in a calendar period. They count what is
// billed: the use of attempts that are over, and of those that run up to now.

namespace gpu_platform::model {

// Calendar periods in UTC. Quotas of GPU-hours have periods of fixed length (model/team.h).
enum class BudgetPeriod : std::uint8_t { kMonth, kQuarter, kYear };
inline constexpr std::size_t kBudgetPeriods = 3;
std::string_view to_string(BudgetPeriod period);  // "month"
base::Instant begin_of(BudgetPeriod period, base::Instant at);
base::Instant end_of(BudgetPeriod period, base::Instant at);

// What follows when the budget is spent.
enum class BudgetAct : std::uint8_t {
  kAlert,   // it is told
  kRefuse,  // and no job of the holder starts until the period ends; those that run go on
  kStop,    // and those that run are stopped as by their time limit
};
inline constexpr std::size_t kBudgetActs = 3;
std::string_view to_string(BudgetAct act);  // "refuse"

struct BudgetKey {
  QuotaHolder holder = QuotaHolder::kTeam;
  std::string name;

  friend auto operator<=>(const BudgetKey&, const BudgetKey&) = default;
};

// A person lets the holder go on although the budget is spent.
struct BudgetOverride {
  base::Instant until;
  std::string by;
  std::string why;

  friend bool operator==(const BudgetOverride&, const BudgetOverride&) = default;
};

struct Budget {
  BudgetKey key;
  BudgetPeriod period = BudgetPeriod::kMonth;
  base::MicroUsd amount;  // more than zero
  BudgetAct act = BudgetAct::kAlert;
  std::string set_by;   // at run time; empty: the configuration
  BudgetOverride over;  // `until` unset: there is none

  friend bool operator==(const Budget&, const Budget&) = default;
};

// An exact amount of money: a 128-bit integer, as two halves, in the units of
// accounting/exact_cost.h.
struct ExactAmount {
  std::int64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const ExactAmount&, const ExactAmount&) = default;
};

enum class BudgetLevel : std::uint8_t {
  kWithin,
  kNearly,  // 80 % are spent
  kSpent,
};
inline constexpr std::size_t kBudgetLevels = 3;
std::string_view to_string(BudgetLevel level);  // "within"

// A budget with what was spent of it in the present period.
struct BudgetState {
  Budget budget;
  base::Instant period_begin;
  ExactAmount settled;  // by attempts that are over
  BudgetLevel level = BudgetLevel::kWithin;
  base::Instant level_since;
  base::MicroUsd counted;  // that was spent when it was counted last, cut off

  friend bool operator==(const BudgetState&, const BudgetState&) = default;
};

using BudgetStates = std::map<BudgetKey, BudgetState>;

// Returns whether a person lets its holder go on at that time.
bool is_overridden(const BudgetState& state, base::Instant at);
// Returns whether no job that counts against the budget may start at that time.
bool bars_starts(const BudgetState& state, base::Instant at);

}  // namespace gpu_platform::model
