#include "telemetry/rollup.h"

#include <algorithm>
#include <limits>

namespace gpu_platform::telemetry {

namespace {

constexpr Tier kTiers[] = {Tier::kMinute, Tier::kQuarterHour};

std::int64_t bounded_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

Point joined(const Point& earlier, const Point& later, MetricKind kind) {
  if (earlier.count == 0) return later;
  if (later.count == 0) return earlier;
  Point whole = earlier;
  if (kind == MetricKind::kCounter) {
    whole.max = later.max;
  } else {
    whole.min = std::min(earlier.min, later.min);
    whole.max = std::max(earlier.max, later.max);
  }
  whole.sum = bounded_sum(earlier.sum, later.sum);
  whole.count += later.count;
  return whole;
}

std::int64_t growth(std::int64_t before, std::int64_t now) {
  std::int64_t grown = 0;
  if (now < before) return now;
  return __builtin_sub_overflow(now, before, &grown) ? std::numeric_limits<std::int64_t>::max()
                                                     : grown;
}

base::Instant span_begin(base::Instant at, base::Duration length) {
  const std::int64_t into = at.unix_ns() % length.value();
  return base::Instant(at.unix_ns() - (into < 0 ? into + length.value() : into));
}

void Rollup::take(base::Instant at, std::span<const Value> values) {
  const base::Instant minute = span_begin(at, step_of(Tier::kMinute));
  const base::Instant quarter = span_begin(at, step_of(Tier::kQuarterHour));
  if (minute_ && *minute_ != minute) finish(Tier::kMinute);
  if (quarter_ && *quarter_ != quarter) finish(Tier::kQuarterHour);
  minute_ = minute;
  quarter_ = quarter;
  std::size_t place = 0;
  for (const Value& value : values) add(metric_at(place, value.metric), value.value);
}

void Rollup::finish() {
  for (const Tier tier : kTiers) finish(tier);
}

std::vector<RolledSpan> Rollup::open() const {
  std::vector<RolledSpan> spans;
  for (const Tier tier : kTiers) {
    RolledSpan span = span_of(tier);
    if (!span.metrics.empty()) spans.push_back(std::move(span));
  }
  return spans;
}

// The metrics of a subject are nearly always the same: `place` walks along with the values.
Rollup::Metric& Rollup::metric_at(std::size_t& place, MetricId id) {
  while (place < metrics_.size() && metrics_[place].id < id) ++place;
  if (place == metrics_.size() || metrics_[place].id != id) {
    metrics_.insert(
        metrics_.begin() + static_cast<std::ptrdiff_t>(place),
        Metric{.id = id, .kind = metric(id).kind, .has_spread = has_spread(metric(id))});
  }
  return metrics_[place++];
}

void Rollup::add(Metric& metric, std::int64_t value) {
  Point sample{.min = value, .max = value, .sum = value, .count = 1};
  if (metric.kind == MetricKind::kCounter) {
    sample.min = metric.last.value_or(value);
    sample.sum = growth(sample.min, value);
    metric.last = value;
  } else if (metric.has_spread) {
    const std::int16_t bucket = Distribution::bucket_of(value);
    auto found =
        std::ranges::find(metric.spread, bucket, [](const auto& pair) { return pair.first; });
    if (found == metric.spread.end()) found = metric.spread.insert(found, {bucket, 0});
    ++found->second;
  }
  metric.minute = joined(metric.minute, sample, metric.kind);
  metric.quarter = joined(metric.quarter, sample, metric.kind);
}

RolledSpan Rollup::span_of(Tier tier) const {
  const bool is_minute = tier == Tier::kMinute;
  RolledSpan span{.tier = tier, .from = (is_minute ? minute_ : quarter_).value_or(base::Instant())};
  for (const Metric& metric : metrics_) {
    const Point& point = is_minute ? metric.minute : metric.quarter;
    if (point.count == 0) continue;
    RolledMetric& rolled = span.metrics.emplace_back(RolledMetric{metric.id, point, {}});
    rolled.point.from = span.from;
    if (is_minute) continue;
    for (const auto& [bucket, times] : metric.spread) rolled.spread.add_bucket(bucket, times);
  }
  return span;
}

void Rollup::finish(Tier tier) {
  RolledSpan span = span_of(tier);
  if (!span.metrics.empty()) finished_.push_back(std::move(span));
  for (Metric& metric : metrics_) {
    if (tier == Tier::kMinute) {
      metric.minute = {};
    } else {
      metric.quarter = {};
      metric.spread.clear();
    }
  }
}

}  // namespace gpu_platform::telemetry
