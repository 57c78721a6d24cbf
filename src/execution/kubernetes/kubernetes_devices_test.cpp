#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster_fixture.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"

// What a cluster says of devices beside its ResourceSlices, through the engine, on an API server of
// the tests.

namespace gpu_platform::execution::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kFifthGpu = "GPU-0000-0005";  // gpu-5 of node-0

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

}  // namespace
}  // namespace gpu_platform::execution::testing
