#include "execution/kubernetes/cluster/cluster_view_fixture.h"

#include <functional>

#include <gmock/gmock.h>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

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

TEST_F(ClusterViewTest, AConditionThatSpeaksOfGpusIsEvidenceFromItsBeginToItsEnd) {
  Json node = node_object("n1");
  const std::size_t place = node["status"]["conditions"].size();
  node["status"]["conditions"].push_back(Json::parse(
      R"({"type":"GpuNvlinkWatch","status":"True","reason":"LinkDown","message":"link 3"})"));
  node["status"]["conditions"].push_back(
      Json::parse(R"({"type":"KernelDeadlock","status":"True","reason":"Hung"})"));
  list_all({node});
  ASSERT_EQ(evidence_.size(), 1U) << "a deadlock says nothing of GPUs";
  EXPECT_EQ(evidence_[0].node_name, "n1");
  EXPECT_EQ(evidence_[0].gpu_uuid, "");
  EXPECT_EQ(evidence_[0].evidence.kind, model::EvidenceKind::kNodeCondition);
  EXPECT_EQ(evidence_[0].evidence.source, model::EvidenceSource::kCluster);
  EXPECT_EQ(evidence_[0].evidence.text, "GpuNvlinkWatch: LinkDown");
  EXPECT_FALSE(evidence_[0].evidence.is_over);
  node["status"]["conditions"][place]["message"] = "link 4";
  view_.put(Kind::kNode, node);
  take();
  EXPECT_EQ(evidence_.size(), 1U) << "the same one";
  node["status"]["conditions"][place]["status"] = "False";
  view_.put(Kind::kNode, node);
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_TRUE(evidence_[1].evidence.is_over);
  EXPECT_EQ(evidence_[1].evidence.text, "GpuNvlinkWatch: LinkDown");
}

Json with_condition(const std::string& type, const std::string& status, const std::string& reason) {
  Json node = node_object("n1");
  node["status"]["conditions"].push_back(
      {{"type", type}, {"status", status}, {"reason", reason}, {"message", "words"}});
  return node;
}

TEST_F(ClusterViewTest, AConditionThatIsBadWhenItIsFalseBeginsThen) {
  list_all({with_condition("AcceleratedHardwareReady", "False", "NvidiaDoubleBitError")});
  ASSERT_EQ(evidence_.size(), 1U);
  EXPECT_EQ(evidence_[0].evidence.text, "AcceleratedHardwareReady: NvidiaDoubleBitError");
  EXPECT_FALSE(evidence_[0].evidence.at.is_set()) << "it is the core's";
  view_.put(Kind::kNode, with_condition("AcceleratedHardwareReady", "True", "Healthy"));
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_TRUE(evidence_[1].evidence.is_over);
}

TEST_F(ClusterViewTest, WhichConditionsTellOfTrouble) {
  for (const char* type : {"GPUMissing", "IBLinkFlapping", "SomethingNew", "FrequentKubeletRestart",
                           "KubeletNotReady", "NVLinkStatusInactive"}) {
    EXPECT_TRUE(tells_of_trouble(type, "True")) << type;
    EXPECT_FALSE(tells_of_trouble(type, "False")) << type;
    EXPECT_FALSE(tells_of_trouble(type, "Unknown")) << type;
  }
  for (const char* type : {"AcceleratedHardwareReady", "GPUHealthy", "SomethingAvailable"}) {
    EXPECT_TRUE(tells_of_trouble(type, "False")) << type;
    EXPECT_FALSE(tells_of_trouble(type, "True")) << type;
    EXPECT_FALSE(tells_of_trouble(type, "Unknown")) << type;
  }
  // The node's own service has these.
  for (const char* type : {"Ready", "MemoryPressure", "NetworkUnavailable", "KernelDeadlock"}) {
    EXPECT_FALSE(tells_of_trouble(type, "True")) << type;
    EXPECT_FALSE(tells_of_trouble(type, "False")) << type;
  }
}

TEST_F(ClusterViewTest, AConditionThatIsGoodWhenItIsTrueTakesNoNodeOut) {
  list_all({with_condition("GpuReady", "True", "AllThere")});
  expect_taint(std::nullopt, "");
  EXPECT_TRUE(evidence_.empty());
}

TEST_F(ClusterViewTest, AToolThatDoesNotReachDcgmTakesNoNodeOut) {
  list_all({with_condition("GpuDcgmConnectivityFailure", "True", "DcgmDown")});
  expect_taint(std::nullopt, "");
  EXPECT_EQ(evidence_.size(), 1U) << "it is seen";
}

