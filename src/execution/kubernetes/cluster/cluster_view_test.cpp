#include "execution/kubernetes/cluster/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using Kind = ClusterView::Kind;

constexpr Kind kSeenKinds[] = {Kind::kNode,     Kind::kSlice,       Kind::kClaim,
                               Kind::kOtherPod, Kind::kLabelledPod, Kind::kTaintRule};

KubernetesSettings view_settings(DeviceMode devices = DeviceMode::kPinned) {
  KubernetesSettings settings;
  settings.cluster = "lab";
  settings.namespace_name = "jobs";
  settings.devices = devices;
  return settings;
}

// An object as the platform makes it for rank 0 of a job; or in another namespace, as users could.
Json labelled(Json object, const std::string& namespace_name = "jobs") {
  object["metadata"]["namespace"] = namespace_name;
  object["metadata"]["labels"] = {{"gpu-platform/cluster", "lab"},
                                  {"gpu-platform/job", "1"},
                                  {"gpu-platform/attempt", "1"},
                                  {"gpu-platform/rank", "0"}};
  return object;
}

base::Instant at_time(std::string_view clock) {
  return parse_time(fmt::format("2026-11-22T{}Z", clock));
}

// One node "n1" with two GPUs, unless a test says otherwise.
class ClusterViewTest : public ::testing::Test {
 protected:
  void list_all(std::vector<Json> nodes, std::vector<Json> slices = {}) {
    for (const Kind kind : kSeenKinds) view_.begin_list(kind);
    for (const Json& node : nodes) view_.put(Kind::kNode, node);
    for (const Json& slice : slices) view_.put(Kind::kSlice, slice);
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
};

TEST_F(ClusterViewTest, DescribesANode) {
  list_one_node();
  const model::NodeInfo& info = infos_["n1"];
  EXPECT_EQ(info.boot_id, "uid-n1");
  EXPECT_EQ(info.cpus, 127U);
  EXPECT_EQ(info.memory, base::kGiB * 2000);
  EXPECT_EQ(info.driver_version, "570.1.0");
  EXPECT_EQ(info.engine, model::EngineKind::kKubernetes);
  EXPECT_EQ(info.network.zone, "z1");
  EXPECT_FALSE(info.emulated);
  ASSERT_EQ(info.gpus.size(), 2U);
  const model::GpuInfo& gpu = info.gpus[1];
  EXPECT_EQ(gpu.uuid, "GPU-n1-1");
  EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.type, "H100-80GB");
  EXPECT_EQ(gpu.memory, base::kMiB * 81559);
  EXPECT_EQ(gpu.pci_address, "00000000:01:00.0");
  EXPECT_EQ(gpu.minor, model::kUnknownMinor);
  EXPECT_EQ(gpu.numa_node, -1);
  EXPECT_EQ(taints_["n1"].effect, std::nullopt);
  EXPECT_EQ(gpus_["GPU-n1-0"], "");
  EXPECT_EQ(view_.boot_id_of("n1"), "uid-n1");
  EXPECT_EQ(view_.nodes(), 1U);
  EXPECT_EQ(view_.device_of("n1", "GPU-n1-1"), (DeviceName{"gpu.nvidia.com", "n1", "gpu-1"}));
  EXPECT_FALSE(view_.device_of("n1", "GPU-n1-9").has_value());
}

