#include <stdlib.h>

#include "nvml/board.h"
#include "nvml/rates.h"

// GPM: metrics between two samples of a GPU's counters, from Hopper on. A sample is what the totals
// of a GPU were at its moment; the metrics follow from the load as all else does.

namespace gpu_emulator {

struct GpmSample {
  std::uint32_t gpu;
  bool is_taken;
  std::uint32_t gpu_instance;  // kNoId: of the whole GPU
  std::uint64_t percent;       // the load of the GPU instance at the moment of the sample
  Totals totals;
};

}  // namespace gpu_emulator

using gpu_emulator::board;
using gpu_emulator::GpmMetric;
using gpu_emulator::GpmMetricsGet;
using gpu_emulator::GpmSample;
using gpu_emulator::GpmSupport;
using gpu_emulator::GpuState;
using gpu_emulator::kArgumentVersionMismatch;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned int kVersion = 1;  // of both structures, without their size

bool has_gpm(const GpuState& gpu) {
  return gpu.architecture >= gpu_emulator::kHopper;
}

// The time between two samples.
struct Span {
  const GpuState& gpu;
  double seconds;
  double busy_seconds;

  double percent() const { return seconds > 0 ? 100 * busy_seconds / seconds : 0; }
  double mebibytes_per_second(double kibibytes) const {
    return seconds > 0 ? kibibytes / 1024 / seconds : 0;
  }
  double nvlink_kibibytes_of(std::uint32_t link) const {
    return static_cast<double>(gpu_emulator::nvlink_kibibytes(
        gpu.nvlinks[link], static_cast<std::uint64_t>(busy_seconds * 1e6)));
  }
};

Span span_between(const GpuState& gpu, const GpmSample& first, const GpmSample& second) {
  const double seconds = static_cast<double>(second.totals.at_ns - first.totals.at_ns) / 1e9;
  if (first.gpu_instance != gpu_emulator::kNoId) {
    return {gpu, seconds, seconds * static_cast<double>(first.percent + second.percent) / 200};
  }
  return {gpu, seconds, static_cast<double>(second.totals.busy_us - first.totals.busy_us) / 1e6};
}

std::uint64_t load_of_instance(const GpuState& gpu, std::uint32_t gpu_instance) {
  const auto now = gpu_emulator::read_gpu(gpu);
  std::uint64_t percent = 0;
  for (std::uint32_t i = 0; i < now.process_count; ++i) {
    if (now.processes[i].instance.gpu_instance != gpu_instance) continue;
    percent += now.processes[i].utilization_percent;
  }
  return percent < 100 ? percent : 100;
}

struct Metric {
  unsigned int id;
  char short_name[24];
  char long_name[48];
  double share;  // of the load
};

// Percentages. The boards' load computes with tensors for half of its time.
constexpr Metric kPercentages[] = {
    {1, "graphics_util", "Graphics utilization", 1.0},
    {2, "sm_util", "SM utilization", 0.9},
    {3, "sm_occupancy", "SM occupancy", 0.5},
    {4, "int_util", "Integer utilization", 0.1},
    {5, "any_tensor_util", "Tensor utilization", 0.5},
    {6, "dfma_tensor_util", "FP64 tensor (DFMA) utilization", 0.0},
    {7, "hmma_tensor_util", "FP16 tensor (HMMA) utilization", 0.5},
    {8, "dmma_tensor_util", "FP64 tensor (DMMA) utilization", 0.0},
    {9, "imma_tensor_util", "Integer tensor (IMMA) utilization", 0.0},
    {10, "dram_bw_util", "Memory bandwidth utilization", 0.5},
    {11, "fp64_util", "FP64 utilization", 0.0},
    {12, "fp32_util", "FP32 utilization", 0.2},
    {13, "fp16_util", "FP16 utilization", 0.1},
};
constexpr char kPercent[] = "%";
constexpr char kPerSecond[] = "MiB/sec";

void name(GpmMetric& metric, const char* short_name, const char* long_name, const char* unit) {
  metric.short_name = short_name;
  metric.long_name = long_name;
  metric.unit = unit;
}

bool is_between(unsigned int id, unsigned int first, unsigned int last) {
  return first <= id && id <= last;
}

nvmlReturn_t pcie_metric(const Span& span, GpmMetric& metric) {
  const double full = static_cast<double>(pcie_kilobytes_per_second(span.gpu, 100)) * 1000 / 1024;
  const bool is_sent = metric.metric_id == 20;
  metric.value = span.mebibytes_per_second(full * span.busy_seconds / (is_sent ? 4 : 1));
  name(metric, is_sent ? "pcie_tx_per_sec" : "pcie_rx_per_sec",
       is_sent ? "PCIe sent" : "PCIe received", kPerSecond);
  return kSuccess;
}