// As a daemon that starts again is told: by its core, before or after the first lists.
class AdoptedFaults : public ClusterViewTest, public ::testing::WithParamInterface<bool> {
 protected:
  void adopt(const std::string& gpu, const std::string& text) {
    EvidenceObserved lasting{"n1", gpu, {}};
    lasting.evidence.text = text;
    view_.adopt_fault(lasting);
  }
  // Lists the node with this condition and two GPUs.
  void list(const Json& node, const std::function<void()>& adopt_all) {
    const bool is_before = GetParam();
    if (is_before) adopt_all();
    list_all({node}, {slice_object({"s1", "n1"}, {gpu_device("n1", 0), gpu_device("n1", 1)})});
    if (!is_before) adopt_all();
    take();
  }
  std::vector<std::string> over() const {
    std::vector<std::string> texts;
    for (const EvidenceObserved& each : evidence_) {
      if (each.evidence.is_over) texts.push_back(each.gpu_uuid + each.evidence.text);
    }
    return texts;
  }
};
INSTANTIATE_TEST_SUITE_P(InBothOrders, AdoptedFaults, ::testing::Bool());

TEST_P(AdoptedFaults, WhatEndedMeanwhileIsOver) {
  list(node_object("n1"), [&] {
    adopt("", "GPUMissing: Seven");
    adopt("GPU-n1-0", "taint gpu.nvidia.com/xid=79:NoExecute");
  });
  EXPECT_EQ(over(), (std::vector<std::string>{"GPUMissing: Seven",
                                              "GPU-n1-0taint gpu.nvidia.com/xid=79:NoExecute"}));
  EXPECT_EQ(evidence_.size(), 2U);
  take();
  EXPECT_EQ(evidence_.size(), 2U) << "once";
}

TEST_P(AdoptedFaults, WhatLastsIsToldAgainAndIsNotOver) {
  list(with_condition("GPUMissing", "True", "Six"), [&] { adopt("", "GPUMissing: Seven"); });
  EXPECT_EQ(over(), std::vector<std::string>{}) << "other words for the same";
  ASSERT_EQ(evidence_.size(), 1U);
  EXPECT_EQ(evidence_[0].evidence.text, "GPUMissing: Six");
}

TEST_P(AdoptedFaults, OfANodeThatIsNotThereAreKeptUntilItIsBack) {
  view_.expect("n1");
  const auto adopt_all = [&] { adopt("", "GPUMissing: Seven"); };
  if (GetParam()) adopt_all();
  list_all({});
  if (!GetParam()) adopt_all();
  take();
  EXPECT_TRUE(evidence_.empty());
  view_.put(Kind::kNode, node_object("n1"));
  take();
  EXPECT_EQ(over(), std::vector<std::string>{"GPUMissing: Seven"});
}

TEST_F(ClusterViewTest, AnotherMachineOfTheNameBeginsItsFaultsAnew) {
  list_all({with_condition("GPUMissing", "True", "Seven")});
  ASSERT_EQ(evidence_.size(), 1U);
  Json other = with_condition("GPUMissing", "True", "Seven");
  other["metadata"]["uid"] = "uid-other";
  view_.put(Kind::kNode, other);
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_FALSE(evidence_[1].evidence.is_over);
}

// The platform's pod on n1, with what its kubelet says of a device.
Json pod_with_device(const std::string& health,
                     const std::string& resource = "gpu.nvidia.com/n1/gpu-1") {
  Json pod = labelled(pod_object("gp-lab-1-1-0", "n1", {{"cpu", "1"}}));
  pod["status"]["phase"] = "Running";
  pod["status"]["containerStatuses"] = Json::array(
      {{{"name", "main"},
        {"allocatedResourcesStatus",
         Json::array(
             {{{"name", "claim:gpus"},
               {"resources", Json::array({{{"resourceID", resource}, {"health", health}}})}}})}}});
  return pod;
}