TEST_F(ClusterViewTest, TellsTheCapacityClassByTheLabelsOfTheSiteAndOfClouds) {
  using model::CapacityClass;
  KubernetesSettings with = view_settings();
  with.capacity_label = "example.org/capacity";
  use(with);
  struct Case {
    std::map<std::string, std::string> labels;
    CapacityClass is = CapacityClass::kOnDemand;
  };
  const std::vector<Case> cases = {
      {{}, CapacityClass::kOnDemand},
      {{{"karpenter.sh/capacity-type", "spot"}}, CapacityClass::kSpot},
      {{{"karpenter.sh/capacity-type", "on-demand"}}, CapacityClass::kOnDemand},
      {{{"karpenter.sh/capacity-type", "reserved"}}, CapacityClass::kReserved},
      {{{"cloud.google.com/gke-spot", "true"}}, CapacityClass::kSpot},
      {{{"cloud.google.com/gke-preemptible", "true"}}, CapacityClass::kSpot},
      {{{"cloud.google.com/gke-provisioning", "spot"}}, CapacityClass::kSpot},
      {{{"cloud.google.com/gke-provisioning", "standard"}}, CapacityClass::kOnDemand},
      {{{"eks.amazonaws.com/capacityType", "SPOT"}}, CapacityClass::kSpot},
      {{{"eks.amazonaws.com/capacityType", "ON_DEMAND"}}, CapacityClass::kOnDemand},
      {{{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"}}, CapacityClass::kReserved},
      {{{"kubernetes.azure.com/scalesetpriority", "spot"}}, CapacityClass::kSpot},
      {{{"example.org/capacity", "Reserved"}, {"karpenter.sh/capacity-type", "spot"}},
       CapacityClass::kReserved},
  };
  std::vector<Json> nodes;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    nodes.push_back(node_object(fmt::format("c{}", i)));
    for (const auto& [key, value] : cases[i].labels) {
      nodes.back()["metadata"]["labels"][key] = value;
    }
  }
  list_all(nodes);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(infos_[fmt::format("c{}", i)].capacity, cases[i].is) << nodes[i]["metadata"];
  }
  nodes[0]["metadata"]["labels"]["karpenter.sh/capacity-type"] = "spot";
  view_.put(Kind::kNode, nodes[0]);
  take();
  EXPECT_EQ(infos_["c0"].capacity, CapacityClass::kSpot) << "a label that changes is told";
}

TEST_F(ClusterViewTest, TellsNothingBeforeEverythingWasListedOnce) {
  view_.begin_list(Kind::kNode);
  view_.put(Kind::kNode, node_object("n1"));
  view_.end_list(Kind::kNode);
  take();
  EXPECT_EQ(count_, 0U);
}

TEST_F(ClusterViewTest, TellsEachChangeOnceAndOfItsNodeAlone) {
  list_all({node_object("n1"), node_object("n2")});
  EXPECT_EQ(count_, 4U);
  take();
  EXPECT_EQ(count_, 0U);
  view_.put(Kind::kNode, node_object("n1"));
  take();
  EXPECT_EQ(count_, 0U);
  Json cordoned = node_object("n1");
  cordoned["spec"]["unschedulable"] = true;
  view_.put(Kind::kNode, cordoned);
  take();
  EXPECT_EQ(count_, 1U);
  EXPECT_EQ(taints_["n1"].text, "cordoned");
  EXPECT_EQ(taints_["n2"].text, "");
}

TEST_F(ClusterViewTest, OnlyNodesWithTheLabelsOfOursCount) {
  KubernetesSettings with = view_settings();
  with.node_selector = {{"pool", "gpu"}};
  use(with);
  Json ours = node_object("n1");
  ours["metadata"]["labels"]["pool"] = "gpu";
  list_all({ours, node_object("n2")});
  EXPECT_EQ(view_.nodes(), 1U);
  EXPECT_EQ(infos_.count("n2"), 0U);
  view_.put(Kind::kNode, node_object("n1"));
  take();
  EXPECT_EQ(lost_["n1"], "the node does not have the labels of ours any more");
}

TEST_F(ClusterViewTest, GpusComeInTheOrderOfTheirBus) {
  Json first = gpu_device("n1", 9);
  first["attributes"]["resource.kubernetes.io/pciBusID"]["string"] = "00000000:00:00.0";
  Json without_bus = gpu_device("n1", 2);
  without_bus["attributes"].erase("resource.kubernetes.io/pciBusID");
  Json other_without = gpu_device("n1", 10);
  other_without["attributes"].erase("resource.kubernetes.io/pciBusID");
  list_all({node_object("n1")},
           {slice_object({"s1", "n1"}, {gpu_device("n1", 1), first, other_without, without_bus})});
  std::vector<std::string> uuids;
  for (const model::GpuInfo& gpu : infos_["n1"].gpus) uuids.push_back(gpu.uuid);
  EXPECT_THAT(uuids, ::testing::ElementsAre("GPU-n1-2", "GPU-n1-10", "GPU-n1-9", "GPU-n1-1"));
}

TEST_F(ClusterViewTest, AnIncompletePoolStaysAsItWas) {
  list_one_node();
  view_.put(Kind::kSlice, slice_object({"s2", "n1", 2, 2}, {gpu_device("n1", 5)}));
  take();
  EXPECT_EQ(count_, 0U);
  EXPECT_TRUE(view_.device_of("n1", "GPU-n1-0").has_value());
  view_.put(Kind::kSlice, slice_object({"s3", "n1", 2, 2}, {gpu_device("n1", 6)}));
  take();
  ASSERT_EQ(infos_["n1"].gpus.size(), 2U);
  EXPECT_EQ(infos_["n1"].gpus[0].uuid, "GPU-n1-5");
  view_.remove(Kind::kSlice, slice_object({"s1", "n1"}, {}));
  take();
  EXPECT_EQ(count_, 0U);
}

TEST_F(ClusterViewTest, APoolWithoutSlicesIsGone) {
  list_one_node();
  view_.remove(Kind::kSlice, slice_object({"s1", "n1"}, {}));
  take();
  EXPECT_TRUE(infos_["n1"].gpus.empty());
  EXPECT_FALSE(view_.device_of("n1", "GPU-n1-0").has_value());
}

TEST_F(ClusterViewTest, OtherDevicesAreNoGpus) {
  Json vfio = gpu_device("n1", 3);
  vfio["attributes"]["type"]["string"] = "vfio";
  Json nameless = gpu_device("n1", 4);
  nameless["attributes"].erase("uuid");
  Json of_other_driver = slice_object({"s2", "n1"}, {gpu_device("n1", 7)});
  of_other_driver["spec"]["driver"] = "nic.example";
  list_all({node_object("n1")}, {slice_object({"s1", "n1"}, {vfio, nameless}), of_other_driver});
  EXPECT_TRUE(infos_["n1"].gpus.empty());
}

Json mig_device(const std::string& name, const std::string& uuid) {
  Json device = gpu_device("n1", 0);
  device["name"] = name;
  device["attributes"]["type"]["string"] = "mig";
  device["attributes"]["parentUUID"]["string"] = "GPU-n1-0";
  device["attributes"]["profile"]["string"] = "1g.10gb";
  device["attributes"]["uuid"]["string"] = uuid;
  device["capacity"]["memory"]["value"] = "9728Mi";
  return device;
}

TEST_F(ClusterViewTest, AStaticMigInstanceIsAGpuOfItsProfile) {
  list_all({node_object("n1")},
           {slice_object({"s1", "n1"}, {mig_device("gpu-0-mig-1g10gb-19-0", "MIG-a")})});
  ASSERT_EQ(infos_["n1"].gpus.size(), 1U);
  EXPECT_EQ(infos_["n1"].gpus[0].uuid, "MIG-a");
  EXPECT_EQ(infos_["n1"].gpus[0].type, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  EXPECT_EQ(infos_["n1"].gpus[0].memory, base::kMiB * 9728);
}

TEST_F(ClusterViewTest, AClaimOfOthersTakesItsGpu) {
  list_one_node();
  view_.put(Kind::kClaim, claim_object("notebook", "n1", "gpu-1"));
  take();
  EXPECT_EQ(count_, 1U);
  EXPECT_EQ(gpus_["GPU-n1-1"], "claim ml/notebook of pod user");
  EXPECT_EQ(gpus_["GPU-n1-0"], "");
  Json ended = claim_object("notebook", "n1", "gpu-1");
  ended["status"] = Json::object();
  view_.put(Kind::kClaim, ended);
  take();
  EXPECT_EQ(gpus_["GPU-n1-1"], "");
}

TEST_F(ClusterViewTest, OurOwnClaimsAndAdministratorsTakeNothing) {
  list_one_node();
  Json ours = labelled(claim_object("gp-lab-1-1-0", "n1", "gpu-1"));
  Json admin = claim_object("monitor", "n1", "gpu-0");
  admin["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = true;
  view_.put(Kind::kClaim, ours);
  view_.put(Kind::kClaim, admin);
  take();
  EXPECT_EQ(count_, 0U);
  ours["metadata"]["labels"]["gpu-platform/cluster"] = "other";
  view_.put(Kind::kClaim, ours);
  take();
  EXPECT_EQ(gpus_["GPU-n1-1"], "claim jobs/gp-lab-1-1-0 of pod user");
}

TEST_F(ClusterViewTest, AClaimThatCameBeforeItsDevicesCountsWhenTheyCome) {
  list_all({node_object("n1")});
  view_.put(Kind::kClaim, claim_object("notebook", "n1", "gpu-1"));
  take();
  EXPECT_EQ(count_, 0U);
  view_.put(Kind::kSlice, slice_object({"s1", "n1"}, {gpu_device("n1", 1)}));
  take();
  EXPECT_EQ(gpus_["GPU-n1-1"], "claim ml/notebook of pod user");
}

TEST_F(ClusterViewTest, APartOfAGpuTakesTheWhole) {
  list_all({node_object("n1")},
           {slice_object({"s1", "n1"}, {gpu_device("n1", 0), mig_device("gpu-0-mig-0", "")})});
  EXPECT_EQ(infos_["n1"].gpus.size(), 1U);
  view_.put(Kind::kClaim, claim_object("notebook", "n1", "gpu-0-mig-0"));
  take();
  EXPECT_EQ(gpus_["GPU-n1-0"], "claim ml/notebook of pod user");
}

TEST_F(ClusterViewTest, ADeviceTaintTakesAGpuUnlessItIsForShow) {
  Json faulty = gpu_device("n1", 0);
  faulty["taints"] = Json::parse(
      R"([{"key":"gpu.nvidia.com/unmonitored","effect":"None"},
          {"key":"gpu.nvidia.com/xid","value":"79","effect":"NoSchedule"}])");
  Json watched = gpu_device("n1", 1);
  watched["taints"] = Json::parse(R"([{"key":"gpu.nvidia.com/unmonitored","effect":"None"}])");
  list_all({node_object("n1")}, {slice_object({"s1", "n1"}, {faulty, watched})});
  EXPECT_EQ(gpus_["GPU-n1-0"], "taint gpu.nvidia.com/xid=79:NoSchedule");
  EXPECT_EQ(gpus_["GPU-n1-1"], "");
}

TEST_F(ClusterViewTest, ARuleTaintsTheDevicesThatItSelects) {
  const std::string taint = "taint example.org/quarantine=yes:NoSchedule of rule r";
  list_all({node_object("n1"), node_object("n2")},
           {slice_object({"s1", "n1"}, {gpu_device("n1", 0), gpu_device("n1", 1)}),
            slice_object({"s2", "n2"}, {gpu_device("n2", 0)})});
  struct Case {
    Json selector;
    std::vector<std::string> tainted;
  };
  const std::vector<Case> cases = {
      {Json::object(), {"GPU-n1-0", "GPU-n1-1", "GPU-n2-0"}},
      {nullptr, {"GPU-n1-0", "GPU-n1-1", "GPU-n2-0"}},
      {{{"driver", "gpu.nvidia.com"}}, {"GPU-n1-0", "GPU-n1-1", "GPU-n2-0"}},
      {{{"driver", "other.example.org"}}, {}},
      {{{"pool", "n1"}}, {"GPU-n1-0", "GPU-n1-1"}},
      {{{"device", "gpu-0"}}, {"GPU-n1-0", "GPU-n2-0"}},
      {{{"pool", "n1"}, {"device", "gpu-1"}}, {"GPU-n1-1"}},
      {{{"pool", "n3"}}, {}},
      // Kubernetes 1.33 and 1.34.
      {{{"pool", "n1"}, {"deviceClassName", "other"}}, {}},
      {{{"pool", "n1"}, {"selectors", Json::array({{{"cel", {{"expression", "false"}}}}})}}, {}}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.selector.dump());
    view_.put(Kind::kTaintRule, taint_rule_object("r", each.selector));
    take();
    std::vector<std::string> tainted;
    for (const auto& [uuid, text] : gpus_) {
      if (!text.empty()) tainted.push_back(uuid);
      EXPECT_TRUE(text.empty() || text == taint) << text;
    }
    EXPECT_EQ(tainted, each.tainted);
  }
}

TEST_F(ClusterViewTest, ARuleCountsWhileItIsThereAndKeepsPodsAway) {
  list_one_node();
  const Json selector = {{"pool", "n1"}, {"device", "gpu-0"}};
  view_.put(Kind::kTaintRule, taint_rule_object("r", selector, "NoExecute"));
  view_.put(Kind::kClaim, claim_object("c", "n1", "gpu-0"));
  take();
  EXPECT_EQ(gpus_["GPU-n1-0"],
            "taint example.org/quarantine=yes:NoExecute of rule r; claim ml/c of pod user");
  view_.remove(Kind::kClaim, claim_object("c", "n1", "gpu-0"));
  view_.put(Kind::kTaintRule, taint_rule_object("r", selector, "None"));
  take();
  EXPECT_EQ(gpus_["GPU-n1-0"], "");
  view_.put(Kind::kTaintRule, taint_rule_object("r", selector));
  view_.put(Kind::kTaintRule, taint_rule_object("s", selector));
  take();
  EXPECT_EQ(gpus_["GPU-n1-0"],
            "taint example.org/quarantine=yes:NoSchedule of rule r; "
            "taint example.org/quarantine=yes:NoSchedule of rule s");
  view_.remove(Kind::kTaintRule, taint_rule_object("r", selector));
  view_.begin_list(Kind::kTaintRule);
  view_.end_list(Kind::kTaintRule);
  take();
  EXPECT_EQ(gpus_["GPU-n1-0"], "");
}

TEST_F(ClusterViewTest, ARuleThatCameBeforeItsDevicesCountsWhenTheyCome) {
  list_all({node_object("n1")});
  view_.put(Kind::kTaintRule, taint_rule_object("r", {{"pool", "n1"}}));
  take();
  view_.put(Kind::kSlice, slice_object({"s1", "n1"}, {gpu_device("n1", 0)}));
  take();
  EXPECT_THAT(gpus_["GPU-n1-0"], ::testing::EndsWith("of rule r"));
}

TEST_F(ClusterViewTest, PodsOfOthersUseCpusAndMemory) {
  list_one_node();
  view_.put(Kind::kOtherPod, pod_object("a", "n1", {{"cpu", "1500m"}, {"memory", "1Gi"}}));
  view_.put(Kind::kOtherPod, pod_object("b", "n1", {{"cpu", "600m"}, {"memory", "1Gi"}}));
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 3U);
  EXPECT_EQ(infos_["n1"].others_memory, base::kGiB * 2);
  Json ended = pod_object("a", "n1", {{"cpu", "1500m"}});
  ended["status"]["phase"] = "Succeeded";
  view_.put(Kind::kOtherPod, ended);
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 1U);
  view_.put(Kind::kLabelledPod, labelled(pod_object("gp-lab-1-1-0", "n1", {{"cpu", "8"}})));
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 1U);
}

