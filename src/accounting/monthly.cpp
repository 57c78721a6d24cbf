#include "accounting/monthly.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "accounting/amount_text.h"

namespace gpu_platform::accounting {

namespace {

// A report is whole: there are no more groups than teams with the types of their GPUs.
constexpr std::size_t kAllGroups = std::numeric_limits<std::size_t>::max();

Span span_of_months(base::Month first, base::Month last) {
  return {model::millis_of(base::begin_of(first)), model::millis_of(base::end_of(last))};
}

// A trend that would begin before the calendar does begins with it.
base::Month first_of_trend(base::Month month) {
  constexpr base::Month kFirst{1970, 1};
  base::Month first = month;
  for (std::size_t i = 1; i < kTrendMonths && first > kFirst; ++i) {
    first = base::plus_months(first, -1);
  }
  return first;
}

bool asks_for_fleet(const MonthlyQuestion& question) {
  return question.with_fleet && question.teams.empty();
}

UsageQuery month_query(const MonthlyQuestion& question) {
  const Span span = span_of_months(question.month, question.month);
  UsageQuery query{.from = span.from, .to = span.to};
  query.by = {{UsageField::kTeam, {}}, {UsageField::kType, {}}};
  query.filter.teams = question.teams;
  query.with_rest = asks_for_fleet(question);
  query.max_groups = kAllGroups;
  return query;
}

// Of the months before the report's.
UsageQuery trend_query(const MonthlyQuestion& question) {
  const Span span = span_of_months(first_of_trend(question.month), question.month);
  const Span month = span_of_months(question.month, question.month);
  UsageQuery query{.from = span.from, .to = month.from};
  query.by = {{UsageField::kTeam, {}}};
  query.step = UsageStep::kMonth;
  query.max_groups = kAllGroups;
  query.filter.teams = question.teams;
  return query;
}

bool has_gpu_use(const UsageFigures& figures) {
  return figures.billed().time != 0 || figures.not_billed().time != 0;
}

bool is_on_a_bill(const UsageFigures& figures) {
  return has_gpu_use(figures) || figures.cpu_bill() != ExactCost() ||
         figures.corrections != ExactCost();
}

// Rounds what a team is billed, row by row.
class BillRounder {
 public:
  BillRow next(const std::string& gpu_type, const UsageFigures& figures) {
    BillRow row;
    row.gpu_type = gpu_type;
    row.priced = priced_.next(figures.billed().time - figures.billed().unpriced);
    row.unpriced = unpriced_.next(figures.billed().unpriced);
    row.not_billed = not_billed_.next(figures.not_billed().time);
    row.cost = costs_.next(figures.gpu_bill());
    row.discount = discounts_.next(figures.discount);
    row.list = row.cost + row.discount;
    return row;
  }
  base::MicroUsd next(ExactCost cost) { return costs_.next(cost); }

 private:
  HourRounder priced_;
  HourRounder unpriced_;
  HourRounder not_billed_;
  Rounder costs_;
  Rounder discounts_;
};

// Whole millionths come first, so that no remainder of others changes them.
TeamBill bill_of(const std::string& team, const std::vector<const UsageGroup*>& groups) {
  TeamBill bill;
  bill.team = team;
  UsageFigures all;
  for (const UsageGroup* group : groups) all += group->figures;
  BillRounder rounder;
  bill.corrections = rounder.next(all.corrections);
  for (const UsageGroup* group : groups) {
    if (!has_gpu_use(group->figures)) continue;
    bill.rows.push_back(rounder.next(group->keys[1], group->figures));
    bill.gpus += bill.rows.back();
  }
  bill.cpu = rounder.next(all.cpu_bill());
  bill.total = bill.gpus.cost + bill.cpu + bill.corrections;
  return bill;
}

// The groups are in the order of their teams.
std::vector<TeamBill> bills_of(const std::vector<UsageGroup>& groups) {
  std::vector<TeamBill> bills;
  for (std::size_t i = 0; i < groups.size();) {
    const std::string& team = groups[i].keys[0];
    std::vector<const UsageGroup*> of_team;
    bool is_billed = false;
    for (; i < groups.size() && groups[i].keys[0] == team; ++i) {
      of_team.push_back(&groups[i]);
      is_billed = is_billed || is_on_a_bill(groups[i].figures);
    }
    if (is_billed) bills.push_back(bill_of(team, of_team));
  }
  return bills;
}

void put_totals(MonthlyReport& report) {
  std::map<std::string, BillRow> by_type;
  for (const TeamBill& bill : report.teams) {
    for (const BillRow& row : bill.rows) by_type[row.gpu_type] += row;
    report.gpus += bill.gpus;
    report.cpu += bill.cpu;
    report.corrections += bill.corrections;
    report.total += bill.total;
  }
  for (auto& [type, row] : by_type) {
    row.gpu_type = type;
    report.by_type.push_back(std::move(row));
  }
}

void add_to_trend(const UsageFigures& of_team, TrendPoint& point) {
  BillRounder rounder;
  point.hours += rounder.next({}, of_team).hours();
  point.cost += of_team.bill().rounded();
}

// Each team is rounded as in the report of that month, so that both say the same. `before`: of the
// months before the last one, by team; `of_month`: of the last one, by team and type.
std::vector<TrendPoint> trend_of(const std::vector<UsageGroup>& before,
                                 const std::vector<UsageGroup>& of_month, base::Month last) {
  std::vector<TrendPoint> trend;
  for (base::Month month = first_of_trend(last); month <= last;
       month = base::plus_months(month, 1)) {
    trend.push_back({.month = month});
  }
  for (const UsageGroup& group : before) {
    const base::Month month = base::month_of(base::Instant(group.step * 1'000'000));
    const auto point = std::ranges::find(trend, month, &TrendPoint::month);
    if (point != trend.end()) add_to_trend(group.figures, *point);
  }
  std::map<std::string_view, UsageFigures> teams;
  for (const UsageGroup& group : of_month) teams[group.keys[0]] += group.figures;
  for (const auto& [team, figures] : teams) add_to_trend(figures, trend.back());
  return trend;
}

class FleetRows {
 public:
  void put(std::string what, __int128 time, ExactCost cost) {
    if (time == 0 && cost == ExactCost()) return;
    rows_.push_back({std::move(what), hours_.next(time), costs_.next(cost)});
    total_.hours += rows_.back().hours;
    total_.cost += rows_.back().cost;
  }
  std::vector<FleetRow> take_rows() { return std::move(rows_); }
  const FleetRow& total() const { return total_; }