TEST_F(ClusterViewTest, ADeviceThatIsUnhealthyToAPodOfOursIsAFaultUntilAPodIsToldThatItIsHealthy) {
  list_one_node();
  view_.put(Kind::kLabelledPod, pod_with_device("Unhealthy"));
  take();
  ASSERT_EQ(evidence_.size(), 1U);
  EXPECT_EQ(evidence_[0].node_name, "n1");
  EXPECT_EQ(evidence_[0].gpu_uuid, "GPU-n1-1");
  EXPECT_EQ(evidence_[0].evidence.source, model::EvidenceSource::kCluster);
  view_.put(Kind::kLabelledPod, pod_with_device("Unknown"));
  take();
  view_.remove(Kind::kLabelledPod, pod_with_device("Unknown"));
  take();
  EXPECT_EQ(evidence_.size(), 1U) << "neither Unknown nor the end of the pod says that it is over";
  view_.put(Kind::kLabelledPod, pod_with_device("Healthy"));
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_EQ(evidence_[1].gpu_uuid, "GPU-n1-1");
  EXPECT_TRUE(evidence_[1].evidence.is_over);
}

TEST_F(ClusterViewTest, ADeviceThatItsDriverWithdrawsIsNoFaultWhenItIsBack) {
  list_one_node();
  view_.put(Kind::kLabelledPod, pod_with_device("Unhealthy"));
  take();
  view_.remove(Kind::kLabelledPod, pod_with_device("Unhealthy"));
  view_.put(Kind::kSlice, slice_object({"s1", "n1", 2}, {gpu_device("n1", 0)}));
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_TRUE(evidence_[1].evidence.is_over);
}

TEST_F(ClusterViewTest, ADeviceThatWasUnhealthyBeforeAStartIsSoUntilAPodSaysOtherwise) {
  list_one_node();
  view_.put(Kind::kLabelledPod, pod_with_device("Unhealthy"));
  take();
  ASSERT_EQ(evidence_.size(), 1U);
  const EvidenceObserved lasting = evidence_[0];
  view_ = ClusterView(view_settings());
  evidence_.clear();
  view_.adopt_fault(lasting);
  list_one_node();
  ASSERT_EQ(evidence_.size(), 1U);
  EXPECT_EQ(evidence_[0], lasting) << "it is told again, and is not over";
  view_.put(Kind::kLabelledPod, pod_with_device("Healthy"));
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_TRUE(evidence_[1].evidence.is_over);
}

TEST_F(ClusterViewTest, PodsOfOthersSayNothingOfDevices) {
  list_one_node();
  Json pod = pod_with_device("Unhealthy");
  pod["metadata"]["namespace"] = "ml";
  view_.put(Kind::kLabelledPod, pod);
  pod["metadata"]["labels"] = Json::object();
  view_.put(Kind::kOtherPod, pod);
  take();
  EXPECT_TRUE(evidence_.empty());
}

TEST_F(ClusterViewTest, ATaintOfADeviceThatSpeaksOfAFaultIsEvidence) {
  Json sick = gpu_device("n1", 0);
  sick["taints"] =
      Json::parse(R"([{"key":"gpu.nvidia.com/xid","value":"79","effect":"NoExecute"}])");
  Json kept = gpu_device("n1", 1);
  kept["taints"] =
      Json::parse(R"([{"key":"example.org/maintenance","value":"yes","effect":"NoSchedule"}])");
  list_all({node_object("n1")}, {slice_object({"s1", "n1"}, {sick, kept})});
  ASSERT_EQ(evidence_.size(), 1U);
  EXPECT_EQ(evidence_[0].gpu_uuid, "GPU-n1-0");
  EXPECT_EQ(evidence_[0].evidence.text, "taint gpu.nvidia.com/xid=79:NoExecute");
  view_.put(Kind::kSlice,
            slice_object({"s1", "n1", 2}, {gpu_device("n1", 0), gpu_device("n1", 1)}));
  take();
  ASSERT_EQ(evidence_.size(), 2U);
  EXPECT_TRUE(evidence_[1].evidence.is_over);
}

TEST_F(ClusterViewTest, WhatSpeaksOfFaultsOfGpus) {
  for (const char* text : {"GpuMemWatch", "SysLogsXIDError", "NVLinkError", "NVSwitchFault",
                           "GPUUnhealthy", "taint gpu.nvidia.com/unhealthy:NoExecute"}) {
    EXPECT_TRUE(speaks_of_gpu_fault(text)) << text;
  }
  for (const char* text : {"DiskPressure", "MemoryPressure", "KubeletUnhealthy", "Ready",
                           "taint nvidia.com/gpu=present:NoSchedule"}) {
    EXPECT_FALSE(speaks_of_gpu_fault(text)) << text;
  }
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
