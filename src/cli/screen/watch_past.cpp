#include "cli/screen/watch_past.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpu_platform::cli {

namespace {

base::Instant earlier_by(base::Instant at, base::Duration by) {
  return at + (base::Duration() - by);
}

double length_of(base::Duration duration) {
  return static_cast<double>(duration.value());
}

std::deque<GraphPoint> points_of_series(const v1::HistorySeries& series) {
  std::deque<GraphPoint> points;
  const v1::HistoryPoints& values = series.points();
  const auto at_of = [](double seconds) {
    return base::Instant(static_cast<std::int64_t>(seconds * 1000) * 1'000'000);
  };
  // Samples have no span of their own.
  const base::Duration span =
      series.step_seconds() > 0
          ? base::milliseconds(static_cast<std::int64_t>(series.step_seconds() * 1000))
          : WatchPast::kFinest;
  for (int i = 0; i < std::min(values.at_size(), values.mean_size()); ++i) {
    const base::Instant at = at_of(values.at(i));
    points.push_back({at, at + span, values.mean(i)});
  }
  return points;
}

}  // namespace

void WatchPast::take(const v1::History& history) {
  for (const v1::HistorySeries& series : history.series()) {
    if (series.metric() != "utilization_percent" || !series.has_index()) continue;
    std::deque<GraphPoint> points = points_of_series(series);
    std::deque<GraphPoint>& known = points_[fmt::format("{}:{}", series.node(), series.index())];
    // The last span of the history has not ended yet.
    if (!known.empty()) {
      std::erase_if(points, [&](const GraphPoint& point) { return point.to > known.front().from; });
    }
    known.insert(known.begin(), points.begin(), points.end());
  }
}

void WatchPast::add(const std::string& place, base::Instant at, double percent) {
  std::deque<GraphPoint>& points = points_[place];
  if (!points.empty() && at < earlier_by(points.back().to, kMaxGap)) points.clear();
  if (points.empty()) {
    points.push_back({earlier_by(at, base::seconds(1)), at, percent});
    return;
  }
  GraphPoint& last = points.back();
  if (at <= last.to) return;
  const base::Instant from = std::max(last.to, earlier_by(at, kMaxGap));
  if (from == last.to && at - last.from <= kFinest) {
    const double known = length_of(last.to - last.from);
    const double now = length_of(at - from);
    last.value = (last.value * known + percent * now) / (known + now);
    last.to = at;
  } else {
    points.push_back({from, at, percent});
  }
  while (points.front().to < earlier_by(at, kSpan)) points.pop_front();
}

std::string WatchPast::line(const std::string& place, base::Instant now, std::size_t columns,
                            bool is_ascii) const {
  const std::vector<GraphPoint> points = points_of({place});
  return points.empty() ? std::string() : sparkline(points, scale_of_past(now), columns, is_ascii);
}

std::vector<GraphPoint> WatchPast::points_of(const std::vector<std::string>& places) const {
  std::vector<GraphPoint> points;
  for (const std::string& place : places) {
    const auto found = points_.find(place);
    if (found != points_.end())
      points.insert(points.end(), found->second.begin(), found->second.end());
  }
  return points;
}

GraphScale scale_of_past(base::Instant now) {
  return {.from = earlier_by(now, WatchPast::kSpan), .to = now};
}

}  // namespace gpu_platform::cli