TEST_F(ClusterViewTest, WhatAUserGivesThePlatformsLabelsIsUseByOthers) {
  list_one_node();
  const Json pod = pod_object("gp-lab-1-1-0", "n1", {{"cpu", "8"}});
  const Json claim = claim_object("gp-lab-1-1-0", "n1", "gpu-1");
  view_.put(Kind::kLabelledPod, labelled(pod, "elsewhere"));
  view_.put(Kind::kClaim, labelled(claim, "elsewhere"));
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 8U);
  EXPECT_EQ(gpus_["GPU-n1-1"], "claim elsewhere/gp-lab-1-1-0 of pod user");
}

TEST_F(ClusterViewTest, APodWhoseLabelChangesIsCountedOnceWhicheverListTellsFirst) {
  list_one_node();
  Json pod = pod_object("mine", "n1", {{"cpu", "8"}});
  view_.put(Kind::kOtherPod, pod);
  pod["metadata"]["labels"] = {{"gpu-platform/cluster", "lab"}};
  view_.put(Kind::kLabelledPod, pod);
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 8U);
  view_.remove(Kind::kOtherPod, pod);
  view_.begin_list(Kind::kOtherPod);
  view_.end_list(Kind::kOtherPod);
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 8U);
  view_.remove(Kind::kLabelledPod, pod);
  take();
  EXPECT_EQ(infos_["n1"].others_cpus, 0U);
}

