#include "bin/kubernetes_settings.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

TEST(KubernetesSettings, AreThoseOfTheConfiguration) {
  config::Configuration site;
  site.kubernetes_cluster.text = "west";
  site.kubernetes_namespace.text = "jobs";
  site.kubernetes_node_selector.words = {"pool=gpu", "zone=a=b", "dedicated="};
  site.kubernetes_start_timeout = base::minutes(3);
  site.kubernetes_workloads = true;
  const execution::KubernetesSettings settings = kubernetes_settings(site);
  EXPECT_EQ(settings.cluster, "west");
  EXPECT_EQ(settings.namespace_name, "jobs");
  EXPECT_EQ(settings.start_timeout, base::minutes(3));
  EXPECT_TRUE(settings.admits_workloads);
  ASSERT_EQ(settings.node_selector.size(), 3U);
  EXPECT_EQ(settings.node_selector[0].first, "pool");
  EXPECT_EQ(settings.node_selector[0].second, "gpu");
  EXPECT_EQ(settings.node_selector[1].second, "a=b") << "the first '=' divides";
  EXPECT_EQ(settings.node_selector[2].second, "");
}

TEST(KubernetesSettings, EachModeOfDevicesHasItsName) {
  config::Configuration site;
  EXPECT_EQ(kubernetes_settings(site).devices, execution::DeviceMode::kPinned);
  site.kubernetes_devices = config::KubernetesDevices::kOwned;
  EXPECT_EQ(kubernetes_settings(site).devices, execution::DeviceMode::kOwned);
  site.kubernetes_devices = config::KubernetesDevices::kCounts;
  EXPECT_EQ(kubernetes_settings(site).devices, execution::DeviceMode::kCounts);
}

TEST(KubernetesSettings, ExportersAreAskedAtMostEveryFifteenSeconds) {
  config::Configuration site;
  EXPECT_EQ(exporter_settings(site).namespace_name, "gpu-operator");
  EXPECT_EQ(exporter_settings(site).port, 9400);
  EXPECT_EQ(exporter_settings(site).path, "/metrics");
  EXPECT_EQ(exporter_settings(site).interval, base::seconds(15));
  site.monitoring_interval = base::minutes(1);
  site.kubernetes_exporter_pods.text = "app=exporter";
  EXPECT_EQ(exporter_settings(site).interval, base::minutes(1));
  EXPECT_EQ(exporter_settings(site).selector, "app=exporter");
}

}  // namespace
}  // namespace gpu_platform::bin
