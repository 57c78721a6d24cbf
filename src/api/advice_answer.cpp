#include "api/advice_answer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "accounting/exact_cost.h"
#include "api/convert/job.h"
#include "api/usage_answer.h"
#include "base/month.h"

namespace gpu_platform::api {

namespace {

using accounting::Activity;
using accounting::Rounder;

constexpr std::array<std::string_view, 7> kWeekdays = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr int kMaxNamedJobs = 5;

// ---- savings

// The rows of one table, in its order.
class SavingsWriter {
 public:
  void put(const accounting::SpotUse& use, v1::SpotUse& out) {
    const base::MicroUsd paid = paid_.next(use.paid);
    const base::MicroUsd on_demand = on_demand_.next(use.on_demand);
    out.set_team(use.team);
    out.set_gpu_type(use.gpu_type);
    out.set_gpu_hours(gpu_hours_of(use.time));
    out.set_unpriced_gpu_hours(gpu_hours_of(use.unpriced));
    out.set_reclaimed_gpu_hours(gpu_hours_of(use.reclaimed));
    out.set_cost(money_text(paid));
    out.set_on_demand_cost(money_text(on_demand));
    out.set_saved(money_text(on_demand - paid));
  }

 private:
  Rounder paid_, on_demand_;
};

// ---- forecast

void put_trial(const accounting::ForecastTrial& trial, v1::ForecastTrial& out) {
  out.set_month(base::to_string(trial.month));
  to_proto(instant_at(trial.at), *out.mutable_at());
  out.set_expected_cost(money_text(trial.said.rounded()));
  out.set_cost(money_text(trial.was.rounded()));
  out.set_error_percent(trial.error_percent());
}

void put_rest(const accounting::Forecast& forecast, v1::Forecast& out) {
  if (!forecast.rest) {
    out.set_no_total(fmt::format("The history has {} whole days before today; a forecast needs {}.",
                                 forecast.days, accounting::kLeastMeanDays));
    return;
  }
  Rounder rounder;
  rounder.next(forecast.booked);
  out.set_rest(money_text(rounder.next(*forecast.rest)));
  out.set_total(money_text((forecast.booked + *forecast.rest).rounded()));
  for (std::size_t i = 0; i < kWeekdays.size(); ++i) {
    v1::WeekdayMean& mean = *out.add_means();
    mean.set_weekday(std::string(kWeekdays[i]));
    mean.set_cost(money_text(forecast.means[i].rounded()));
  }
}

// ---- advice

// The latest first; an attempt of the same job is named once.
void name_latest_jobs(const accounting::JobFamily& family, v1::JobFamily& out) {
  for (auto attempt = family.latest.rbegin();
       attempt != family.latest.rend() && out.jobs_size() < kMaxNamedJobs; ++attempt) {
    const std::string id = fmt::format_int(attempt->job.value).str();
    if (std::ranges::find(out.jobs(), id) == out.jobs().end()) out.add_jobs(id);
  }
}

void put_use(const accounting::MeasuredUse& use, v1::JobFamily& out) {
  out.set_measured_attempts(use.attempts());
  if (const auto peak = use.peak_memory()) {
    out.set_peak_memory_bytes(static_cast<std::uint64_t>(peak->value()));
  }
  if (const auto percent = use.utilization_percent()) out.set_utilization_percent(*percent);
}

void put_advice(const accounting::TypeAdvice& advice, v1::JobFamily& out) {
  if (advice.better) {
    out.set_advised_gpu_type(advice.better->gpu_type);
    out.set_advised_memory_bytes(static_cast<std::uint64_t>(advice.better->memory.value()));
    out.set_saved(money_text(advice.saved.rounded()));
    out.set_saved_percent(advice.saved_percent);
  }
  for (const std::string& unknown : advice.unknown) out.add_unknown(unknown);
}

void put_activity(const accounting::ActivityTime& time, Rounder& rounder, v1::ActivityTime& out) {
  out.set_attempts(time.attempts);
  out.set_gpu_hours(gpu_hours_of(time.time));
  out.set_cost(money_text(rounder.next(time.bill)));
}

double percent_of_whole(std::int64_t part, std::int64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void put_savings(const accounting::SpotSavings& savings, v1::Savings& out) {
  SavingsWriter rows;
  for (const accounting::SpotUse& use : savings.rows()) rows.put(use, *out.add_rows());
  SavingsWriter().put(savings.total(), *out.mutable_total());
}

void to_proto(const accounting::Forecast& forecast, model::Millis now, v1::Forecast& out) {
  out.set_month(base::to_string(forecast.month));
  to_proto(instant_at(now), *out.mutable_at());
  out.set_booked(money_text(forecast.booked.rounded()));
  out.set_history_days(static_cast<std::uint32_t>(forecast.days));
  put_rest(forecast, out);
  for (const accounting::ForecastTrial& trial : forecast.trials) {
    put_trial(trial, *out.add_trials());
  }
  if (const auto percent = forecast.error_percent()) out.set_error_percent(*percent);
}

void put_families(const std::vector<FamilyFinding>& findings, v1::Advice& out) {
  Rounder costs;
  for (const FamilyFinding& finding : findings) {
    const accounting::JobFamily& family = finding.family;
    v1::JobFamily& row = *out.add_families();
    row.set_user(family.user);
    row.set_team(family.team);
    row.set_project(family.project);
    row.set_name(family.name);
    row.set_gpu_type(family.gpu_type);
    row.set_attempts(family.attempts);
    row.set_gpu_hours(gpu_hours_of(family.time));
    row.set_unpriced_gpu_hours(gpu_hours_of(family.unpriced));
    row.set_cost(money_text(costs.next(family.bill)));
    name_latest_jobs(family, row);
    put_use(finding.use, row);
    put_advice(finding.advice, row);
  }
}

void put_activities(const accounting::TeamActivities& teams, v1::Advice& out) {
  Rounder idle;
  Rounder not_measured;
  Rounder used;
  const auto place = [](Activity activity) { return static_cast<std::size_t>(activity); };
  for (const auto& [team, times] : teams) {
    v1::TeamActivity& row = *out.add_teams();
    row.set_team(team);
    put_activity(times[place(Activity::kIdle)], idle, *row.mutable_idle());
    put_activity(times[place(Activity::kNotMeasured)], not_measured, *row.mutable_not_measured());
    put_activity(times[place(Activity::kUsed)], used, *row.mutable_used());
  }
}

void put_reserved(const std::vector<accounting::ReservedAdvice>& reserved, accounting::Span window,
                  v1::Advice& out) {
  Rounder saved;
  for (const accounting::ReservedAdvice& advice : reserved) {
    v1::ReservedAdvice& row = *out.add_reserved();
    row.set_gpu_type(advice.gpu_type);
    row.set_gpu_hours(gpu_hours_of(advice.time));
    row.set_gpus(advice.gpus);
    row.set_in_use_percent(percent_of_whole(advice.busy, window.to - window.from));
    row.set_saved(money_text(saved.next(advice.saved)));
    if (!advice.offer) continue;
    row.set_on_demand_price(money_text(advice.offer->on_demand));
    row.set_reserved_price(money_text(advice.offer->reserved));
    row.set_break_even_percent(
        percent_of_whole(advice.offer->reserved.value(), advice.offer->on_demand.value()));
  }
}

}  // namespace gpu_platform::api
