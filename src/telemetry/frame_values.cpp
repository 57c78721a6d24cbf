#include "telemetry/frame_values.h"

#include <array>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/check.h"

namespace gpu_platform::telemetry {
namespace {

std::optional<std::int64_t> number_of(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}
std::optional<std::int64_t> number_of(std::uint32_t value) {
  return value;
}
std::optional<std::int64_t> number_of(std::int32_t value) {
  return value;
}
std::optional<std::int64_t> number_of(bool value) {
  return value ? 1 : 0;
}
std::optional<std::int64_t> number_of(model::RecoveryAction value) {
  return static_cast<std::int64_t>(value);
}
template <class Tag>
std::optional<std::int64_t> number_of(base::Amount<Tag> value) {
  return value.value();
}

MetricId id_of(Of of, std::string_view name) {
  const auto id = metric_named(of, name);
  CHECK(id);
  return *id;
}

// The ids of a table's rows, looked up by name once.
template <std::size_t kCount, class ForEach>
std::array<MetricId, kCount> ids_of(Of of, const ForEach& for_each) {
  std::array<MetricId, kCount> ids{};
  std::size_t i = 0;
  for_each([&](const auto& row) { ids.at(i++) = id_of(of, row.name); });
  return ids;
}

template <class T>
void add(std::vector<Value>& values, MetricId id, const std::optional<T>& read) {
  if (!read) return;
  if (const auto number = number_of(*read)) values.push_back({id, *number});
}

}  // namespace

std::vector<Value> values_of(const model::GpuMetrics& gpu) {
  static const auto kIds = ids_of<model::kGpuMetricCount>(
      Of::kGpu, [](const auto& visit) { model::for_each_gpu_metric(visit); });
  std::vector<Value> values;
  values.reserve(kIds.size());
  std::size_t i = 0;
  model::for_each_gpu_metric([&](const auto& row) { add(values, kIds[i++], row.of(gpu)); });
  return values;
}

std::vector<Value> values_of(const model::HostMetrics& host) {
  static const auto kIds = ids_of<model::kHostMetricCount>(
      Of::kHost, [](const auto& visit) { model::for_each_host_metric(visit); });
  std::vector<Value> values;
  values.reserve(kIds.size());
  std::size_t i = 0;
  model::for_each_host_metric([&](const auto& row) { add(values, kIds[i++], host.*row.member); });
  return values;
}

}  // namespace gpu_platform::telemetry