TEST_F(ClusterViewTest, WhatIsNotInANewListIsGone) {
  list_one_node();
  view_.put(Kind::kOtherPod, pod_object("a", "n1", {{"cpu", "2"}}));
  view_.put(Kind::kClaim, claim_object("notebook", "n1", "gpu-1"));
  take();
  for (const Kind kind : kSeenKinds) {
    view_.begin_list(kind);
    view_.end_list(kind);
  }
  take();
  EXPECT_EQ(lost_["n1"], "the cluster does not have this node any more");
  EXPECT_EQ(view_.nodes(), 0U);
  EXPECT_EQ(view_.boot_id_of("n1"), "");
}

TEST_F(ClusterViewTest, GpusAreCountedWhereNothingElseIsPossible) {
  use(view_settings(DeviceMode::kCounts));
  list_all({node_object("n1")});
  ASSERT_EQ(infos_["n1"].gpus.size(), 8U);
  EXPECT_EQ(infos_["n1"].gpus[3].uuid, "n1/3");
  EXPECT_EQ(infos_["n1"].gpus[3].type, "H100-80GB");
  EXPECT_EQ(infos_["n1"].gpus[3].memory, base::kMiB * 81559);
  EXPECT_FALSE(view_.device_of("n1", "n1/3").has_value());
  view_.put(Kind::kOtherPod, pod_object("a", "n1", {{"nvidia.com/gpu", "2"}}));
  take();
  EXPECT_EQ(gpus_["n1/5"], "");
  EXPECT_EQ(gpus_["n1/6"], "2 GPUs counted by pods of others");
  EXPECT_EQ(gpus_["n1/7"], "2 GPUs counted by pods of others");
  Json unhealthy = node_object("n1");
  unhealthy["status"]["allocatable"]["nvidia.com/gpu"] = "7";
  view_.put(Kind::kNode, unhealthy);
  take();
  EXPECT_EQ(gpus_["n1/7"], "1 GPUs not given by the device plugin");
  EXPECT_EQ(gpus_["n1/5"], "2 GPUs counted by pods of others");
}

