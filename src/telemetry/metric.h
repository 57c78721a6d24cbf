#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/gpu_metrics.h"

// The metrics that the history keeps, as one list: those of a GPU (model/gpu_metrics.h), those of a
// host (model/host_metrics.h), and the part of a shared GPU that each of its jobs uses.

namespace gpu_platform::telemetry {

// What a metric is a property of. The numbers are in the history's files.
enum class Of : std::uint8_t { kGpu = 0, kHost = 1, kUse = 2 };

enum class MetricKind : std::uint8_t {
  kLevel,    // min, mean, max and percentiles
  kCounter,  // only grows, until it is restarted; of interest is by how much
};

// One metric. Its name is that of the API. All values are whole numbers in its unit, which may be
// another one than the name's: milliwatts of "power_watts".
struct Metric {
  std::string_view name;
  Of of = Of::kGpu;
  MetricKind kind = MetricKind::kLevel;
  model::GpuUnit unit = model::GpuUnit::kNone;
};

// The place of a metric in metrics(). It may differ between versions of the program: files have the
// name.
using MetricId = std::uint16_t;

// All, in a fixed order: those of GPUs, hosts, uses.
std::span<const Metric> metrics();
inline const Metric& metric(MetricId id) {
  return metrics()[id];
}
// Whether a distribution of it is kept of each quarter of an hour, so that percentiles are known
// for as long. Of the others they are known as long as samples are kept: a distribution has more
// bytes than all else of a quarter.
bool has_spread(const Metric& metric);
std::optional<MetricId> metric_named(Of of, std::string_view name);

// The metrics of a use. `attributed_by` says how the others were found (telemetry/attribution.h).
inline constexpr std::string_view kUseUtilization = "utilization_percent";
inline constexpr std::string_view kUseMemory = "memory_used_bytes";
inline constexpr std::string_view kUsePower = "power_watts";
inline constexpr std::string_view kUseAttributedBy = "attributed_by";

}  // namespace gpu_platform::telemetry
