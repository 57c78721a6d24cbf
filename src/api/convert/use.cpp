#include "api/convert/use.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/convert/job.h"
#include "base/check.h"
#include "model/gpu_metrics.h"
#include "telemetry/attribution.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

namespace {

using telemetry::GpuUse;
using telemetry::LevelUse;

double seconds_of(base::Duration time) {
  return static_cast<double>(time.value()) / 1e9;
}

// By what a value is divided to be in the unit of the API.
double divisor_of(std::string_view level) {
  const auto id = telemetry::metric_named(telemetry::Of::kGpu, level);
  CHECK(id.has_value());
  switch (telemetry::metric(*id).unit) {
    case model::GpuUnit::kMilliwatts:
      return 1000;
    case model::GpuUnit::kPermille:
      return 10;
    default:
      return 1;
  }
}

void put(const LevelUse& level, double divisor, v1::MetricUse& out) {
  out.set_min(static_cast<double>(level.min) / divisor);
  out.set_max(static_cast<double>(level.max) / divisor);
  out.set_mean(level.mean() / divisor);
  out.set_samples(level.count);
  out.set_deviation(level.deviation() / divisor);
  // The middle of a bucket may lie beyond the values.
  const auto percentile = [&](double share) {
    const std::int64_t value = *level.spread.percentile(share);
    return static_cast<double>(std::clamp(value, level.min, level.max)) / divisor;
  };
  if (level.spread.count() == 0) return;
  out.set_p50(percentile(0.5));
  out.set_p95(percentile(0.95));
  out.set_p99(percentile(0.99));
}

// Fills the fields of the message that are named as levels.
void put_levels(const std::array<LevelUse, telemetry::kUseLevels.size()>& levels,
                google::protobuf::Message& out) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string name(telemetry::kUseLevels[i]);
    const auto* const field = out.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || levels[i].count == 0) continue;
    auto& metric = static_cast<v1::MetricUse&>(*out.GetReflection()->MutableMessage(&out, field));
    put(levels[i], divisor_of(name), metric);
  }
}

template <class Message>
void put_energy(const std::optional<telemetry::Energy>& energy, Message& out) {
  if (!energy) return;
  out.set_energy_joules(static_cast<double>(energy->millijoules) / 1000);
  out.set_energy_from(std::string(to_string(energy->from)));
}

template <class Message>
void put_throttled(const std::map<std::uint64_t, base::Duration>& times, Message& out) {
  for (const auto& [reason, time] : times) {
    for (const std::string& name : model::throttle_names(reason)) {
      v1::ThrottleTime& one = *out.add_throttled();
      one.set_reason(name);
      one.set_seconds(seconds_of(time));
    }
  }
}

void put_memory_percent(const GpuUse& gpu, v1::UseOnGpu& out) {
  if (gpu.memory > base::Bytes()) {
    out.set_memory_bytes(static_cast<std::uint64_t>(gpu.memory.value()));
  }
  const auto share = telemetry::memory_share_of(gpu);
  if (!share) return;
  const LevelUse& used = gpu.level("memory_used_bytes");
  v1::MetricUse& percent = *out.mutable_memory_percent();
  percent.set_min(share->min);
  percent.set_mean(share->mean);
  percent.set_max(share->max);
  percent.set_samples(used.count);
  percent.set_deviation(used.deviation() * 100 / static_cast<double>(gpu.memory.value()));
}

void put_traffic(const GpuUse& gpu, base::Duration time, v1::UseOnGpu& out) {
  const LevelUse& sent = gpu.level("pcie_sent_bytes_per_second");
  const LevelUse& received = gpu.level("pcie_received_bytes_per_second");
  if (sent.count > 0) out.set_pcie_sent_bytes(sent.mean() * seconds_of(time));
  if (received.count > 0) out.set_pcie_received_bytes(received.mean() * seconds_of(time));
  const telemetry::CounterUse& links_sent = gpu.counter("nvlink_sent_bytes");
  const telemetry::CounterUse& links_received = gpu.counter("nvlink_received_bytes");
  const auto grown = [](const telemetry::CounterUse& counter) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, counter.grown));
  };
  if (links_sent.is_known()) out.set_nvlink_sent_bytes(grown(links_sent));
  if (links_received.is_known()) out.set_nvlink_received_bytes(grown(links_received));
}

void put(const GpuUse& gpu, const telemetry::UseSummary& attempt, v1::UseOnGpu& out) {
  const base::Duration time = attempt.duration();
  out.set_node(gpu.node);
  out.set_index(gpu.index);
  out.set_uuid(gpu.uuid);
  out.set_model(gpu.model);
  out.set_part(gpu.is_part);
  out.set_samples(gpu.samples);
  out.set_expected_samples(attempt.expected_samples());
  put_levels(gpu.levels, out);
  put_memory_percent(gpu, out);
  put_energy(telemetry::energy_of(gpu, time), out);
  put_throttled(telemetry::throttle_time_of(gpu, time), out);
  put_traffic(gpu, time, out);
  const auto top =
      std::ranges::max_element(gpu.attributed_by, {}, [](const auto& way) { return way.second; });
  if (top == gpu.attributed_by.end()) return;
  out.set_attributed_by(std::string(to_string(static_cast<telemetry::AttributedBy>(top->first))));
}

}  // namespace

void to_proto(const telemetry::UseSummary& summary, std::uint32_t attempt, v1::AttemptUse& out) {
  out.set_attempt(attempt);
  to_proto(summary.from, *out.mutable_from());
  to_proto(summary.to, *out.mutable_to());
  out.set_duration_seconds(seconds_of(summary.duration()));
  out.set_interval_seconds(seconds_of(summary.interval));
  out.set_over(summary.is_over);
  for (const GpuUse& gpu : summary.gpus) put(gpu, summary, *out.add_gpus());
}

void to_proto(const telemetry::UseTotals& totals, v1::WholeUse& out) {
  out.set_gpu_seconds(seconds_of(totals.gpu_time));
  out.set_samples(totals.samples);
  out.set_expected_samples(totals.expected_samples);
  // `memory_percent` is a number here, and no level.
  put_levels(totals.levels, out);
  if (totals.memory_permille.count > 0) out.set_memory_percent(totals.memory_permille.mean() / 10);
  put_energy(totals.energy, out);
  put_throttled(totals.throttled, out);
}

void to_proto(const telemetry::UseBrief& brief, v1::JobGpuUse& out) {
  const auto bytes = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  };
  if (brief.utilization_percent) out.set_utilization_percent(*brief.utilization_percent);
  if (brief.memory_percent) out.set_memory_percent(*brief.memory_percent);
  if (brief.peak_memory) out.set_peak_memory_bytes(bytes(*brief.peak_memory));
  if (brief.mean_memory) out.set_memory_bytes(bytes(*brief.mean_memory));
  if (brief.energy) {
    out.set_energy_joules(static_cast<double>(brief.energy->millijoules) / 1000);
  }
  out.set_samples(brief.samples);
}

}  // namespace gpu_platform::api
