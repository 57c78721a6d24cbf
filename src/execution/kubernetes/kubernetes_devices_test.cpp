#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"

// What a cluster says of devices beside its ResourceSlices, through the engine, on an API server of
// the tests.

namespace gpu_platform::execution::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kFifthGpu = "GPU-0000-0005";  // gpu-5 of node-0
constexpr const char* kClasses = "/apis/resource.k8s.io/v1/deviceclasses";
constexpr const char* kJobClaims = "/apis/resource.k8s.io/v1/namespaces/jobs/resourceclaims";

class NoVariables : public EnvironmentSource {
  base::Result<std::string> environment(std::string_view) const override { return std::string(); }
};

class KubernetesDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(harness_.open(), "");
    harness_.close();
    harness_.options().warn = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(line);
    };
  }

  std::string rules_path(const std::string& version) const {
    return fmt::format("/apis/resource.k8s.io/{}/devicetaintrules", version);
  }
  std::string taint_of(const char* uuid) { return harness_.all_told().unavailable(uuid); }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  void put_class(const std::string& parameter) {
    const Json opaque = {{"driver", "gpu.nvidia.com"}, {"parameters", {{"kind", parameter}}}};
    harness_.server().call("DELETE", std::string(kClasses) + "/gpu.nvidia.com");
    const auto made =
        harness_.server().call("POST", kClasses,
                               {{"metadata", {{"name", "gpu.nvidia.com"}}},
                                {"spec", {{"config", Json::array({{{"opaque", opaque}}})}}}});
    ASSERT_EQ(made.status, 201) << made.body;
  }
  // The configuration that the allocation of a job's claim gets.
  Json config_of(std::uint64_t job) {
    const StartOrder start = harness_.order(job, {Act::Kind::kWaits, 0});
    harness_.engine().start(start);
    EXPECT_TRUE(harness_.wait_until([&] { return !harness_.told(start.attempt).started.empty(); }));
    const Json claim = harness_.server().object(fmt::format("{}/gp-test-{}-1-0", kJobClaims, job));
    EXPECT_EQ(list_at(claim, {"status", "allocation", "devices", "results"}).size(), 1U);
    return at(claim, {"status", "allocation", "devices", "config"});
  }
  // A word of a health tool on the first node.
  void set_condition(const std::string& type, const std::string& status) {
    const Json condition = {{"type", type}, {"status", status}, {"reason", "Checked"}};
    const auto set =
        harness_.server().call("PATCH", "/api/v1/nodes/node-0/status",
                               {{"status", {{"conditions", Json::array({condition})}}}},
                               "application/strategic-merge-patch+json");
    ASSERT_EQ(set.status, 200) << set.body;
  }
  bool has_evidence(std::size_t count) {
    return harness_.wait_until([&] { return harness_.all_told().evidence().size() >= count; });
  }
  static Json of_class(const std::string& kind) {
    return config("FromClass", Json::array({"gpu-0"}), kind);
  }
  static Json config(const std::string& source, const Json& requests, const std::string& kind) {
    const Json opaque = {{"driver", "gpu.nvidia.com"}, {"parameters", {{"kind", kind}}}};
    return {{"source", source}, {"requests", requests}, {"opaque", opaque}};
  }

  KubernetesHarness harness_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(KubernetesDevicesTest, ARuleTaintsItsGpuWhileItIsThereInAllVersionsThatKubernetesHasHad) {
  for (const std::string version : {"v1", "v1beta2", "v1alpha3"}) {
    SCOPED_TRACE(version);
    harness_.server().set_taint_rules(version);
    const std::string path = rules_path(version);
    const Json rule = taint_rule_object("r", {{"pool", "node-0"}, {"device", "gpu-5"}});
    ASSERT_EQ(harness_.server().call("POST", path, rule).status, 201);
    harness_.reopen();
    EXPECT_EQ(taint_of(kFifthGpu), "taint example.org/quarantine=yes:NoSchedule of rule r")
        << "it is known before anything is told";
    EXPECT_EQ(taint_of("GPU-0000-0006"), "");
    harness_.server().call("DELETE", path + "/r");
    EXPECT_TRUE(harness_.wait_until([&] { return taint_of(kFifthGpu).empty(); }));
    const Json all = taint_rule_object("all", Json::object(), "NoExecute");
    ASSERT_EQ(harness_.server().call("POST", path, all).status, 201);
    EXPECT_TRUE(harness_.wait_until([&] { return !taint_of("GPU-0002-0031").empty(); }));
    harness_.close();
    harness_.server().call("DELETE", path + "/all");
  }
  EXPECT_THAT(warnings(), ::testing::IsEmpty());
}

