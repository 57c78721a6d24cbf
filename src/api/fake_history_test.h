#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/history.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

// A history that has what a test puts there: of each query, the series of its subjects and metrics
// that have points in its window.
class FakeHistory final : public telemetry::History {
 public:
  telemetry::Series& put(telemetry::Subject subject, std::string_view metric,
                         std::vector<telemetry::Point> points) {
    telemetry::Series series;
    series.metric = *telemetry::metric_named(subject.of, metric);
    series.subject = std::move(subject);
    series.step = base::minutes(1);
    series.points = std::move(points);
    return kept_.emplace_back(std::move(series));
  }

  base::Result<std::vector<telemetry::Series>> query(
      const telemetry::HistoryQuery& query) const override {
    queries_.push_back(query);
    std::vector<telemetry::Series> found;
    for (telemetry::Series series : kept_) {
      const bool is_wanted =
          std::ranges::find(query.subjects, series.subject) != query.subjects.end() &&
          std::ranges::find(query.metrics, series.metric) != query.metrics.end();
      if (!is_wanted) continue;
      std::erase_if(series.points, [&](const telemetry::Point& point) {
        return point.from < query.from || point.from >= query.to;
      });
      if (!query.wants_spread) series.spread.reset();
      found.push_back(std::move(series));
    }
    return found;
  }
  telemetry::HistoryCoverage coverage() const override { return known; }

  // What was asked, in its order.
  const std::vector<telemetry::HistoryQuery>& queries() const { return queries_; }

  telemetry::HistoryCoverage known;

 private:
  std::vector<telemetry::Series> kept_;
  mutable std::vector<telemetry::HistoryQuery> queries_;
};

}  // namespace gpu_platform::api
