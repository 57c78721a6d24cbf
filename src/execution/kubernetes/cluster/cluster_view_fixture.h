#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/cluster/cluster_view.h"

// A view of a cluster, and what it has told.

namespace gpu_platform::execution {

inline KubernetesSettings view_settings(DeviceMode devices = DeviceMode::kPinned) {
  KubernetesSettings settings;
  settings.cluster = "lab";
  settings.namespace_name = "jobs";
  settings.devices = devices;
  return settings;
}

// An object as the platform makes it for rank 0 of a job; or in another namespace, as users could.
inline nlohmann::json labelled(nlohmann::json object, const std::string& namespace_name = "jobs") {
  object["metadata"]["namespace"] = namespace_name;
  object["metadata"]["labels"] = {{"gpu-platform/cluster", "lab"},
                                  {"gpu-platform/job", "1"},
                                  {"gpu-platform/attempt", "1"},
                                  {"gpu-platform/rank", "0"}};
  return object;
}

inline base::Instant at_time(std::string_view clock) {
  return parse_time(fmt::format("2026-11-22T{}Z", clock));
}

// A MIG device of the first GPU.
inline nlohmann::json mig_device(const std::string& name, const std::string& uuid) {
  nlohmann::json device = gpu_device("n1", 0);
  device["name"] = name;
  device["attributes"]["type"]["string"] = "mig";
  device["attributes"]["parentUUID"]["string"] = "GPU-n1-0";
  device["attributes"]["profile"]["string"] = "1g.10gb";
  device["attributes"]["uuid"]["string"] = uuid;
  device["capacity"]["memory"]["value"] = "9728Mi";
  return device;
}

// One node "n1" with two GPUs, unless a test says otherwise.
class ClusterViewTest : public ::testing::Test {
 protected:
  using Kind = ClusterView::Kind;
  static constexpr Kind kSeenKinds[] = {Kind::kNode,     Kind::kSlice,       Kind::kClaim,
                                        Kind::kOtherPod, Kind::kLabelledPod, Kind::kTaintRule};

  void list_all(std::vector<nlohmann::json> nodes, std::vector<nlohmann::json> slices = {}) {
    for (const Kind kind : kSeenKinds) view_.begin_list(kind);
    for (const nlohmann::json& node : nodes) view_.put(Kind::kNode, node);
    for (const nlohmann::json& slice : slices) view_.put(Kind::kSlice, slice);
    for (const Kind kind : kSeenKinds) view_.end_list(kind);
    take();
  }
  void list_one_node() {
    list_all({node_object("n1")},
             {slice_object({"s1", "n1"}, {gpu_device("n1", 0), gpu_device("n1", 1)})});
  }
  void use(const KubernetesSettings& settings) { view_ = ClusterView(settings); }

  // Takes over what is told.
  void take(std::string_view clock = "09:00:00") {
    count_ = 0;
    for (ClusterObservation& one : view_.take_changes(at_time(clock))) {
      ++count_;
      std::visit([this](auto& seen) { on(seen); }, one);
    }
  }
  void on(const NodeObserved& seen) {
    infos_[seen.info.name] = seen.info;
    lost_.erase(seen.info.name);
  }
  void on(const NodeUnreachable& seen) { lost_[seen.node_name] = seen.cause; }
  void on(const TaintObserved& seen) {
    if (seen.gpu_uuid.empty()) {
      taints_[seen.node_name] = seen;
    } else {
      EXPECT_EQ(seen.effect.has_value(), !seen.text.empty());
      gpus_[seen.gpu_uuid] = seen.text;
    }
  }

  void on(const EvidenceObserved& seen) { evidence_.push_back(seen); }

  void expect_taint(std::optional<model::TaintEffect> effect, std::string_view cause) {
    take();
    EXPECT_EQ(taints_["n1"].effect, effect);
    EXPECT_EQ(taints_["n1"].text, cause);
  }

  ClusterView view_{view_settings()};
  std::size_t count_ = 0;
  std::map<std::string, model::NodeInfo> infos_;
  std::map<std::string, std::string> lost_;
  std::map<std::string, TaintObserved> taints_;
  std::map<std::string, std::string> gpus_;
  std::vector<EvidenceObserved> evidence_;
};

}  // namespace gpu_platform::execution