TEST_F(KubernetesDevicesTest, AServerWithoutRulesIsNotAskedForThem) {
  harness_.server().forget_requests();
  harness_.reopen();
  EXPECT_EQ(harness_.all_told().nodes().size(), 3U);
  for (const auto& request : harness_.server().requests()) {
    EXPECT_EQ(request.path.find("devicetaintrules"), std::string::npos) << request.path;
  }
  EXPECT_THAT(warnings(), ::testing::IsEmpty());
}

TEST_F(KubernetesDevicesTest, AnAccountThatMayNotListRulesWorksWithoutThemAndIsToldOnce) {
  harness_.server().set_taint_rules("v1beta2");
  const std::string path = rules_path("v1beta2");
  ASSERT_EQ(harness_.server().call("POST", path, taint_rule_object("r", Json::object())).status,
            201);
  harness_.server().forbid("GET", path);
  harness_.reopen();
  EXPECT_EQ(harness_.all_told().nodes().size(), 3U);
  EXPECT_EQ(taint_of(kFifthGpu), "");
  EXPECT_THAT(warnings(),
              ::testing::ElementsAre(::testing::HasSubstr("may not list devicetaintr")));
  EXPECT_EQ(harness_.server().count("GET", path), 1U);
}

TEST_F(KubernetesDevicesTest, WithoutSingleDevicesThereIsNothingToTaint) {
  harness_.server().set_taint_rules("v1");
  harness_.options().settings.devices = DeviceMode::kCounts;
  harness_.server().forget_requests();
  harness_.reopen();
  EXPECT_EQ(harness_.server().count("GET", "/apis/resource.k8s.io/*"), 0U);
}

TEST_F(KubernetesDevicesTest, AnAllocationOfOursHasTheConfigurationOfItsClassAsItIsNow) {
  harness_.options().settings.devices = DeviceMode::kOwned;
  put_class("first");
  harness_.reopen();
  EXPECT_EQ(config_of(1), Json::array({of_class("first")}));
  put_class("second");
  // Each watch is told in an order of its own: the first jobs may be earlier than the change.
  const Json changed = Json::array({of_class("second")});
  Json last;
  for (std::uint64_t job = 2; job < 30 && last != changed; ++job) last = config_of(job);
  EXPECT_EQ(last, changed);
}

TEST_F(KubernetesDevicesTest, WithoutItsClassAnAllocationHasNoConfiguration) {
  harness_.options().settings.devices = DeviceMode::kOwned;
  harness_.reopen();
  EXPECT_TRUE(config_of(1).is_null());
}

TEST_F(KubernetesDevicesTest, AnAllocationOfOursHasTheConfigurationOfItsClaim) {
  harness_.options().settings.devices = DeviceMode::kOwned;
  put_class("of class");
  // As a webhook would have changed it; it was made before the daemon ended.
  const Json labels = {{"gpu-platform/cluster", "test"},
                       {"gpu-platform/job", "1"},
                       {"gpu-platform/attempt", "1"},
                       {"gpu-platform/rank", "0"}};
  Json own = config("FromClaim", Json::array(), "of claim");
  const Json request = {{"name", "gpu-0"}, {"exactly", {{"deviceClassName", "gpu.nvidia.com"}}}};
  const Json claim = {{"metadata", {{"name", "gp-test-1-1-0"}, {"labels", labels}}},
                      {"spec",
                       {{"devices",
                         {{"requests", Json::array({request})},
                          {"config", Json::array({{{"opaque", own["opaque"]}}})}}}}}};
  ASSERT_EQ(harness_.server().call("POST", kJobClaims, claim).status, 201);
  harness_.reopen();
  EXPECT_EQ(config_of(1), Json::array({of_class("of class"), own}));
}

