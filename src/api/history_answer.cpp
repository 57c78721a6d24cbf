#include "api/history_answer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/convert/job.h"
#include "api/history_team.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

namespace {

using telemetry::MetricId;
using telemetry::Of;
using telemetry::Point;
using telemetry::Series;

// The frames of one reading have nearly the same time.
constexpr base::Duration kSameReading = base::seconds(10);

// The history calls the step by another name than the API.
template <class Result>
Result named(Result result) {
  if (!result && result.error().field == "step") result.error().field = "step_seconds";
  return result;
}

// What the history has for a question, one query for each window and kind of thing.
class Found {
 public:
  base::Status fetch(const HistoryQuestion& question, const telemetry::History& history) {
    std::map<QueryKey, std::vector<telemetry::Subject>> wanted;
    for (const AskedThing& thing : question.things) {
      wanted[{thing.from, thing.to, thing.subject.of}].push_back(thing.subject);
      if (!thing.is_part()) continue;
      wanted[{thing.from, thing.to, Of::kUse}].push_back(use_of(thing));
    }
    for (auto& [key, subjects] : wanted) {
      telemetry::HistoryQuery query;
      query.subjects = std::move(subjects);
      query.metrics = metrics_of(std::get<Of>(key), question);
      if (query.metrics.empty()) continue;
      query.from = std::get<0>(key);
      query.to = std::get<1>(key);
      query.step = question.step;
      query.wants_spread = !question.percentiles.empty();
      TRY_ASSIGN(std::vector<Series> found, named(history.query(query)));
      for (Series& series : found) keep(key, std::move(series));
    }
    return {};
  }

  // Null: nothing was read.
  const Series* of_thing(const AskedThing& thing, MetricId metric) const {
    return find({thing.from, thing.to, thing.subject.of}, thing.subject, metric);
  }
  const Series* of_use(const AskedThing& thing, MetricId use_metric) const {
    return find({thing.from, thing.to, Of::kUse}, use_of(thing), use_metric);
  }

 private:
  using QueryKey = std::tuple<base::Instant, base::Instant, Of>;
  using Key = std::tuple<QueryKey, telemetry::Subject, MetricId>;

  static telemetry::Subject use_of(const AskedThing& thing) {
    return {.of = Of::kUse, .uuid = thing.subject.uuid, .attempt = thing.attempt};
  }

  static std::vector<MetricId> metrics_of(Of of, const HistoryQuestion& question) {
    if (of == Of::kHost) return question.host_metrics;
    std::vector<MetricId> metrics;
    for (const MetricId metric : question.gpu_metrics) {
      if (of == Of::kGpu) {
        metrics.push_back(metric);
      } else if (const auto use = metric_of_use(metric)) {
        metrics.push_back(*use);
      }
    }
    // The energy is counted by the GPU: more exact than its power over time.
    const auto power = telemetry::metric_named(Of::kGpu, "power_watts");
    const auto energy = telemetry::metric_named(Of::kGpu, "energy_mj");
    if (of == Of::kGpu && std::ranges::find(metrics, *power) != metrics.end() &&
        std::ranges::find(metrics, *energy) == metrics.end()) {
      metrics.push_back(*energy);
    }
    return metrics;
  }

  void keep(const QueryKey& query, Series series) {
    telemetry::Subject subject = series.subject;
    if (subject.of != Of::kHost) subject.node.clear();
    const MetricId metric = series.metric;
    kept_.insert_or_assign({query, std::move(subject), metric}, std::move(series));
  }

  const Series* find(const QueryKey& query, const telemetry::Subject& subject,
                     MetricId metric) const {
    const auto found = kept_.find({query, subject, metric});
    return found == kept_.end() || found->second.points.empty() ? nullptr : &found->second;
  }

