#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "api/metrics/gpu_labels.h"
#include "api/metrics/otel_readings.h"
#include "api/metrics/scrape.h"
#include "model/gpu_metrics.h"

// The readings of GPUs in the names, units and kinds of NVIDIA's dcgm-exporter.

namespace gpu_platform::api {

namespace {

// XIDs after which a GPU is out of service. They are on the page before they have occurred, so that
// increase() sees the first one. No more of them: each is a series of every GPU.
constexpr std::array<std::uint64_t, 6> kCriticalXids = {48, 64, 74, 79, 95, 119};

constexpr std::uint64_t kHardwareSlowdown =
    model::kThrottleHardware | model::kThrottleHeatSoftware | model::kThrottleHeatHardware |
    model::kThrottlePowerBrake;

template <class Value>
double number(Value value) {
  if constexpr (requires { value.value(); }) {
    return static_cast<double>(value.value());
  } else {
    return static_cast<double>(value);
  }
}

double scaled(double value, model::GpuUnit unit) {
  switch (unit) {
    case model::GpuUnit::kBytes:
      return value / number(base::kMiB);
    case model::GpuUnit::kPermille:
    case model::GpuUnit::kBytesPerSecond:
    case model::GpuUnit::kMilliwatts:
      return value / 1000;
    default:
      return value;
  }
}

struct SeenGpu {
  const MetricLabels& labels;
  const model::GpuInfo& info;
  const model::GpuReading& reading;
};

// The rows of the table that are on the page, and what is made of several rows or has no row.
class DcgmReadings {
 public:
  explicit DcgmReadings(MetricPage& page) : page_(page) {
    std::size_t i = 0;
    model::for_each_gpu_metric([&](const auto& row) {
      const bool is_counter = row.count == model::GpuCount::kCounter;
      const MetricKind kind = is_counter ? MetricKind::kCounter : MetricKind::kGauge;
      if (!row.exported.name.empty()) {
        families_[i] = &page.family(row.exported.name, row.exported.help, kind);
      }
      ++i;
    });
  }

  void add(const SeenGpu& gpu) {
    std::size_t i = 0;
    model::for_each_gpu_metric([&](const auto& row) {
      MetricFamily* const family = families_[i++];
      if (family == nullptr) return;
      if (const auto value = row.of(gpu.reading)) {
        family->add(gpu.labels, scaled(number(*value), row.unit));
      }
    });
    add_free_memory(gpu);
    if (gpu.reading.slowdown_c) slowdown_.add(gpu.labels, *gpu.reading.slowdown_c);
    if (gpu.reading.slow) add_links(gpu, *gpu.reading.slow);
  }

  // Also of one that does not answer: mostly it had an XID just before.
  void add_last_xid(const SeenGpu& gpu) {
    if (!gpu.reading.xids.empty()) {
      last_xid_.add(gpu.labels, static_cast<double>(gpu.reading.xids.front().xid));
    } else if (gpu.reading.problem.empty()) {
      last_xid_.add(gpu.labels, 0);
    }
  }

 private:
  void add_free_memory(const SeenGpu& gpu) {
    if (!gpu.reading.memory_used) return;
    const auto taken =
        *gpu.reading.memory_used + gpu.reading.memory_reserved.value_or(base::Bytes());
    // The driver's two numbers are not of one moment.
    const auto free = std::max(base::Bytes(), gpu.info.memory - taken);
    free_.add(gpu.labels, scaled(number(free), model::GpuUnit::kBytes));
  }

  void add_links(const SeenGpu& gpu, const model::GpuSlowMetrics& slow) {
    if (slow.pcie_sent_bytes_per_second) {
      pcie_sent_.add(gpu.labels, number(*slow.pcie_sent_bytes_per_second));
    }
    if (slow.pcie_received_bytes_per_second) {
      pcie_received_.add(gpu.labels, number(*slow.pcie_received_bytes_per_second));
    }
    if (slow.nvlink_sent && slow.nvlink_received) {
      nvlink_.add(gpu.labels, scaled(number(*slow.nvlink_sent + *slow.nvlink_received),
                                     model::GpuUnit::kBytes));
    }
    // The name that this had before the exporter's was there.
    if (slow.pcie_replays) pcie_replays_.add(gpu.labels, number(*slow.pcie_replays));
  }

