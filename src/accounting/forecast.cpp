#include "accounting/forecast.h"

#include <algorithm>
#include <cmath>

#include "accounting/charge.h"

namespace gpu_platform::accounting {

namespace {

constexpr model::Millis kDayOfMeans = 24 * 3'600'000;
constexpr base::Month kFirstMonth{1970, 1};

Span span_of(base::Month month) {
  return {model::millis_of(base::begin_of(month)), model::millis_of(base::end_of(month))};
}

// The begin of its day.
model::Millis midnight_of(model::Millis at) {
  return at - at % kDayOfMeans;
}

// From Monday, which is 0. The calendar begins with a Thursday.
std::size_t weekday_of(model::Millis day) {
  return static_cast<std::size_t>((day / kDayOfMeans + 3) % 7);
}

// The months before, ascending, each with the time that lies as far behind its begin as now does
// behind that of the present month. A month that was over by then says nothing.
std::vector<ForecastTrial> planned_trials(base::Month present, model::Millis now) {
  const model::Millis offset = now - span_of(present).from;
  std::vector<ForecastTrial> trials;
  base::Month month = present;
  for (int i = 0; i < kMaxTrials && month > kFirstMonth; ++i) {
    month = base::plus_months(month, -1);
    const Span span = span_of(month);
    if (span.from + offset < span.to) trials.push_back({month, span.from + offset, {}, {}});
  }
  std::ranges::reverse(trials);
  return trials;
}

model::Millis begin_of_history(base::Month present) {
  base::Month first = present;
  for (int i = 0; i < kMaxTrials && first > kFirstMonth; ++i) first = base::plus_months(first, -1);
  return std::max<model::Millis>(0, span_of(first).from - kMeanDays * kDayOfMeans);
}

// What a part of a day costs whose whole costs so much. The division comes first: the product of a
// large bill would not fit.
ExactCost part_of_day(ExactCost whole, model::Millis part) {
  return part == kDayOfMeans ? whole : ExactCost(whole.units() / kDayOfMeans * part);
}

// What is left of the month from then on, by the means of weekdays.
ExactCost rest_of(base::Month month, model::Millis at, const std::array<ExactCost, 7>& means) {
  ExactCost rest;
  for (model::Millis day = midnight_of(at), end = span_of(month).to; day < end;
       day += kDayOfMeans) {
    rest += part_of_day(means[weekday_of(day)], day + kDayOfMeans - std::max(day, at));
  }
  return rest;
}

}  // namespace

double ForecastTrial::error_percent() const {
  const auto off = static_cast<double>((said - was).units());
  return 100 * std::abs(off) / static_cast<double>(was.units());
}

std::optional<double> Forecast::error_percent() const {
  if (trials.empty()) return std::nullopt;
  double sum = 0;
  for (const ForecastTrial& trial : trials) sum += trial.error_percent();
  return sum / static_cast<double>(trials.size());
}

ForecastSum::ForecastSum(model::Millis now, const model::PriceBook& prices)
    : prices_(prices),
      month_(base::month_of(base::Instant(now * 1'000'000))),
      planned_(planned_trials(month_, now)) {
  for (model::Millis day = begin_of_history(month_); day < now; day += kDayOfMeans) {
    bounds_.push_back(day);
  }
  for (const ForecastTrial& trial : planned_) bounds_.push_back(trial.at);
  bounds_.push_back(now);
  std::ranges::sort(bounds_);
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  use_.resize(bounds_.size());
  corrections_.resize(bounds_.size());
}

void ForecastSum::add(const model::LedgerLine& line) {
  if (!is_in(line, span())) return;
  begin_ = std::min(begin_.value_or(span().to), std::max(line.from, span().from));
  if (line.kind == model::LedgerKind::kRest) return;
  const bool is_correction = line.kind == model::LedgerKind::kCorrection;
  std::vector<ExactCost>& bills = is_correction ? corrections_ : use_;
  const model::Millis end = is_correction ? line.from + 1 : line.ended;
  const auto first = std::ranges::upper_bound(bounds_, std::max(line.started, span().from));
  for (auto i = static_cast<std::size_t>(first - bounds_.begin()) - 1;
       i + 1 < bounds_.size() && bounds_[i] < end; ++i) {
    bills[i] += charge_of(line, prices_, bounds_[i], bounds_[i + 1]);
  }
}

ExactCost ForecastSum::sum(const std::vector<ExactCost>& bills, Span span) const {
  ExactCost sum;
  const auto first = std::ranges::lower_bound(bounds_, span.from);
  for (auto i = static_cast<std::size_t>(first - bounds_.begin());
       i < bounds_.size() && bounds_[i] < span.to; ++i) {
    sum += bills[i];
  }
  return sum;
}

int ForecastSum::days_before(model::Millis day) const {
  if (!begin_) return 0;
  const model::Millis first = midnight_of(*begin_ + kDayOfMeans - 1);
  return static_cast<int>(std::clamp<model::Millis>((day - first) / kDayOfMeans, 0, kMeanDays));
}

ForecastSum::Means ForecastSum::means_at(model::Millis at) const {
  const model::Millis today = midnight_of(at);
  Means means{.days = days_before(today)};
  std::array<int, 7> counts{};
  for (int back = 1; back <= means.days; ++back) {
    const model::Millis day = today - back * kDayOfMeans;
    means.by_weekday[weekday_of(day)] += sum(use_, {day, day + kDayOfMeans});
    ++counts[weekday_of(day)];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 1) means.by_weekday[i] = ExactCost(means.by_weekday[i].units() / counts[i]);
  }
  return means;
}

std::optional<ForecastTrial> ForecastSum::trial(base::Month month, model::Millis at) const {
  const Means means = means_at(at);
  const Span span = span_of(month);
  const ExactCost was = booked(span);
  if (means.days < kLeastMeanDays || was <= ExactCost()) return std::nullopt;
  const ExactCost said = booked({span.from, at}) + rest_of(month, at, means.by_weekday);
  return ForecastTrial{month, at, said, was};
}

Forecast ForecastSum::forecast() const {
  const model::Millis now = span().to;
  const Means means = means_at(now);
  Forecast out;
  out.month = month_;
  out.booked = booked({span_of(month_).from, now});
  out.days = means.days;
  if (means.days >= kLeastMeanDays) {
    out.means = means.by_weekday;
    out.rest = rest_of(month_, now, means.by_weekday);
  }
  for (const ForecastTrial& planned : planned_) {
    if (const auto done = trial(planned.month, planned.at)) out.trials.push_back(*done);
  }
  return out;
}

}  // namespace gpu_platform::accounting
