#include "telemetry/window.h"

#include <algorithm>
#include <limits>

#include "telemetry/rollup.h"

namespace gpu_platform::telemetry {

namespace {

constexpr base::Duration kMinute = base::minutes(1);
constexpr base::Duration kQuarter = base::minutes(15);
constexpr base::Duration kHour = base::hours(1);
constexpr base::Instant kEver{std::numeric_limits<std::int64_t>::min()};

// Quarters of an hour are read before `minutes`, minutes before `samples`, then samples.
struct Seams {
  base::Instant minutes;
  base::Instant samples;
};

bool has_span(const std::vector<Point>& points, base::Instant from) {
  return std::ranges::find(points, from, &Point::from) != points.end();
}

// From when on the finer tier is read: not within a span that the coarser tier has.
base::Instant seam_of(base::Instant since, base::Instant window_from,
                      const std::vector<Point>& coarser, base::Duration step) {
  if (since <= window_from) return kEver;
  const base::Instant begin = span_begin(since, step);
  return begin < since && has_span(coarser, begin) ? begin + step : since;
}

Seams seams_of(const HistoryQuery& query, const KeptSeries& kept) {
  const bool has_minutes =
      kept.minutes_since && (!kept.samples_since || *kept.minutes_since < *kept.samples_since);
  Seams seams{query.to, query.to};
  if (kept.samples_since) {
    seams.samples = has_minutes ? seam_of(*kept.samples_since, query.from, kept.minutes, kMinute)
                                : seam_of(*kept.samples_since, query.from, kept.quarters, kQuarter);
  }
  seams.minutes = seams.samples;
  if (has_minutes) {
    const base::Instant begin = seam_of(*kept.minutes_since, query.from, kept.quarters, kQuarter);
    seams.minutes = std::min(begin, seams.samples);
  }
  return seams;
}

// The last value of a counter that minutes or quarters have of the time before the samples.
std::optional<std::int64_t> value_before(const KeptSeries& kept) {
  if (!kept.samples_since) return std::nullopt;
  const Point* last = nullptr;
  for (const auto* points : {&kept.quarters, &kept.minutes}) {
    for (const Point& point : *points) {
      if (point.from >= *kept.samples_since) continue;
      if (last == nullptr || point.from >= last->from) last = &point;
    }
  }
  return last == nullptr ? std::nullopt : std::optional(last->max);
}

// Appends the samples of the window from `since` on as points.
void add_samples(const HistoryQuery& query, const KeptSeries& kept, base::Instant since,
                 MetricKind kind, std::vector<Point>& points) {
  std::optional<std::int64_t> before = value_before(kept);
  for (const Sample& sample : kept.samples) {
    Point point{.from = sample.at,
                .min = sample.value,
                .max = sample.value,
                .sum = sample.value,
                .count = 1};
    if (kind == MetricKind::kCounter) {
      point.min = before.value_or(sample.value);
      point.sum = growth(point.min, sample.value);
      before = sample.value;
    }
    if (sample.at >= std::max(since, query.from) && sample.at < query.to) points.push_back(point);
  }
}

// Appends those of the spans that touch the window and begin within [from, to).
void add_spans(const HistoryQuery& query, const std::vector<Point>& spans, base::Duration step,
               base::Instant from, base::Instant to, std::vector<Point>& points) {
  for (const Point& span : spans) {
    const bool touches = span.from + step > query.from && span.from < query.to;
    if (touches && span.from >= from && span.from < to) points.push_back(span);
  }
}

// Makes one point of those that lie in one span. They ascend.
std::vector<Point> in_steps(std::vector<Point> points, base::Instant origin, base::Duration step,
                            MetricKind kind) {
  std::vector<Point> spans;
  for (Point& point : points) {
    point.from = span_begin(base::Instant((point.from - origin).value()), step) +
                 base::Duration(origin.unix_ns());
    if (!spans.empty() && spans.back().from == point.from) {
      spans.back() = joined(spans.back(), point, kind);
    } else {
      spans.push_back(point);
    }
  }
  return spans;
}

// Of each quarter of an hour the samples, if they are all there, else its distribution.
void add_spread(const HistoryQuery& query, const KeptSeries& kept, Series& series) {
  const auto has_samples = [&](base::Instant quarter) {
    return kept.samples_since && *kept.samples_since <= std::max(quarter, query.from);
  };
  Distribution& spread = series.spread.emplace();
  for (const auto& [from, to, values] : kept.spreads) {
    if (to <= query.from || from >= query.to || has_samples(from)) continue;
    if (values.count() == 0) return series.spread.reset();  // none is kept of the metric
    spread.add(values);
    series.is_spread_wide |= from < query.from || to > query.to;
  }
  std::optional<base::Instant> quarter;
  bool counts = false;
  for (const Sample& sample : kept.samples) {
    if (sample.at < query.from || sample.at >= query.to) continue;
    const base::Instant from = span_begin(sample.at, kQuarter);
    if (quarter != from) counts = has_samples(from) || !has_span(kept.quarters, from);
    quarter = from;
    if (counts) spread.add(sample.value);
  }
}

// The tier whose step the answer has at least: the finest that reaches back to the window's begin,
// or, where none does, that reaches back farther than the finer ones by a span.
Tier tier_of_answer(const HistoryQuery& query, const KeptSeries& kept) {
  const std::pair<Tier, std::optional<base::Instant>> tiers[] = {
      {Tier::kRaw, kept.samples_since},
      {Tier::kMinute, kept.minutes_since},
      {Tier::kQuarterHour, kept.quarters_since}};
  std::optional<std::pair<Tier, base::Instant>> best;
  for (const auto& [tier, since] : tiers) {
    if (!since) continue;
    if (*since <= query.from) return tier;
    if (!best || *since + step_of(tier) <= best->second) best.emplace(tier, *since);
  }
  return best ? best->first : Tier::kRaw;
}

}  // namespace

base::Duration step_of_answer(const HistoryQuery& query, const KeptSeries& kept) {
  const base::Duration kept_step = step_of(tier_of_answer(query, kept));
  if (query.step <= kept_step) return kept_step;
  if (kept_step == base::Duration()) return query.step;
  const std::int64_t spans = (query.step.value() - 1) / kept_step.value() + 1;
  return kept_step * spans;
}

Series answer(const HistoryQuery& query, const Subject& subject, MetricId id,
              const KeptSeries& kept) {
  const MetricKind kind = metric(id).kind;
  Series series{.subject = subject, .metric = id, .step = step_of_answer(query, kept)};
  const Seams seams = seams_of(query, kept);
  std::vector<Point> points;
  if (series.step != base::Duration()) {
    add_spans(query, kept.quarters, kQuarter, kEver, seams.minutes, points);
    add_spans(query, kept.minutes, kMinute, seams.minutes, seams.samples, points);
  }
  add_samples(query, kept, seams.samples, kind, points);
  std::ranges::stable_sort(points, {}, &Point::from);
  if (series.step != base::Duration()) {
    const base::Instant origin =
        series.step < kHour ? span_begin(query.from, kHour) : base::Instant();
    points = in_steps(std::move(points), origin, series.step, kind);
  }
  series.points = std::move(points);
  if (query.wants_spread && kind == MetricKind::kLevel) add_spread(query, kept, series);
  return series;
}

Point Series::whole() const {
  Point whole;
  for (const Point& point : points) whole = joined(whole, point, telemetry::metric(metric).kind);
  return whole;
}

}  // namespace gpu_platform::telemetry
