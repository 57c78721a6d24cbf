#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accounting/balance.h"
#include "accounting/usage_sum.h"
#include "base/month.h"
#include "base/units.h"
#include "model/ledger.h"
#include "model/price.h"

// The report of a calendar month in UTC: what each team is billed, by GPU type, and what became of
// the rest of the fleet. It is made of lines alone, so that a closed month is the same a year
// later, to the byte.
//
// Rounding: the bill of a team is rounded once, to a millionth. The rows below it share its
// remainder, so that they add up to it. All other totals of bills are sums of rounded rows.

namespace gpu_platform::accounting {

inline constexpr std::size_t kTrendMonths = 12;  // with the month of the report, which is the last

struct MonthlyQuestion {
  base::Month month;
  std::vector<std::string> teams;  // empty: all
  bool with_fleet = true;          // what is billed to no team, and the balance; of all teams alone
  std::string currency;            // "USD"
  // False while the month is not over, or an attempt that touches it goes on.
  bool is_final = true;
};

// Hours are GPU-hours, in millionths. The amounts of a row add up: list − discount = cost.
struct BillRow {
  std::string gpu_type;         // empty in totals
  std::int64_t priced = 0;      // hours that are billed
  std::int64_t unpriced = 0;    // hours that would be billed, if they had a price
  std::int64_t not_billed = 0;  // hours that were used and are not billed
  base::MicroUsd list;
  base::MicroUsd discount;
  base::MicroUsd cost;

  std::int64_t hours() const { return priced + unpriced; }
  // There was no price for any of it: its cost is not known, which is not zero.
  bool is_unpriced() const { return unpriced > 0 && priced == 0; }
  BillRow& operator+=(const BillRow& other);  // but for the type
  friend bool operator==(const BillRow&, const BillRow&) = default;
};

struct TeamBill {
  std::string team;           // empty: jobs without a team
  std::vector<BillRow> rows;  // by type, ascending
  BillRow gpus;               // the sum of `rows`
  base::MicroUsd cpu;         // of jobs without GPUs
  base::MicroUsd corrections;
  base::MicroUsd total;

  friend bool operator==(const TeamBill&, const TeamBill&) = default;
};

// What became of a part of the fleet's time.
struct FleetRow {
  std::string what;        // "billed", "discounts", "not billed: hardware", "starting", "idle"
  std::int64_t hours = 0;  // GPU-hours, in millionths
  base::MicroUsd cost;     // by the list

  friend bool operator==(const FleetRow&, const FleetRow&) = default;
};

struct TrendPoint {
  base::Month month;
  std::int64_t hours = 0;  // as BillRow::hours
  base::MicroUsd cost;     // the total of that month's report

  friend bool operator==(const TrendPoint&, const TrendPoint&) = default;
};

struct MonthlyReport {
  base::Month month;
  bool is_final = true;
  std::string currency;
  bool has_all_teams = true;     // false: of the teams that were asked for
  std::vector<TeamBill> teams;   // ascending by name
  std::vector<BillRow> by_type;  // of all teams, ascending
  BillRow gpus;                  // the sum of by_type
  base::MicroUsd cpu;
  base::MicroUsd corrections;
  base::MicroUsd total;           // the sum of the teams' totals
  std::vector<TrendPoint> trend;  // kTrendMonths, ascending
  // ---- of the whole fleet; empty if it was not asked for
  bool has_fleet = false;
  std::vector<FleetRow> fleet;  // they add up to the next
  FleetRow fleet_total;
  std::vector<FleetRow> idle;  // what could have been given to jobs and was not, by type
  BalanceReport balance;

  friend bool operator==(const MonthlyReport&, const MonthlyReport&) = default;
};

// Makes the report of the lines that lie in the months of its trend, stored and live ones.
class MonthlySum {
 public:
  // The prices must outlive it.
  MonthlySum(MonthlyQuestion question, const model::PriceBook& prices);

  // The lines that it needs: from the first month of the trend to the end of the last.
  Span span() const;
  void add(const model::LedgerLine& line);
  MonthlyReport report() const;

 private:
  MonthlyQuestion question_;
  Span month_;
  UsageSum month_sum_;
  UsageSum trend_sum_;
  Balance balance_;
  bool has_fleet_ = false;
};

}  // namespace gpu_platform::accounting
