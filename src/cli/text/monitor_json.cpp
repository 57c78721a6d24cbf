#include "cli/text/monitor_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/text/use_metrics.h"

namespace gpu_platform::cli {

namespace {

// Digits beyond these say nothing.
double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

Json bounds_of(bool is_known, const v1::MetricUse& metric, double divisor = 1) {
  if (!is_known) return nullptr;
  return Json{{"min", rounded(metric.min() / divisor)},
              {"max", rounded(metric.max() / divisor)},
              {"mean", rounded(metric.mean() / divisor)}};
}

Json stats_of(const v1::UseOnGpu& gpu) {
  constexpr double kMib = 1024.0 * 1024.0;
  Json utilization = bounds_of(gpu.has_utilization_percent(), gpu.utilization_percent());
  if (!utilization.is_null()) utilization["samples"] = gpu.utilization_percent().samples();
  Json stats;
  stats["name"] = gpu.model();
  stats["utilization"] = std::move(utilization);
  stats["memory_used_mb"] = bounds_of(gpu.has_memory_used_bytes(), gpu.memory_used_bytes(), kMib);
  stats["memory_usage_percent"] = bounds_of(gpu.has_memory_percent(), gpu.memory_percent());
  stats["temperature_c"] = bounds_of(gpu.has_temperature_c(), gpu.temperature_c());
  stats["power_draw_w"] = bounds_of(gpu.has_power_watts(), gpu.power_watts());
  return stats;
}

Json whole_of(const v1::MetricUse& metric) {
  Json whole = bounds_of(true, metric);
  whole["samples"] = metric.samples();
  whole["deviation"] = rounded(metric.deviation());
  if (metric.has_p50()) whole["p50"] = rounded(metric.p50());
  if (metric.has_p95()) whole["p95"] = rounded(metric.p95());
  if (metric.has_p99()) whole["p99"] = rounded(metric.p99());
  return whole;
}

template <class Number>
Json json_if_known(bool is_known, Number value) {
  return is_known ? Json(value) : Json();
}

double share_of_samples(const v1::UseOnGpu& gpu) {
  if (gpu.expected_samples() == 0) return 1;
  return std::min(1.0,
                  static_cast<double>(gpu.samples()) / static_cast<double>(gpu.expected_samples()));
}

Json extra_of(const v1::UseOnGpu& gpu) {
  Json extra;
  extra["node"] = gpu.node();
  extra["index"] = gpu.index();
  extra["uuid"] = gpu.uuid();
  extra["part"] = gpu.part();
  extra["attributed_by"] = json_if_known(gpu.has_attributed_by(), gpu.attributed_by());
  extra["samples"] = gpu.samples();
  extra["expected_samples"] = gpu.expected_samples();
  extra["samples_share"] = rounded(share_of_samples(gpu));
  extra["memory_bytes"] = json_if_known(gpu.has_memory_bytes(), gpu.memory_bytes());
  extra["energy_joules"] = json_if_known(gpu.has_energy_joules(), rounded(gpu.energy_joules()));
  extra["energy_from"] = json_if_known(gpu.has_energy_from(), gpu.energy_from());
  Json throttled = Json::object();
  for (const v1::ThrottleTime& time : gpu.throttled()) {
    throttled[time.reason()] = rounded(time.seconds());
  }
  extra["throttled_seconds"] = std::move(throttled);
  extra["pcie_sent_bytes"] = json_if_known(gpu.has_pcie_sent_bytes(), gpu.pcie_sent_bytes());
  extra["pcie_received_bytes"] =
      json_if_known(gpu.has_pcie_received_bytes(), gpu.pcie_received_bytes());
  extra["nvlink_sent_bytes"] = json_if_known(gpu.has_nvlink_sent_bytes(), gpu.nvlink_sent_bytes());
  extra["nvlink_received_bytes"] =
      json_if_known(gpu.has_nvlink_received_bytes(), gpu.nvlink_received_bytes());
  Json metrics = Json::object();
  for_each_metric(gpu, [&](std::string_view name, const v1::MetricUse& metric) {
    metrics[std::string(name)] = whole_of(metric);
  });
  extra["metrics"] = std::move(metrics);
  return extra;
}

}  // namespace

std::vector<std::string> gpu_names(const v1::AttemptUse& use) {
  std::map<std::uint32_t, int> times;
  for (const v1::UseOnGpu& gpu : use.gpus()) ++times[gpu.index()];
  std::vector<std::string> names;
  for (const v1::UseOnGpu& gpu : use.gpus()) {
    names.push_back(times[gpu.index()] > 1 ? fmt::format("{}:{}", gpu.node(), gpu.index())
                                           : fmt::format_int(gpu.index()).str());
  }
  return names;
}

Json monitor_json(const v1::AttemptUse& use) {
  std::uint64_t samples = 0;
  Json stats = Json::object();
  Json extras = Json::object();
  const std::vector<std::string> names = gpu_names(use);
  for (int i = 0; i < use.gpus_size(); ++i) {
    const v1::UseOnGpu& gpu = use.gpus(i);
    const std::string& name = names[static_cast<std::size_t>(i)];
    samples = std::max<std::uint64_t>(samples, gpu.samples());
    stats[name] = stats_of(gpu);
    extras[name] = extra_of(gpu);
  }
  Json document;
  document["monitoring_duration_seconds"] = rounded(use.duration_seconds());
  document["sample_count"] = samples;
  document["gpu_stats"] = std::move(stats);
  document["extra"] =
      Json{{"interval_seconds", use.interval_seconds()}, {"gpus", std::move(extras)}};
  return document;
}

}  // namespace gpu_platform::cli
