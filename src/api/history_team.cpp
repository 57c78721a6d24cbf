#include "api/history_team.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace gpu_platform::api {

namespace {

using telemetry::Point;

constexpr base::Duration kLeastStep = base::minutes(1);

base::Instant begin_of_span(base::Instant at, base::Duration step) {
  return base::Instant(at.unix_ns() - at.unix_ns() % step.value());
}

double length_in_seconds(base::Duration duration) {
  return static_cast<double>(duration.value()) / 1e9;
}

// GPUs over a span of time.
struct Held {
  double least = 0;
  double most = 0;
  double gpu_seconds = 0;
  double seconds = 0;

  void add(double gpus, base::Duration time) {
    least = seconds == 0 ? gpus : std::min(least, gpus);
    most = seconds == 0 ? gpus : std::max(most, gpus);
    gpu_seconds += gpus * length_in_seconds(time);
    seconds += length_in_seconds(time);
  }
};

// The changes of what is held, in their order.
std::vector<std::pair<base::Instant, std::int64_t>> changes_of(const HistoryQuestion& question) {
  std::vector<std::pair<base::Instant, std::int64_t>> changes;
  for (const AskedThing& thing : question.things) {
    changes.emplace_back(thing.from, thing.share.value());
    changes.emplace_back(thing.to, -thing.share.value());
  }
  changes.emplace_back(question.to, 0);
  std::ranges::sort(changes);
  return changes;
}

}  // namespace

telemetry::Series summed(std::span<const telemetry::Series> all, telemetry::MetricId metric,
                         base::Duration step) {
  telemetry::Series out;
  out.metric = metric;
  out.step = std::max(step, kLeastStep);
  for (const telemetry::Series& series : all) out.step = std::max(out.step, series.step);
  std::map<base::Instant, Point> spans;
  for (const telemetry::Series& series : all) {
    for (const Point& point : series.points) {
      const auto [span, is_new] = spans.try_emplace(begin_of_span(point.from, out.step), point);
      if (is_new) continue;
      Point& sum = span->second;
      sum.min = std::min(sum.min, point.min);
      sum.max = std::max(sum.max, point.max);
      sum.sum += point.sum;
      sum.count += point.count;
    }
    if (!series.spread) continue;
    if (!out.spread) out.spread.emplace();
    out.spread->add(*series.spread);
    out.is_spread_wide = out.is_spread_wide || series.is_spread_wide;
  }
  for (auto& [begin, point] : spans) {
    point.from = begin;
    out.points.push_back(point);
  }
  return out;
}

void add_allocated(const HistoryQuestion& question, v1::HistorySeries& out) {
  const base::Duration step = std::max(question.step, kLeastStep);
  std::map<base::Instant, Held> spans;
  Held whole;
  base::Instant at = question.from;
  std::int64_t held = 0;
  for (const auto& [until, change] : changes_of(question)) {
    const double gpus = static_cast<double>(held) / static_cast<double>(base::kWholeGpu.value());
    while (at < until) {
      const base::Instant begin = begin_of_span(at, step);
      const base::Instant end = std::min(begin + step, until);
      spans[begin].add(gpus, end - at);
      whole.add(gpus, end - at);
      at = end;
    }
    held += change;
  }
  out.set_team(question.team);
  out.set_metric(std::string(kGpusAllocated));
  out.set_step_seconds(length_in_seconds(step));
  for (const auto& [begin, span] : spans) {
    v1::HistoryPoints& points = *out.mutable_points();
    points.add_at(length_in_seconds(begin - base::Instant()));
    points.add_min(span.least);
    points.add_mean(span.gpu_seconds / span.seconds);
    points.add_max(span.most);
    points.add_count(0);
  }
  out.mutable_window()->set_min(whole.least);
  out.mutable_window()->set_mean(whole.gpu_seconds / whole.seconds);
  out.mutable_window()->set_max(whole.most);
}

}  // namespace gpu_platform::api
