#include "telemetry/metric.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "model/host_metrics.h"

namespace gpu_platform::telemetry {

namespace {

MetricKind kind_of(model::GpuCount count) {
  return count == model::GpuCount::kCounter ? MetricKind::kCounter : MetricKind::kLevel;
}

std::vector<Metric> all_metrics() {
  std::vector<Metric> all;
  model::for_each_gpu_metric(
      [&](const auto& row) { all.push_back({row.name, Of::kGpu, kind_of(row.count), row.unit}); });
  model::for_each_host_metric([&](const auto& row) {
    all.push_back({row.name, Of::kHost, kind_of(row.exported.kind), row.unit});
  });
  const auto of_use = [&](std::string_view name, model::GpuUnit unit) {
    all.push_back({name, Of::kUse, MetricKind::kLevel, unit});
  };
  of_use(kUseUtilization, model::GpuUnit::kPercent);
  of_use(kUseMemory, model::GpuUnit::kBytes);
  of_use(kUsePower, model::GpuUnit::kMilliwatts);
  of_use(kUseAttributedBy, model::GpuUnit::kNone);
  return all;
}

}  // namespace

std::span<const Metric> metrics() {
  static const std::vector<Metric> kAll = all_metrics();
  return kAll;
}

bool has_spread(const Metric& metric) {
  constexpr std::string_view kWithSpread[] = {
      "utilization_percent", "memory_used_bytes",     "temperature_c", "power_watts",
      "sm_active_percent",   "tensor_active_percent", "cpu_percent",   "memory_available_bytes"};
  return metric.kind == MetricKind::kLevel &&
         std::ranges::find(kWithSpread, metric.name) != std::end(kWithSpread);
}

std::optional<MetricId> metric_named(Of of, std::string_view name) {
  const auto all = metrics();
  const auto found = std::ranges::find_if(
      all, [&](const Metric& metric) { return metric.of == of && metric.name == name; });
  if (found == all.end()) return std::nullopt;
  return static_cast<MetricId>(found - all.begin());
}

}  // namespace gpu_platform::telemetry