  MetricPage& page_;
  std::array<MetricFamily*, model::kGpuMetricCount> families_{};  // null: not on the page
  MetricFamily& last_xid_ =
      page_.gauge("DCGM_FI_DEV_XID_ERRORS", "The last XID since the daemon began; 0: none.");
  MetricFamily& free_ = page_.gauge("DCGM_FI_DEV_FB_FREE", "GPU memory free (in MiB).");
  MetricFamily& slowdown_ = page_.gauge("DCGM_FI_DEV_SLOWDOWN_TEMP",
                                        "Temperature at which the GPU lowers its clocks (in C).");
  MetricFamily& pcie_sent_ =
      page_.gauge("DCGM_FI_PROF_PCIE_TX_BYTES", "PCIe traffic sent (in bytes per second).");
  MetricFamily& pcie_received_ =
      page_.gauge("DCGM_FI_PROF_PCIE_RX_BYTES", "PCIe traffic received (in bytes per second).");
  MetricFamily& nvlink_ = page_.counter(
      "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
      "Data sent and received over all NVLinks since the driver was loaded (in MiB).");
  MetricFamily& pcie_replays_ =
      page_.gauge("gpu_platform_gpu_pcie_replays", "The same as DCGM_FI_DEV_PCIE_REPLAY_COUNTER.");
};

class OwnReadings {
 public:
  explicit OwnReadings(MetricPage& page) : page_(page) {}

  // Of every GPU that was read, also if it does not answer: mostly it had an XID just before.
  void add_any(const SeenGpu& gpu) {
    const bool answers = gpu.reading.problem.empty();
    answers_.add(gpu.labels, answers ? 1 : 0);
    for (const std::uint64_t xid : kCriticalXids) {
      if (!gpu.reading.xid_counts.contains(xid)) add_xid(gpu.labels, xid, 0);
    }
    for (const auto& [xid, count] : gpu.reading.xid_counts) {
      add_xid(gpu.labels, xid, static_cast<double>(count));
    }
  }

  void add(const SeenGpu& gpu) {
    if (!gpu.reading.throttle_reasons) return;
    const bool is_slow = (*gpu.reading.throttle_reasons & kHardwareSlowdown) != 0;
    slowdown_.add(gpu.labels, is_slow ? 1 : 0);
  }

 private:
  void add_xid(const MetricLabels& labels, std::uint64_t xid, double count) {
    const bool is_critical = std::ranges::find(kCriticalXids, xid) != kCriticalXids.end();
    MetricLabels of_xid = labels.with("severity", is_critical ? "critical" : "other");
    xids_.add(of_xid.add("xid", fmt::to_string(xid)), count);
  }

  MetricPage& page_;
  MetricFamily& xids_ = page_.counter(
      "gpu_platform_gpu_xids_total",
      "XIDs that the driver reported, by GPU and number; severity: critical or other.");
  MetricFamily& answers_ =
      page_.gauge("gpu_platform_gpu_answers", "Whether the GPU answers its driver (0 or 1).");
  MetricFamily& slowdown_ =
      page_.gauge("gpu_platform_gpu_hardware_slowdown",
                  "Whether heat or power hold the clocks of the GPU down (0 or 1).");
};

}  // namespace

void add_gpu_readings(const Scrape& scrape, MetricPage& page) {
  if (scrape.core.readings == nullptr) return;
  const config::MetricsRules& rules = scrape.core.metrics;
  std::optional<DcgmReadings> dcgm;
  std::optional<OtelReadings> otel;
  if (rules.names != config::MetricNames::kOtel) dcgm.emplace(page);
  if (rules.names != config::MetricNames::kDcgm) otel.emplace(page);
  OwnReadings own(page);
  for_each_gpu(*scrape.snapshot,
               [&](const model::Node& node, std::uint32_t i, const model::Gpu& gpu) {
                 const auto reading = scrape.core.readings->latest(gpu.info.uuid);
                 if (reading == nullptr) return;
                 const MetricLabels labels = labels_of(node, i, rules.lower_hostname);
                 const SeenGpu seen{labels, gpu.info, *reading};
                 own.add_any(seen);
                 if (dcgm) dcgm->add_last_xid(seen);
                 if (otel) otel->add_status(node, i, reading->problem.empty());
                 if (!reading->problem.empty()) return;
                 own.add(seen);
                 if (dcgm) dcgm->add(seen);
                 if (otel) otel->add(node, i, *reading);
               });
}

}  // namespace gpu_platform::api
