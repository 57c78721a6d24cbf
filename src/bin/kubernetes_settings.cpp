#include "bin/kubernetes_settings.h"

#include <algorithm>

#include "base/check.h"

namespace gpu_platform::bin {

namespace {

execution::DeviceMode mode_of(config::KubernetesDevices devices) {
  switch (devices) {
    case config::KubernetesDevices::kPinned:
      return execution::DeviceMode::kPinned;
    case config::KubernetesDevices::kOwned:
      return execution::DeviceMode::kOwned;
    case config::KubernetesDevices::kCounts:
      return execution::DeviceMode::kCounts;
  }
  CHECK(false);
}

}  // namespace

execution::KubernetesSettings kubernetes_settings(const config::Configuration& configuration) {
  execution::KubernetesSettings settings;
  settings.cluster = configuration.kubernetes_cluster.text;
  settings.namespace_name = configuration.kubernetes_namespace.text;
  settings.image_pull_secrets = configuration.kubernetes_pull_secrets.words;
  for (const std::string& word : configuration.kubernetes_node_selector.words) {
    const std::size_t equals = word.find('=');
    settings.node_selector.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  settings.capacity_label = configuration.kubernetes_capacity_label.text;
  settings.devices = mode_of(configuration.kubernetes_devices);
  settings.driver = configuration.kubernetes_driver.text;
  settings.device_class = configuration.kubernetes_device_class.text;
  settings.priority_class = configuration.kubernetes_priority_class.text;
  settings.runs_as_user = configuration.kubernetes_runs_as_user;
  settings.start_timeout = configuration.kubernetes_start_timeout;
  settings.lost_after = configuration.kubernetes_lost_after;
  settings.admits_workloads = configuration.kubernetes_workloads;
  settings.workloads_user = configuration.kubernetes_workloads_user.text;
  return settings;
}

execution::ExporterSettings exporter_settings(const config::Configuration& configuration) {
  execution::ExporterSettings settings;
  settings.namespace_name = configuration.kubernetes_exporter_namespace.text;
  settings.selector = configuration.kubernetes_exporter_pods.text;
  settings.port = static_cast<std::uint16_t>(configuration.kubernetes_exporter_port);
  settings.path = configuration.kubernetes_exporter_path.text;
  settings.interval = std::max(kShortestExporterInterval, configuration.monitoring_interval);
  return settings;
}

}  // namespace gpu_platform::bin
