#pragma once

#include <cstdint>

#include "api/metrics/page.h"
#include "model/gpu_reading.h"
#include "model/node.h"

namespace gpu_platform::api {

// The readings of GPUs in the names of OpenTelemetry's semantic conventions (hw.gpu.*), as
// Prometheus spells them: base units, and each attribute as a label.
class OtelReadings {
 public:
  explicit OtelReadings(MetricPage& page) : page_(page) {}

  // Of every GPU that was read.
  void add_status(const model::Node& node, std::uint32_t index, bool answers);
  // Of a GPU that answers.
  void add(const model::Node& node, std::uint32_t index, const model::GpuReading& reading);

 private:
  void add_work(const MetricLabels& labels, const model::GpuReading& reading);
  void add_memory(const MetricLabels& labels, base::Bytes memory, const model::GpuReading& reading);
  void add_errors(const MetricLabels& labels, const model::GpuReading& reading);

  MetricPage& page_;
  MetricFamily& status_ =
      page_.gauge("hw_status", "The state of the hardware, in the label hw_state; always 1.");
  MetricFamily& utilization_ = page_.gauge(
      "hw_gpu_utilization_ratio", "The share of time in which the GPU works, by task (0 to 1).");
  MetricFamily& limit_ = page_.gauge("hw_gpu_memory_limit_bytes", "Memory of the GPU.");
  MetricFamily& used_ = page_.gauge("hw_gpu_memory_usage_bytes", "Memory of the GPU in use.");
  MetricFamily& used_ratio_ = page_.gauge("hw_gpu_memory_utilization_ratio",
                                          "The share of the GPU's memory in use (0 to 1).");
  MetricFamily& io_ = page_.counter("hw_gpu_io_bytes_total",
                                    "Bytes over the GPU's NVLinks since the driver was loaded.");
  MetricFamily& errors_ =
      page_.counter("hw_errors_total", "ECC errors since the driver was loaded.");
  MetricFamily& energy_ =
      page_.counter("hw_energy_joules_total", "Energy since the driver was loaded.");
  MetricFamily& power_ = page_.gauge("hw_power_watts", "Power draw.");
  MetricFamily& temperature_ = page_.gauge("hw_temperature_celsius", "Temperature.");
};

}  // namespace gpu_platform::api
