#include "api/metrics/gpu_labels.h"

#include <fmt/format.h>

namespace gpu_platform::api {

MetricLabels labels_of(const model::Node& node, std::uint32_t index, bool lower_hostname) {
  const model::GpuInfo& gpu = node.gpus[index].info;
  MetricLabels labels{
      {"gpu", fmt::to_string(index)},
      {"UUID", gpu.uuid},
      {"pci_bus_id", gpu.pci_address},
      {"device", gpu.minor == model::kUnknownMinor ? "" : fmt::format("nvidia{}", gpu.minor)},
      {"modelName", gpu.model},
      {"model", gpu.type},
      {"Hostname", node.name},
      {"DCGM_FI_DRIVER_VERSION", node.driver_version}};
  if (lower_hostname) labels.add("hostname", node.name);
  return labels;
}

base::GpuShare held_of(const model::Gpu& gpu) {
  base::GpuShare held;
  for (const model::GpuHolder& holder : gpu.holders) held += holder.share;
  return held;
}

}  // namespace gpu_platform::api
