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
// remainder, so that they add up to it. All other totals are sums of rounded rows.

namespace gpu_platform::accounting {

inline constexpr std::size_t kTrendMonths = 12;  // with the month of the report, which is the last

struct MonthlyQuestion {
  base::Month month;
  std::vector<std::string> teams;  // empty: all
  bool with_fleet = true;          // the time that no team is billed, and the balance
  std::string currency;            // "USD"
  // Lines that end after the month's end, or run now, may come: figures may still change.
  bool is_final = true;
};

// Rounded once: the amounts of a row add up (list − discount = cost), and rows to their total.
struct BillRow {
  std::string gpu_type;          // empty in totals
  std::int64_t micro_hours = 0;  // billed GPU-hours, in millionths
  std::int64_t unpriced = 0;     // of them, without a price; the same unit
  std::int64_t not_billed = 0;   // GPU-hours that were used and are not billed; the same unit
  base::MicroUsd list;
  base::MicroUsd discount;
  base::MicroUsd cost;

  // There was no price for any of it: its cost is not known, which is not zero.
  bool is_unpriced() const { return unpriced > 0 && unpriced == micro_hours; }
  BillRow& operator+=(const BillRow& other);
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

// What was kept of the fleet, for one reason.
struct FleetRow {
  std::string what;  // "billed", "discounts", "not billed: hardware", "starting", "idle"
  std::int64_t micro_hours = 0;
  std::int64_t unpriced = 0;
  base::MicroUsd cost;  // by the list

  friend bool operator==(const FleetRow&, const FleetRow&) = default;
};

struct TrendPoint {
  base::Month month;
  std::int64_t micro_hours = 0;  // billed
  base::MicroUsd cost;           // all that is billed, with corrections

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
  // ---- with_fleet alone, else empty
  std::vector<FleetRow> fleet;  // the rows add up to the last one, "fleet"
  std::vector<FleetRow> idle;   // what could have been given to jobs and was not, by type
  BalanceReport balance;
  bool has_fleet = false;

  friend bool operator==(const MonthlyReport&, const MonthlyReport&) = default;
};

// Makes the report of the lines that lie in the months of its trend.
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
};

// {"month": "2026-10", "teams": {NAME: {"total_cost": 1234.5, "by_gpu_type": {TYPE: {"hours": 2.5,
// "cost": 13.75}}}}, "total": 1234.5}, with a line feed. Numbers have at most six decimals. Where
// they are not zero, a team also has "cpu_cost" and "corrections", which are in its total, and a
// type "unpriced_hours"; the cost of a type without any price is null.
std::string json_of(const MonthlyReport& report);
// A row for each team and type, and for the CPU cost and the corrections of a team (RFC 4180). A
// text that a spreadsheet would take for a formula begins with an apostrophe.
std::string csv_of(const MonthlyReport& report);
// A page that stands alone, without a script. It prints on A4.
std::string html_of(const MonthlyReport& report);

}  // namespace gpu_platform::accounting