 private:
  std::vector<FleetRow> rows_;
  FleetRow total_{.what = "fleet"};
  HourRounder hours_;
  Rounder costs_;
};

void put_fleet(const UsageFigures& figures, MonthlyReport& report) {
  FleetRows rows;
  rows.put("billed", figures.billed().time, figures.gpu_bill());
  rows.put("discounts", 0, figures.discount);
  for (std::size_t i = 1; i < model::kNotBilledReasons; ++i) {
    const GpuTime& part = figures.used[i];
    rows.put(fmt::format("not billed: {}", model::to_string(static_cast<model::NotBilled>(i))),
             part.time, part.list);
  }
  rows.put("starting", figures.starting.time, figures.starting.list);
  rows.put("cleaning", figures.cleaning.time, figures.cleaning.list);
  for (std::size_t i = 0; i < model::kRestKinds; ++i) {
    const auto kind = static_cast<model::RestKind>(i);
    const GpuTime rest = figures.rest_of(kind);
    rows.put(std::string(model::to_string(kind)), rest.time, rest.list);
  }
  report.fleet = rows.take_rows();
  report.fleet_total = rows.total();
}

// The lines of GPUs that no attempt held have no team, and that is the first of all.
std::vector<FleetRow> idle_of(const std::vector<UsageGroup>& groups) {
  FleetRows rows;
  for (const UsageGroup& group : groups) {
    const GpuTime idle = group.figures.rest_of(model::RestKind::kIdle);
    rows.put(group.keys[1], idle.time, idle.list);
  }
  return rows.take_rows();
}

}  // namespace

BillRow& BillRow::operator+=(const BillRow& other) {
  priced += other.priced;
  unpriced += other.unpriced;
  not_billed += other.not_billed;
  list += other.list;
  discount += other.discount;
  cost += other.cost;
  return *this;
}

MonthlySum::MonthlySum(MonthlyQuestion question, const model::PriceBook& prices)
    : question_(std::move(question)),
      month_(span_of_months(question_.month, question_.month)),
      month_sum_(month_query(question_), prices),
      trend_sum_(trend_query(question_), prices),
      balance_(month_, prices),
      has_fleet_(asks_for_fleet(question_)) {}

Span MonthlySum::span() const {
  return span_of_months(first_of_trend(question_.month), question_.month);
}

void MonthlySum::add(const model::LedgerLine& line) {
  if (line.from < month_.from) trend_sum_.add(line);
  if (!is_in(line, month_)) return;
  month_sum_.add(line);
  if (has_fleet_) balance_.add(line);
}

MonthlyReport MonthlySum::report() const {
  MonthlyReport report;
  report.month = question_.month;
  report.is_final = question_.is_final;
  report.currency = question_.currency;
  report.has_all_teams = question_.teams.empty();
  const std::vector<UsageGroup> groups = month_sum_.groups();
  report.teams = bills_of(groups);
  put_totals(report);
  report.trend = trend_of(trend_sum_.groups(), groups, question_.month);
  report.has_fleet = has_fleet_;
  if (has_fleet_) {
    report.balance = balance_.report();
    put_fleet(report.balance.figures, report);
    report.idle = idle_of(groups);
  }
  return report;
}

}  // namespace gpu_platform::accounting