TEST_F(KubernetesDevicesTest, ToAllocateThePlatformMustSeeTheClasses) {
  harness_.server().lack("watch", "deviceclasses");
  harness_.reopen();
  harness_.close();
  harness_.options().settings.devices = DeviceMode::kOwned;
  const NoVariables none;
  ToldByAttempt told;
  const auto refused = KubernetesEngine::open(harness_.options(), none, told);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("watch deviceclasses.resource.k8s.io"));
}

TEST_F(KubernetesDevicesTest, ADeviceThatIsUnhealthyToAPodIsEvidenceOfItsGpuUntilItIsHealthy) {
  harness_.reopen();
  const StartOrder start = harness_.order(1, {Act::Kind::kWaits, 0});
  harness_.engine().start(start);
  ASSERT_TRUE(harness_.wait_until([&] { return !harness_.told(start.attempt).started.empty(); }));
  const std::string pod = "/api/v1/namespaces/jobs/pods/gp-test-1-1-0";
  const Json claim = harness_.server().object(std::string(kJobClaims) + "/gp-test-1-1-0");
  const Json results = list_at(claim, {"status", "allocation", "devices", "results"});
  ASSERT_EQ(results.size(), 1U);
  const std::string device =
      fmt::format("{}/{}/{}", text_at(results[0], {"driver"}), text_at(results[0], {"pool"}),
                  text_at(results[0], {"device"}));
  const auto tell = [&](const std::string& health) {
    Json statuses = list_at(harness_.server().object(pod), {"status", "containerStatuses"});
    ASSERT_EQ(statuses.size(), 1U);
    const Json resource = {{"resourceID", device}, {"health", health}};
    const Json told = {{"name", "claim:gpus"}, {"resources", Json::array({resource})}};
    statuses[0]["allocatedResourcesStatus"] = Json::array({told});
    const auto set = harness_.server().call("PATCH", pod + "/status",
                                            {{"status", {{"containerStatuses", statuses}}}});
    ASSERT_EQ(set.status, 200) << set.body;
  };
  tell("Unhealthy");
  ASSERT_TRUE(has_evidence(1));
  const EvidenceObserved begun = harness_.all_told().evidence().front();
  EXPECT_EQ(begun.node_name, start.nodes.front().node_name);
  EXPECT_EQ(begun.gpu_uuid, start.nodes.front().gpus.front().info.uuid);
  EXPECT_FALSE(begun.evidence.is_over);
  tell("Healthy");
  ASSERT_TRUE(has_evidence(2));
  EXPECT_TRUE(harness_.all_told().evidence().back().evidence.is_over);
}

TEST_F(KubernetesDevicesTest, AConditionThatEndsWhileNothingLooksIsOverAtTheNextStart) {
  harness_.reopen();
  set_condition("GPUMissing", "True");
  set_condition("IBLinkFlapping", "True");
  ASSERT_TRUE(has_evidence(2));
  const std::vector<EvidenceObserved> lasting = harness_.all_told().evidence();
  harness_.close();
  set_condition("GPUMissing", "False");
  harness_.reopen();
  ASSERT_TRUE(has_evidence(1));
  EXPECT_EQ(harness_.all_told().evidence().front().evidence.text, "IBLinkFlapping: Checked");
  harness_.engine().adopt_conditions(lasting);
  ASSERT_TRUE(has_evidence(2));
  const EvidenceObserved over = harness_.all_told().evidence().back();
  EXPECT_EQ(over.evidence.text, "GPUMissing: Checked");
  EXPECT_TRUE(over.evidence.is_over);
}

}  // namespace
}  // namespace gpu_platform::execution::testing