  std::map<Key, Series> kept_;
};

// Whether a point of the use falls into the span of this one.
bool is_covered(const Point& point, base::Duration step, const std::vector<Point>& uses) {
  const base::Duration around = step == base::Duration() ? kSameReading : step;
  const auto next = std::ranges::lower_bound(uses, point.from, {}, &Point::from);
  if (next != uses.end() && next->from - point.from < around) return true;
  return next != uses.begin() && point.from - std::prev(next)->from < around;
}

// What an attempt used of a GPU: its own use of its part, and the whole GPU where no use is
// recorded, as where the driver tells no processes. Either may be null.
Series joined(const Series* use, const Series* gpu) {
  if (use == nullptr) return gpu == nullptr ? Series() : *gpu;
  Series out = *use;
  if (gpu == nullptr) return out;
  out.step = std::max(use->step, gpu->step);
  for (const Point& point : gpu->points) {
    if (!is_covered(point, out.step, use->points)) out.points.push_back(point);
  }
  // The GPU's distribution has the use of the others in it.
  if (out.points.size() != use->points.size()) out.spread.reset();
  std::ranges::stable_sort(out.points, {}, &Point::from);
  return out;
}

double answer_seconds(base::Duration duration) {
  return static_cast<double>(duration.value()) / 1e9;
}

void put_points(const Series& series, bool is_counter, double scale, v1::HistoryPoints& out) {
  for (const Point& point : series.points) {
    out.add_at(static_cast<double>(point.from.unix_ns() / 1'000'000) / 1e3);
    out.add_count(point.count);
    if (is_counter) {
      out.add_growth(static_cast<double>(point.sum) * scale);
      continue;
    }
    out.add_min(static_cast<double>(point.min) * scale);
    out.add_mean(point.mean() * scale);
    out.add_max(static_cast<double>(point.max) * scale);
  }
}

void put_window(const Series& series, bool is_counter, double scale,
                std::span<const double> percentiles, v1::HistoryWindow& out) {
  if (series.points.empty()) return;
  const Point whole = series.whole();
  out.set_count(whole.count);
  if (is_counter) {
    out.set_growth(static_cast<double>(whole.sum) * scale);
    return;
  }
  out.set_min(static_cast<double>(whole.min) * scale);
  out.set_mean(whole.mean() * scale);
  out.set_max(static_cast<double>(whole.max) * scale);
  if (!series.spread) return;
  for (const double percentile : percentiles) {
    const auto value = series.spread->percentile(percentile / 100);
    if (!value) continue;
    v1::HistoryPercentile& one = *out.add_percentiles();
    one.set_percentile(percentile);
    // The middle of a bucket may lie beyond all values of it.
    one.set_value(static_cast<double>(std::clamp(*value, whole.min, whole.max)) * scale);
  }
  out.set_percentiles_reach_beyond(series.is_spread_wide && !out.percentiles().empty());
}

void put_names(const AskedThing& thing, v1::HistorySeries& out) {
  if (!thing.node.empty()) out.set_node(thing.node);
  if (thing.index) out.set_index(*thing.index);
  if (!thing.subject.uuid.empty()) out.set_gpu_id(thing.subject.uuid);
  if (thing.job.empty()) return;
  out.set_job(thing.job);
  out.set_attempt(thing.attempt.attempt);
}

void add_thing(const AskedThing& thing, MetricId id, const Found& found,
               const HistoryQuestion& question, v1::History& out) {
  const telemetry::Metric& metric = telemetry::metric(id);
  v1::HistorySeries& series = *out.add_series();
  put_names(thing, series);
  const Series* const gpu = found.of_thing(thing, id);
  const auto use_metric = thing.is_part() ? metric_of_use(id) : std::nullopt;
  const Series* const use = use_metric ? found.of_use(thing, *use_metric) : nullptr;
  const Series values = joined(use, gpu);
  series.set_shared(use != nullptr);
  put_values(values, metric, question.percentiles, series);
  // Of a part, the GPU counts the energy of the others, too.
  if (metric.name != "power_watts" || thing.is_part() || gpu == nullptr) return;
  const Series* const energy =
      found.of_thing(thing, *telemetry::metric_named(Of::kGpu, "energy_mj"));
  if (energy == nullptr) return;
  series.mutable_window()->set_energy_joules(static_cast<double>(energy->whole().sum) / 1e3);
}

bool has_points(const v1::History& history, std::string_view uuid) {
  return std::ranges::any_of(history.series(), [&](const v1::HistorySeries& series) {
    return series.gpu_id() == uuid && !series.points().at().empty();
  });
}

// A UUID that nothing knows is a slip of the pen, not a GPU without readings.
base::Status check_known(const HistoryQuestion& question, const v1::History& answer) {
  for (const AskedThing& thing : question.things) {
    if (!thing.node.empty() || thing.attempt.job.valid()) continue;
    if (has_points(answer, thing.subject.uuid)) continue;
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no GPU '{}', and nothing was read of it in this window",
                                  thing.subject.uuid),
                      "gpu_id");
  }
  return {};
}

