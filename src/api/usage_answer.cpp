#include "api/usage_answer.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "accounting/exact_cost.h"
#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "model/capacity.h"
#include "model/gpu_part.h"
#include "model/priority.h"

namespace gpu_platform::api {

namespace {

constexpr double kMillisOfHour = 3'600'000;

using accounting::ExactCost;
using accounting::GpuTime;
using accounting::Rounder;

void put_part(std::string_view name, const GpuTime& time, base::MicroUsd cost, v1::UsagePart& out) {
  out.set_name(std::string(name));
  out.set_gpu_hours(gpu_hours_of(time.time));
  out.set_cost(money_text(cost));
}

// The figures of one answer, in its order: what they say in money adds up to what the total says.
class FigureWriter {
 public:
  explicit FigureWriter(bool with_rest) : with_rest_(with_rest) {}

  void put(const accounting::UsageFigures& figures, v1::UsageFigures& out) {
    out.set_gpu_hours(gpu_hours_of(figures.billed().time + figures.not_billed().time));
    out.set_billed_gpu_hours(gpu_hours_of(figures.billed().time));
    out.set_unpriced_gpu_hours(
        gpu_hours_of(figures.billed().unpriced + figures.not_billed().unpriced));
    out.set_core_hours(static_cast<double>(figures.cpu.core_ms + figures.cpu_not_billed.core_ms) /
                       kMillisOfHour);
    put_bill(figures, out);
    out.set_cpu_not_billed(money_text(cpu_not_billed_.next(figures.cpu_not_billed.list)));
    for (std::size_t i = 1; i < model::kNotBilledReasons; ++i) {
      const base::MicroUsd cost = not_billed_[i].next(figures.used[i].list);
      if (figures.used[i].time == 0) continue;
      put_part(to_string(static_cast<model::NotBilled>(i)), figures.used[i], cost,
               *out.add_not_billed());
    }
    put_part("starting", figures.starting, starting_.next(figures.starting.list),
             *out.mutable_starting());
    put_part("cleaning", figures.cleaning, cleaning_.next(figures.cleaning.list),
             *out.mutable_cleaning());
    if (with_rest_) put_rest(figures, out);
  }

 private:
  // Each row adds up, too: the list, less the discount, with the corrections. A row without a
  // discount has none of another's remainder in it.
  void put_bill(const accounting::UsageFigures& figures, v1::UsageFigures& out) {
    const base::MicroUsd discount = discount_.next(figures.discount + figures.cpu_discount);
    const base::MicroUsd corrections = corrections_.next(figures.corrections);
    const base::MicroUsd cost = cost_.next(figures.bill());
    out.set_list_cost(money_text(cost - corrections + discount));
    out.set_discount(money_text(discount));
    out.set_corrections(money_text(corrections));
    out.set_cost(money_text(cost));
  }

  void put_rest(const accounting::UsageFigures& figures, v1::UsageFigures& out) {
    for (std::size_t i = 0; i < model::kRestKinds; ++i) {
      const auto kind = static_cast<model::RestKind>(i);
      const GpuTime time = figures.rest_of(kind);
      const base::MicroUsd cost = rest_[i].next(time.list);
      if (time.time != 0) put_part(to_string(kind), time, cost, *out.add_rest());
    }
  }

