#include "api/metrics/otel_readings.h"

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

MetricLabels labels_of_hardware(const model::Node& node, std::uint32_t index) {
  const model::GpuInfo& gpu = node.gpus[index].info;
  return {
      {"hw_id", gpu.uuid},      {"hw_type", "gpu"},      {"hw_name", fmt::format("gpu{}", index)},
      {"hw_model", gpu.model},  {"hw_vendor", "NVIDIA"}, {"hw_driver_version", node.driver_version},
      {"hw_parent", node.name}, {"host_name", node.name}};
}

// The conventions have three states and "predicted_failure".
std::string_view state_of(const model::Gpu& gpu, bool answers) {
  if (!answers || gpu.state == model::GpuState::kOffline) return "failed";
  return gpu.state == model::GpuState::kDegraded ? "degraded" : "ok";
}

double in_bytes(base::Bytes bytes) {
  return static_cast<double>(bytes.value());
}

}  // namespace

void OtelReadings::add_status(const model::Node& node, std::uint32_t index, bool answers) {
  MetricLabels labels = labels_of_hardware(node, index);
  status_.add(labels.add("hw_state", state_of(node.gpus[index], answers)), 1);
}

void OtelReadings::add(const model::Node& node, std::uint32_t index,
                       const model::GpuReading& reading) {
  const MetricLabels labels = labels_of_hardware(node, index);
  add_work(labels, reading);
  add_memory(labels, node.gpus[index].info.memory, reading);
  add_errors(labels, reading);
  if (reading.power) power_.add(labels, static_cast<double>(reading.power->value()) / 1000);
  if (reading.temperature_c) {
    temperature_.add(labels.with("hw_sensor_location", "gpu"), *reading.temperature_c);
  }
  if (reading.memory_temperature_c) {
    temperature_.add(labels.with("hw_sensor_location", "memory"), *reading.memory_temperature_c);
  }
  if (!reading.slow) return;
  if (reading.slow->energy_mj) {
    energy_.add(labels, static_cast<double>(*reading.slow->energy_mj) / 1000);
  }
  if (reading.slow->nvlink_sent) {
    io_.add(labels.with("network_io_direction", "transmit"), in_bytes(*reading.slow->nvlink_sent));
  }
  if (reading.slow->nvlink_received) {
    io_.add(labels.with("network_io_direction", "receive"),
            in_bytes(*reading.slow->nvlink_received));
  }
}

void OtelReadings::add_work(const MetricLabels& labels, const model::GpuReading& reading) {
  const auto add = [&](std::string_view task, const std::optional<std::uint32_t>& percent) {
    if (percent) utilization_.add(labels.with("hw_gpu_task", task), *percent / 100.0);
  };
  add("general", reading.utilization_percent);
  add("encoder", reading.encoder_percent);
  add("decoder", reading.decoder_percent);
}

void OtelReadings::add_memory(const MetricLabels& labels, base::Bytes memory,
                              const model::GpuReading& reading) {
  limit_.add(labels, in_bytes(memory));
  if (!reading.memory_used) return;
  used_.add(labels, in_bytes(*reading.memory_used));
  if (memory > base::Bytes())
    used_ratio_.add(labels, in_bytes(*reading.memory_used) / in_bytes(memory));
}

void OtelReadings::add_errors(const MetricLabels& labels, const model::GpuReading& reading) {
  if (reading.ecc_corrected) {
    errors_.add(labels.with("error_type", "corrected"),
                static_cast<double>(*reading.ecc_corrected));
  }
  if (reading.ecc_uncorrected) {
    errors_.add(labels.with("error_type", "uncorrected"),
                static_cast<double>(*reading.ecc_uncorrected));
  }
}

}  // namespace gpu_platform::api