void put_coverage(const telemetry::HistoryCoverage& coverage, v1::HistoryCoverage& out) {
  if (coverage.raw_since) to_proto(*coverage.raw_since, *out.mutable_samples_since());
  if (coverage.minutes_since) to_proto(*coverage.minutes_since, *out.mutable_minutes_since());
  if (coverage.quarters_since) {
    to_proto(*coverage.quarters_since, *out.mutable_quarter_hours_since());
  }
  out.set_bytes(coverage.bytes);
  out.set_max_bytes(coverage.max_bytes);
  out.set_dropped(coverage.dropped);
  if (!coverage.problem.empty()) out.set_problem(coverage.problem);
}

void add_team(const Found& found, const HistoryQuestion& question, v1::History& out) {
  if (question.wants_allocated) add_allocated(question, *out.add_series());
  for (const MetricId id : question.gpu_metrics) {
    std::vector<Series> all;
    for (const AskedThing& thing : question.things) {
      const auto use_metric = thing.is_part() ? metric_of_use(id) : std::nullopt;
      all.push_back(joined(use_metric ? found.of_use(thing, *use_metric) : nullptr,
                           found.of_thing(thing, id)));
    }
    v1::HistorySeries& series = *out.add_series();
    series.set_team(question.team);
    put_values(summed(all, id, question.step), telemetry::metric(id), question.percentiles, series);
  }
}

}  // namespace

ShownMetric shown(const telemetry::Metric& metric) {
  switch (metric.unit) {
    case model::GpuUnit::kNone:
      return {1, {}};
    case model::GpuUnit::kPercent:
      return {1, "percent"};
    case model::GpuUnit::kPermille:
      // The API has percent, but for the load of a host, which is no share.
      if (metric.name.ends_with("_percent")) return {0.1, "percent"};
      return {1, {}};
    case model::GpuUnit::kBytes:
      return {1, "bytes"};
    case model::GpuUnit::kBytesPerSecond:
      return {1, "bytes_per_second"};
    case model::GpuUnit::kCelsius:
      return {1, "celsius"};
    case model::GpuUnit::kMilliwatts:
      return {0.001, "watts"};
    case model::GpuUnit::kMillijoules:
      return {1, "millijoules"};
    case model::GpuUnit::kMegahertz:
      return {1, "megahertz"};
  }
  return {};
}

void put_values(const Series& values, const telemetry::Metric& metric,
                std::span<const double> percentiles, v1::HistorySeries& out) {
  const bool is_counter = metric.kind == telemetry::MetricKind::kCounter;
  const ShownMetric as = shown(metric);
  out.set_metric(std::string(metric.name));
  out.set_unit(std::string(as.unit));
  out.set_counter(is_counter);
  out.set_step_seconds(answer_seconds(values.step));
  put_points(values, is_counter, as.scale, *out.mutable_points());
  put_window(values, is_counter, as.scale, percentiles, *out.mutable_window());
}

base::Result<v1::History> answer_of(const HistoryQuestion& question,
                                    const telemetry::History& history) {
  Found found;
  TRY(found.fetch(question, history));
  v1::History out;
  to_proto(question.from, *out.mutable_from());
  to_proto(question.to, *out.mutable_to());
  out.set_step_seconds(answer_seconds(question.step));
  if (!question.team.empty()) {
    add_team(found, question, out);
  } else {
    for (const AskedThing& thing : question.things) {
      const auto& metrics =
          thing.subject.of == Of::kHost ? question.host_metrics : question.gpu_metrics;
      for (const MetricId id : metrics) add_thing(thing, id, found, question, out);
    }
    TRY(check_known(question, out));
  }
  put_coverage(history.coverage(), *out.mutable_coverage());
  return out;
}

}  // namespace gpu_platform::api