  const bool with_rest_;
  Rounder discount_, corrections_, cost_, cpu_not_billed_, starting_, cleaning_;
  std::array<Rounder, model::kNotBilledReasons> not_billed_;
  std::array<Rounder, model::kRestKinds> rest_;
};

// ---- lines

void put_price(const model::LedgerLine& line, const model::PriceBook& prices, v1::LedgerLine& out) {
  out.set_price_id(line.price);
  const model::PriceEntry* const entry = prices.find(line.price);
  if (entry != nullptr) out.set_price_per_hour(money_text(entry->price.per_hour));
}

void put_held(const model::LedgerLine& line, v1::LedgerLine& out) {
  api::to_proto(instant_at(line.started), *out.mutable_started_at());
  api::to_proto(instant_at(line.ended), *out.mutable_ended_at());
  out.set_job(fmt::to_string(line.attempt.job.value));
  out.set_attempt(line.attempt.attempt);
  out.set_segment(line.segment);
  if (line.mode != model::ShareMode::kNone) {
    out.set_share_mode(std::string(model::to_string(line.mode)));
  }
  out.set_job_name(line.job_name);
  out.set_kind(api::to_proto(line.job_kind));
  out.set_priority(std::string(model::to_string(line.priority)));
  for (const model::Label& label : line.labels) (*out.mutable_labels())[label.key] = label.value;
  if (line.not_billed != model::NotBilled::kBilled) {
    out.set_not_billed(std::string(to_string(line.not_billed)));
  }
  out.set_discount_basis_points(line.discount);
  if (!line.gpu_uuid.empty()) return;
  out.set_cpus(line.cpus);
  out.set_memory_mib(static_cast<std::uint64_t>(line.memory_mib));
  out.set_core_hour(money_text(line.core_hour));
  out.set_gib_hour(money_text(line.gib_hour));
}

std::string_view word_of(model::LedgerKind kind) {
  constexpr std::string_view kWords[] = {"held", "rest", "correction"};
  static_assert(std::size(kWords) == model::kLedgerKinds);
  return kWords[static_cast<std::size_t>(kind)];
}

// ---- months

double hours_of(std::int64_t micro_hours) {
  return static_cast<double>(micro_hours) / 1e6;
}

void to_proto(const accounting::BillRow& row, v1::MonthlyGpuType& out) {
  out.set_gpu_type(row.gpu_type);
  out.set_hours(hours_of(row.hours()));
  out.set_unpriced_hours(hours_of(row.unpriced));
  out.set_cost(money_text(row.cost));
}

void to_proto(const accounting::FleetRow& row, v1::UsagePart& out) {
  out.set_name(row.what);
  out.set_gpu_hours(hours_of(row.hours));
  out.set_cost(money_text(row.cost));
}

void to_proto(const accounting::TeamBill& team, v1::MonthlyTeam& out) {
  out.set_team(team.team);
  out.set_total_cost(money_text(team.total));
  for (const accounting::BillRow& row : team.rows) to_proto(row, *out.add_by_gpu_type());
  out.set_cpu_cost(money_text(team.cpu));
  out.set_corrections(money_text(team.corrections));
}

}  // namespace

double gpu_hours_of(__int128 time) {
  return static_cast<double>(time) / (static_cast<double>(base::kWholeGpu.value()) * kMillisOfHour);
}

std::string money_text(base::MicroUsd amount) {
  return accounting::six_decimals(amount.value());
}

base::Instant instant_at(model::Millis at) {
  return base::Instant(at * 1'000'000);
}

void put_usage(const accounting::UsageQuery& query, const accounting::UsageSum& sum,
               v1::Usage& out) {
  FigureWriter rows(query.with_rest);
  for (accounting::UsageGroup& group : sum.groups()) {
    v1::UsageGroup& row = *out.add_groups();
    for (std::string& key : group.keys) row.add_keys(std::move(key));
    if (query.step != accounting::UsageStep::kNone) {
      api::to_proto(instant_at(group.step), *row.mutable_from());
    }
    row.set_job_name(std::move(group.job_name));
    rows.put(group.figures, *row.mutable_figures());
  }
  FigureWriter(query.with_rest).put(sum.total(), *out.mutable_total());
}

void to_proto(const model::LedgerLine& line, const model::PriceBook& prices, v1::LedgerLine& out) {
  out.set_line(std::string(word_of(line.kind)));
  out.set_node(line.node);
  out.set_gpu_id(line.gpu_uuid);
  out.set_gpu_type(line.gpu_type);
  out.set_capacity(std::string(model::to_string(line.capacity)));
  out.set_gpu_share(static_cast<std::uint32_t>(line.share.value()));
  put_price(line, prices, out);
  api::to_proto(instant_at(line.from), *out.mutable_from());
  api::to_proto(instant_at(line.to), *out.mutable_to());
  out.set_user(line.user);
  out.set_team(line.team);
  out.set_project(line.project);
  out.set_cost(money_text(accounting::figures_of(line, prices).bill().rounded()));
  switch (line.kind) {
    case model::LedgerKind::kHeld:
      return put_held(line, out);
    case model::LedgerKind::kRest:
      return out.set_rest(std::string(to_string(line.rest)));
    case model::LedgerKind::kCorrection:
      out.set_amount(money_text(line.amount));
      out.set_reason(line.text);
      out.set_by(line.by);
      return;
  }
}

void to_proto(const accounting::MonthlyReport& report, v1::MonthlyReport& out) {
  out.set_month(base::to_string(report.month));
  out.set_status(report.is_final ? "final" : "provisional");
  out.set_currency(report.currency);
  for (const accounting::TeamBill& team : report.teams) to_proto(team, *out.add_teams());
  out.set_total(money_text(report.total));
  for (const accounting::TrendPoint& point : report.trend) {
    v1::MonthlyPoint& shown = *out.add_trend();
    shown.set_month(base::to_string(point.month));
    shown.set_gpu_hours(hours_of(point.hours));
    shown.set_cost(money_text(point.cost));
  }
  for (const accounting::BillRow& row : report.by_type) to_proto(row, *out.add_by_gpu_type());
  out.set_cpu_cost(money_text(report.cpu));
  out.set_corrections(money_text(report.corrections));
  for (const accounting::FleetRow& row : report.fleet) to_proto(row, *out.add_fleet());
  if (report.has_fleet) to_proto(report.fleet_total, *out.mutable_fleet_total());
  for (const accounting::FleetRow& row : report.idle) to_proto(row, *out.add_idle());
  if (report.has_fleet) {
    for (const std::string& text : report.balance.differences.named) out.add_differences(text);
  }
}

void to_proto(const accounting::BalanceReport& report, v1::Balance& out) {
  Rounder rounder;
  const auto add = [&](std::string_view name, const GpuTime& time) {
    put_part(name, time, rounder.next(time.list), *out.add_parts());
  };
  const accounting::UsageFigures& figures = report.figures;
  GpuTime discounts;
  discounts.list = figures.discount;
  GpuTime billed = figures.billed();
  billed.list = figures.gpu_bill();
  out.set_gpus(static_cast<std::uint32_t>(report.gpus));
  add("billed", billed);
  add("discounts", discounts);
  for (std::size_t i = 1; i < model::kNotBilledReasons; ++i) {
    if (figures.used[i].time == 0) continue;
    add(fmt::format("not billed: {}", to_string(static_cast<model::NotBilled>(i))),
        figures.used[i]);
  }
  add("starting", figures.starting);
  add("cleaning", figures.cleaning);
  for (std::size_t i = 0; i < model::kRestKinds; ++i) {
    const auto kind = static_cast<model::RestKind>(i);
    const GpuTime time = figures.rest_of(kind);
    if (kind == model::RestKind::kIdle || time.time != 0) add(to_string(kind), time);
  }
  out.mutable_whole()->set_name("fleet");
  out.mutable_whole()->set_gpu_hours(gpu_hours_of(report.wall));
  out.mutable_whole()->set_cost(money_text(report.fleet.rounded()));
  for (const std::string& text : report.differences.named) out.add_differences(text);
  for (const std::string& text : report.absences.named) out.add_absences(text);
}

}  // namespace gpu_platform::api