TEST_F(ClusterViewTest, GpusThatAreCountedNeedNoSlicesAndNoClaims) {
  use(view_settings(DeviceMode::kCounts));
  view_.begin_list(Kind::kNode);
  view_.put(Kind::kNode, node_object("n1"));
  view_.end_list(Kind::kNode);
  take();
  EXPECT_EQ(count_, 0U) << "the pods of others are not known yet";
  for (const Kind kind : {Kind::kOtherPod, Kind::kLabelledPod}) {
    view_.begin_list(kind);
    view_.end_list(kind);
  }
  take();
  EXPECT_EQ(infos_["n1"].gpus.size(), 8U);
}

TEST_F(ClusterViewTest, ASharedGpuDoesNotPassForAWholeOne) {
  use(view_settings(DeviceMode::kCounts));
  Json node = node_object("n1");
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-SHARED";
  list_all({node});
  EXPECT_EQ(infos_["n1"].gpus[0].type, "NVIDIA-H100-80GB-HBM3-SHARED");
}

TEST_F(ClusterViewTest, TheTaintOfASpotNodeKeepsNoJobFromItThatAcceptsItsClass) {
  Json spot = node_object("n1");
  spot["metadata"]["labels"]["kubernetes.azure.com/scalesetpriority"] = "spot";
  spot["spec"]["taints"] = Json::parse(
      R"([{"key":"kubernetes.azure.com/scalesetpriority","value":"spot","effect":"NoSchedule"}])");
  list_all({spot});
  expect_taint(std::nullopt, "");
  EXPECT_EQ(infos_["n1"].capacity, model::CapacityClass::kSpot);
}

