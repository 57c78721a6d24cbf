#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "api/gpu_reading_source.h"
#include "bin/cluster_part.h"
#include "model/engine_kind.h"
#include "model/node.h"

namespace gpu_platform::bin {

// The readings of all of the site: those of this host's probes, and those of its cluster's
// exporters. Both outlive it. Any thread.
class SiteReadings final : public api::GpuReadingSource {
 public:
  SiteReadings(api::GpuReadingSource& host, const ClusterPart& cluster)
      : host_(host), cluster_(cluster) {}

  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const override {
    auto reading = host_.latest(uuid);
    return reading != nullptr ? reading : cluster_.latest(uuid);
  }
  std::shared_ptr<const model::HostMetrics> latest_host(std::string_view node) const override {
    return host_.latest_host(node);
  }
  std::string why_none(const model::Node& node) const override {
    if (node.engine != model::EngineKind::kKubernetes) return {};
    return cluster_.why_no_readings(node.name);
  }
  // Exporters are not asked: they have their own pace.
  void ask_for_newer_than(std::chrono::milliseconds age) override { host_.ask_for_newer_than(age); }

 private:
  api::GpuReadingSource& host_;
  const ClusterPart& cluster_;
};

}  // namespace gpu_platform::bin