// 60 and 61 are of all links, received and sent; then come the links in pairs.
nvmlReturn_t nvlink_metric(const Span& span, GpmMetric& metric) {
  constexpr unsigned int kFirstLink = 62;
  const std::uint32_t links = link_count(span.gpu);
  if (links == 0) return kNotSupported;
  const bool is_sent = metric.metric_id % 2 == 1;
  double kibibytes = 0;
  if (metric.metric_id < kFirstLink) {
    for (std::uint32_t i = 0; i < links; ++i) kibibytes += span.nvlink_kibibytes_of(i);
  } else {
    const std::uint32_t link = (metric.metric_id - kFirstLink) / 2;
    if (link >= links) return kNotSupported;
    kibibytes = span.nvlink_kibibytes_of(link);
  }
  metric.value = span.mebibytes_per_second(kibibytes);
  name(metric, is_sent ? "nvlink_tx_per_sec" : "nvlink_rx_per_sec",
       is_sent ? "NVLink sent" : "NVLink received", kPerSecond);
  return kSuccess;
}

nvmlReturn_t measure(const Span& span, GpmMetric& metric) {
  for (const Metric& known : kPercentages) {
    if (known.id != metric.metric_id) continue;
    metric.value = span.percent() * known.share;
    name(metric, known.short_name, known.long_name, kPercent);
    return kSuccess;
  }
  if (is_between(metric.metric_id, 20, 21)) return pcie_metric(span, metric);
  if (is_between(metric.metric_id, 60, 97)) return nvlink_metric(span, metric);
  // Engines for video, pictures and optical flow, which the boards' loads do not use.
  if (is_between(metric.metric_id, 30, 37) || is_between(metric.metric_id, 40, 47) ||
      is_between(metric.metric_id, 50, 51)) {
    metric.value = 0;
    name(metric, "engine_util", "Engine utilization", kPercent);
    return kSuccess;
  }
  return kNotSupported;
}

}  // namespace

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, GpmSupport* support) {
  if (board() == nullptr) return kUninitialized;
  if (support == nullptr) return kInvalidArgument;
  if (support->version != kVersion) return kArgumentVersionMismatch;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    support->is_supported = has_gpm(gpu) ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample) {
  if (board() == nullptr) return kUninitialized;
  if (sample == nullptr) return kInvalidArgument;
  auto* made = static_cast<GpmSample*>(calloc(1, sizeof(GpmSample)));
  if (made == nullptr) return gpu_emulator::kOutOfMemory;
  *sample = made;
  return kSuccess;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  if (sample == nullptr) return kInvalidArgument;
  free(sample);
  return kSuccess;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  if (board() == nullptr) return kUninitialized;
  if (sample == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    if (!has_gpm(gpu)) return kNotSupported;
    *sample = {index, true, gpu_emulator::kNoId, 0, gpu_emulator::totals_of(index)};
    return kSuccess;
  });
}

// Totals are kept of GPUs alone: the metrics of a GPU instance follow from its load at the moments
// of the two samples.
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                 nvmlGpmSample_t sample) {
  if (board() == nullptr) return kUninitialized;
  if (sample == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    if (!has_gpm(gpu) || !gpu_emulator::is_mig_on(gpu)) return kNotSupported;
    if (gpu_emulator::profile_of(gpu, gpu_instance) == nullptr) return gpu_emulator::kNotFound;
    *sample = {index, true, gpu_instance, load_of_instance(gpu, gpu_instance),
               gpu_emulator::totals_of(index)};
    return kSuccess;
  });
}

// The array of metrics is as long as the caller says: its greatest length grew from branch to
// branch.
nvmlReturn_t nvmlGpmMetricsGet(GpmMetricsGet* query) {
  constexpr unsigned int kMaxMetrics = 4096;
  if (board() == nullptr) return kUninitialized;
  if (query == nullptr) return kInvalidArgument;
  if (query->version != kVersion) return kArgumentVersionMismatch;
  const GpmSample* first = query->sample1;
  const GpmSample* second = query->sample2;
  if (first == nullptr || second == nullptr || query->metric_count > kMaxMetrics ||
      !first->is_taken || !second->is_taken || first->gpu != second->gpu ||
      first->gpu_instance != second->gpu_instance) {
    return kInvalidArgument;
  }
  const GpuState& gpu = board()->gpus[first->gpu % gpu_emulator::kMaxGpus];
  if (second->totals.at_ns < first->totals.at_ns) return kInvalidArgument;
  const Span span = span_between(gpu, *first, *second);
  for (unsigned int i = 0; i < query->metric_count; ++i) {
    GpmMetric& metric = query->metrics[i];
    metric.nvml_return = measure(span, metric);
  }
  return kSuccess;
}

nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int* state) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (state == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (!has_gpm(gpu)) return kNotSupported;
    *state = gpu_emulator::value_of(gpu.settings.streams_metrics) != 0 ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t device, unsigned int state) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  const auto check = [&](const GpuState& gpu) {
    if (!has_gpm(gpu)) return kNotSupported;
    return state <= 1 ? kSuccess : kInvalidArgument;
  };
  return gpu_emulator::set(device, check, [&](GpuState& gpu) {
    gpu.settings.streams_metrics.store(state, std::memory_order_relaxed);
  });
}