TEST_F(ClusterViewTest, ATaintThatOurPodsDoNotTolerateDrainsTheNode) {
  Json node = node_object("n1");
  node["spec"]["taints"] = Json::parse(
      R"([{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"},
          {"key":"prefer","effect":"PreferNoSchedule"}])");
  list_all({node});
  expect_taint(std::nullopt, "");
  node["spec"]["taints"][1]["effect"] = "NoSchedule";
  view_.put(Kind::kNode, node);
  expect_taint(model::TaintEffect::kNoNewWork, "taint prefer:NoSchedule");
  node["spec"]["taints"][1] =
      Json::parse(R"({"key":"karpenter.sh/unregistered","value":"x","effect":"NoExecute"})");
  view_.put(Kind::kNode, node);
  expect_taint(model::TaintEffect::kOut, "taint karpenter.sh/unregistered=x:NoExecute");
}

TEST_F(ClusterViewTest, ANodeThatIsNotReadyIsOffline) {
  list_all({node_object(
      "n1",
      {.ready = "False", .reason = "KubeletNotReady", .message = "container runtime is down"})});
  expect_taint(model::TaintEffect::kOut, "KubeletNotReady: container runtime is down");
  Json silent = node_object("n1");
  silent["status"].erase("conditions");
  view_.put(Kind::kNode, silent);
  expect_taint(model::TaintEffect::kOut, "the kubelet has not reported that it is ready");
}

