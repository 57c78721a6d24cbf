#include "execution/kubernetes/cluster/cluster_view_fixture.h"

#include <gmock/gmock.h>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

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

}  // namespace
}  // namespace gpu_platform::execution
