#include "execution/kubernetes/cluster/cluster_view_fixture.h"

#include <gmock/gmock.h>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

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

TEST_F(ClusterViewTest, AStaticMigInstanceIsAGpuOfItsProfile) {
  list_all({node_object("n1")},
           {slice_object({"s1", "n1"}, {mig_device("gpu-0-mig-1g10gb-19-0", "MIG-a")})});
  ASSERT_EQ(infos_["n1"].gpus.size(), 1U);
  EXPECT_EQ(infos_["n1"].gpus[0].uuid, "MIG-a");
  EXPECT_EQ(infos_["n1"].gpus[0].type, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  EXPECT_EQ(infos_["n1"].gpus[0].memory, base::kMiB * 9728);
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

}  // namespace
}  // namespace gpu_platform::execution