TEST_F(ClusterViewTest, HealthToolsTakeANodeOffline) {
  Json node = node_object("n1");
  node["status"]["conditions"].push_back(Json::parse(
      R"({"type":"SysLogsXIDError","status":"True","reason":"XID79","message":"fell off the bus"})"));
  list_all({node});
  expect_taint(model::TaintEffect::kOut, "SysLogsXIDError: XID79: fell off the bus");
  node["status"]["conditions"][2]["status"] = "False";
  view_.put(Kind::kNode, node);
  expect_taint(std::nullopt, "");
  node["metadata"]["labels"]["dgxc.nvidia.com/nvsentinel-state"] = "quarantined";
  view_.put(Kind::kNode, node);
  expect_taint(model::TaintEffect::kOut, "nvsentinel-state quarantined");
}

NodeShape unreachable(std::string_view since) {
  return {"Unknown", std::string(since), "NodeStatusUnknown", "Kubelet stopped posting."};
}

TEST_F(ClusterViewTest, AnUnreachableNodeIsOfflineAndThenLost) {
  list_one_node();
  view_.put(Kind::kNode, node_object("n1", unreachable("2026-11-22T09:00:00Z")));
  take("09:00:40");
  EXPECT_EQ(taints_["n1"].effect, model::TaintEffect::kOut);
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(view_.next_due(), at_time("09:05:00"));
  take("09:04:59");
  EXPECT_EQ(count_, 0U);
  take("09:05:00");
  EXPECT_EQ(lost_["n1"], "NodeStatusUnknown: Kubelet stopped posting.");
  EXPECT_EQ(count_, 1U);
  EXPECT_FALSE(view_.next_due().is_set());
}

TEST_F(ClusterViewTest, OfALostNodeNothingIsToldUntilItIsBackAndThenEverything) {
  list_one_node();
  view_.put(Kind::kNode, node_object("n1", unreachable("2026-11-22T08:00:00Z")));
  take();
  EXPECT_EQ(lost_.count("n1"), 1U);
  view_.put(Kind::kOtherPod, pod_object("a", "n1", {{"cpu", "2"}}));
  take();
  EXPECT_EQ(count_, 0U);
  view_.put(Kind::kNode, node_object("n1"));
  take();
  EXPECT_EQ(count_, 4U);  // the node, its taint and two GPUs
  EXPECT_TRUE(lost_.empty());
}

TEST_F(ClusterViewTest, ATimeThatIsNotToldOrLiesAheadCountsFromWhenItWasSeen) {
  list_one_node();
  view_.put(Kind::kNode, node_object("n1", unreachable("2026-11-22T23:00:00Z")));
  take("10:00:00");
  EXPECT_EQ(view_.next_due(), at_time("10:05:00"));
  view_.put(Kind::kNode, node_object("n1", unreachable("")));
  take("10:01:00");
  EXPECT_EQ(view_.next_due(), at_time("10:05:00"));
}

TEST_F(ClusterViewTest, ANodeThatTheCoreKnowsAndTheClusterDoesNotIsTold) {
  view_.expect("n1");
  view_.expect("n7");
  list_one_node();
  EXPECT_EQ(lost_.count("n1"), 0U);
  EXPECT_EQ(lost_["n7"], "the cluster does not have this node");
}

TEST_F(ClusterViewTest, AGpuThatIsUnpluggedAndComesBackIsToldAgain) {
  list_one_node();
  gpus_.clear();
  view_.put(Kind::kSlice, slice_object({"s1", "n1", 2}, {gpu_device("n1", 0)}));
  take();
  view_.put(Kind::kSlice,
            slice_object({"s1", "n1", 3}, {gpu_device("n1", 0), gpu_device("n1", 1)}));
  take();
  EXPECT_EQ(gpus_.count("GPU-n1-1"), 1U);
  EXPECT_EQ(gpus_.count("GPU-n1-0"), 0U);
}

}  // namespace
}  // namespace gpu_platform::execution
