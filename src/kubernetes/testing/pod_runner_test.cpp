#include "kubernetes/testing/pod_runner.h"

#include <gtest/gtest.h>

#include "kubernetes/testing/device_allocator.h"
#include "kubernetes/testing/json_access.h"

namespace gpu_platform::kubernetes {

namespace {

using nlohmann::json;

class PodRunnerTest : public ::testing::Test {
 protected:
  static constexpr const char* kPods = "/api/v1/namespaces/default/pods";
  static constexpr const char* kResourceClaims =
      "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

  PodRunnerTest() { runner_.add_node("n1", {.gpus = {"GPU-0", "GPU-1"}}); }

  void make_pod(const std::string& name, const json& extra_spec = json::object()) {
    json object = {{"metadata", {{"name", name}}}};
    object["spec"] = extra_spec;
    object["spec"]["containers"] = json::array({{{"name", "main"}, {"image", "i"}}});
    const ApiAnswer answer = server_.call("POST", kPods, object);
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  static json using_devices(const std::string& name) {
    json spec;
    spec["resourceClaims"] = json::array({{{"name", "gpus"}, {"resourceClaimName", name}}});
    return spec;
  }
  // Pinned to devices, a request for each.
  void make_pinned(const std::string& name, const std::vector<std::string>& uuids) {
    json requests = json::array();
    for (const std::string& uuid : uuids) {
      json request = {{"name", "gpu-" + std::to_string(requests.size())}};
      request["exactly"]["selectors"][0]["cel"]["expression"] =
          "device.attributes[\"gpu.nvidia.com\"].uuid == \"" + uuid + "\"";
      requests.push_back(request);
    }
    json object = {{"metadata", {{"name", name}}}};
    object["spec"]["devices"]["requests"] = requests;
    ASSERT_EQ(server_.call("POST", kResourceClaims, object).status, 201);
  }
  json pod(const std::string& name) const {
    return server_.object(std::string(kPods) + "/" + name);
  }
  json pinned(const std::string& name) const {
    return server_.object(std::string(kResourceClaims) + "/" + name);
  }
  std::string phase(const std::string& name) const { return text_at(pod(name), "/status/phase"); }
  json terminated(const std::string& name) const {
    return value_at(pod(name), "/status/containerStatuses/0/state/terminated");
  }
  static std::string condition(const json& object, const std::string& type) {
    for (const json& entry : value_at(object, "/status/conditions")) {
      if (text_at(entry, "/type") == type) {
        return text_at(entry, "/status") + " " + text_at(entry, "/reason");
      }
    }
    return "none";
  }
  // A pod that runs.
  void run_pod(const std::string& name, const json& extra_spec = json::object()) {
    make_pod(name, extra_spec);
    runner_.bind_all();
    ASSERT_TRUE(runner_.start("default/" + name));
  }
  void remove_pod(const std::string& name) {
    ASSERT_TRUE(server_.call("DELETE", std::string(kPods) + "/" + name).is_ok());
  }

  FakeApiServer server_;
  PodRunner runner_{server_};
};

TEST(UuidsIn, ReadsEqualitiesAndLists) {
  using Uuids = std::set<std::string>;
  EXPECT_EQ(uuids_in("device.attributes[\"gpu.nvidia.com\"].uuid == \"A\""), Uuids{"A"});
  EXPECT_EQ(uuids_in("device.attributes['gpu.nvidia.com'].uuid in ['A', \"B\"]"),
            (Uuids{"A", "B"}));
  EXPECT_EQ(uuids_in("device.driver == \"gpu.nvidia.com\""), Uuids{});
}

TEST_F(PodRunnerTest, BindsPinnedPodsToExactlyTheirDevices) {
  make_pinned("c", {"GPU-1", "GPU-0"});
  make_pod("a", using_devices("c"));
  EXPECT_EQ(runner_.bind_all(), 1u);
  EXPECT_EQ(pod("a")["spec"]["nodeName"], "n1");
  const json object = pinned("c");
  const json& results = value_at(object, "/status/allocation/devices/results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], json({{"request", "gpu-0"},
                              {"driver", "gpu.nvidia.com"},
                              {"pool", "n1"},
                              {"device", "gpu-1"}}));
  EXPECT_EQ(DeviceAllocator::node_of(object["status"]["allocation"]), "n1");
  EXPECT_EQ(text_at(object, "/status/reservedFor/0/name"), "a");
  EXPECT_EQ(text_at(object, "/metadata/finalizers/0"), "resource.kubernetes.io/delete-protection");
}

TEST_F(PodRunnerTest, TakenAndUnknownDevicesCannotBeAllocatedUntilTheyAreFree) {
  make_pinned("c", {"GPU-0"});
  make_pinned("same", {"GPU-0"});
  make_pinned("unknown", {"GPU-9"});
  run_pod("a", using_devices("c"));
  make_pod("b", using_devices("same"));
  make_pod("d", using_devices("unknown"));
  EXPECT_EQ(runner_.bind_all(), 0u);
  for (const char* name : {"b", "d"}) {
    EXPECT_EQ(condition(pod(name), "PodScheduled"), "False Unschedulable");
    EXPECT_EQ(text_at(pod(name), "/status/conditions/0/message"),
              "0/1 nodes are available: 1 cannot allocate all claims.");
  }
  EXPECT_TRUE(runner_.end("default/a", {.exit_code = 0}));
  EXPECT_TRUE(value_at(pinned("c"), "/status/allocation").is_null());
  EXPECT_TRUE(value_at(pinned("c"), "/metadata/finalizers").is_null());
  EXPECT_EQ(runner_.bind_all(), 1u);
  EXPECT_EQ(condition(pod("b"), "PodScheduled"), "True ");
}

TEST_F(PodRunnerTest, WaitsForGatesAndResourceClaimsWithoutAWord) {
  make_pod("gated", {{"schedulingGates", json::array({{{"name", "g"}}})}});
  make_pod("early", using_devices("c"));
  EXPECT_EQ(runner_.bind_all(), 0u);
  EXPECT_EQ(condition(pod("gated"), "PodScheduled"), "False SchedulingGated");
  EXPECT_EQ(condition(pod("early"), "PodScheduled"), "none");
  make_pinned("c", {"GPU-0"});
  EXPECT_EQ(runner_.bind_all(), 1u);
}

TEST_F(PodRunnerTest, BindsWherePodsFitByNameTaintAndCount) {
  runner_.add_node("n2", {.counted_gpus = 2});
  const json wanted = {{"nodeSelector", {{"kubernetes.io/hostname", "n2"}}}};
  make_pod("a", wanted);
  EXPECT_EQ(runner_.bind_all(), 1u);
  EXPECT_EQ(pod("a")["spec"]["nodeName"], "n2");
  json counted = {{"metadata", {{"name", "b"}}}};
  counted["spec"]["containers"][0] = {{"name", "main"}, {"image", "i"}};
  counted["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "2";
  server_.call("POST", kPods, counted);
  EXPECT_EQ(runner_.bind_all(), 1u);
  EXPECT_EQ(pod("b")["spec"]["nodeName"], "n2");
  counted["metadata"]["name"] = "d";
  server_.call("POST", kPods, counted);
  EXPECT_EQ(runner_.bind_all(), 0u);
  EXPECT_EQ(text_at(pod("d"), "/status/conditions/0/message"),
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
  runner_.lose_node("n2");
  make_pod("e", wanted);
  EXPECT_EQ(runner_.bind_all(), 0u);
  runner_.recover_node("n2");
  EXPECT_EQ(runner_.bind_all(), 1u);
}

TEST_F(PodRunnerTest, StartsNoPodWithoutItsReservation) {
  make_pinned("c", {"GPU-0"});
  make_pod("a", using_devices("c"));
  json binding = {{"target", {{"name", "n1"}}}};
  ASSERT_TRUE(server_.call("POST", std::string(kPods) + "/a/binding", binding).is_ok());
  EXPECT_FALSE(runner_.start("default/a"));
  json status;
  status["status"]["allocation"]["devices"]["results"][0] = {{"device", "gpu-0"}};
  status["status"]["reservedFor"][0] = {
      {"resource", "pods"}, {"name", "a"}, {"uid", pod("a")["metadata"]["uid"]}};
  ASSERT_TRUE(server_.call("PATCH", std::string(kResourceClaims) + "/c/status", status).is_ok());
  EXPECT_TRUE(runner_.start("default/a"));
  EXPECT_EQ(phase("a"), "Running");
  EXPECT_FALSE(text_at(pod("a"), "/status/containerStatuses/0/state/running/startedAt").empty());
}

TEST_F(PodRunnerTest, EndsPodsWithStatusAndReason) {
  for (const char* name : {"good", "bad", "big"}) run_pod(name);
  EXPECT_TRUE(runner_.end("default/good", {.exit_code = 0}));
  EXPECT_TRUE(runner_.end("default/bad", {.exit_code = 3}));
  EXPECT_TRUE(runner_.end("default/big", {.exit_code = 137, .reason = "OOMKilled"}));
  EXPECT_EQ(phase("good"), "Succeeded");
  EXPECT_EQ(phase("bad"), "Failed");
  EXPECT_EQ(terminated("good")["reason"], "Completed");
  EXPECT_EQ(terminated("bad")["exitCode"], 3);
  EXPECT_EQ(terminated("bad")["reason"], "Error");
  EXPECT_EQ(terminated("big")["reason"], "OOMKilled");
  EXPECT_FALSE(text_at(terminated("big"), "/finishedAt").empty());
  EXPECT_FALSE(runner_.end("default/good", {.exit_code = 1}));
}

TEST_F(PodRunnerTest, ADeletedPodObeysOrIsKilled) {
  for (const char* name : {"a", "b"}) {
    run_pod(name);
    EXPECT_FALSE(runner_.stop("default/" + std::string(name), PodRunner::Stop::kObeys));
    remove_pod(name);
    EXPECT_EQ(phase(name), "Running");
  }
  EXPECT_TRUE(runner_.stop("default/a", PodRunner::Stop::kObeys));
  EXPECT_TRUE(runner_.stop("default/b", PodRunner::Stop::kKilled));
  const auto exit_code = [&](const char* name) {
    const json last = server_.history(std::string(kPods) + "/" + name).back();
    return number_at(last, "/status/containerStatuses/0/state/terminated/exitCode", 0);
  };
  EXPECT_EQ(exit_code("a"), 143);
  EXPECT_EQ(exit_code("b"), 137);
  EXPECT_TRUE(pod("a").is_null());
  EXPECT_TRUE(pod("b").is_null());
}

TEST_F(PodRunnerTest, AFinalizerKeepsTheEndOfADeletedPodReadable) {
  run_pod("a");
  server_.call("PATCH", std::string(kPods) + "/a", {{"metadata", {{"finalizers", {"x/y"}}}}});
  remove_pod("a");
  EXPECT_TRUE(runner_.stop("default/a", PodRunner::Stop::kObeys));
  EXPECT_EQ(terminated("a")["exitCode"], 143);
  server_.call("PATCH", std::string(kPods) + "/a", {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_TRUE(pod("a").is_null());
}

TEST_F(PodRunnerTest, DisruptsWithAReason) {
  run_pod("a");
  EXPECT_TRUE(runner_.disrupt("default/a", "DeletionByTaintManager", "Taint manager: deleting"));
  EXPECT_EQ(condition(pod("a"), "DisruptionTarget"), "True DeletionByTaintManager");
  EXPECT_TRUE(pod("a")["metadata"].contains("deletionTimestamp"));
  run_pod("b");
  EXPECT_TRUE(runner_.fail_for_pressure("default/b", "The node was low on resource: memory."));
  EXPECT_EQ(text_at(pod("b"), "/status/reason"), "Evicted");
  EXPECT_EQ(condition(pod("b"), "DisruptionTarget"), "True TerminationByKubelet");
  EXPECT_EQ(phase("b"), "Failed");
}

TEST_F(PodRunnerTest, ReportsImagesThatCannotBeFetchedAndPodsThatAreRefused) {
  make_pod("a");
  make_pod("b");
  runner_.bind_all();
  EXPECT_TRUE(runner_.fail_image("default/a", "Back-off pulling image \"i\""));
  EXPECT_EQ(text_at(pod("a"), "/status/containerStatuses/0/state/waiting/reason"),
            "ImagePullBackOff");
  EXPECT_EQ(phase("a"), "Pending");
  EXPECT_TRUE(runner_.start("default/a"));
  EXPECT_TRUE(runner_.reject("default/b", "OutOfcpu", "Node didn't have enough resource: cpu"));
  EXPECT_EQ(phase("b"), "Failed");
  EXPECT_EQ(text_at(pod("b"), "/status/reason"), "OutOfcpu");
}

TEST_F(PodRunnerTest, ALostNodeCarriesOutNothing) {
  run_pod("a");
  runner_.lose_node("n1");
  const json node = server_.object("/api/v1/nodes/n1");
  EXPECT_EQ(condition(node, "Ready"), "Unknown NodeStatusUnknown");
  EXPECT_EQ(text_at(node, "/spec/taints/0/key"), "node.kubernetes.io/unreachable");
  remove_pod("a");
  EXPECT_FALSE(runner_.stop("default/a", PodRunner::Stop::kObeys));
  EXPECT_EQ(phase("a"), "Running");
  runner_.recover_node("n1");
  EXPECT_TRUE(runner_.stop("default/a", PodRunner::Stop::kObeys));
}

TEST_F(PodRunnerTest, CollectsPodsOfNodesThatAreGone) {
  run_pod("a");
  server_.call("PATCH", std::string(kPods) + "/a", {{"metadata", {{"finalizers", {"x/y"}}}}});
  runner_.remove_node("n1");
  EXPECT_TRUE(server_.objects("/apis/resource.k8s.io/v1/resourceslices").empty());
  EXPECT_EQ(phase("a"), "Running");
  runner_.collect_garbage();
  EXPECT_EQ(phase("a"), "Failed");
  EXPECT_EQ(condition(pod("a"), "DisruptionTarget"), "True DeletionByPodGC");
}

TEST_F(PodRunnerTest, DeletesWhatHasNoOwnerLeft) {
  make_pod("a");
  json object = {{"metadata", {{"name", "m"}}}};
  object["metadata"]["ownerReferences"][0] = {{"kind", "Pod"},
                                              {"uid", pod("a")["metadata"]["uid"]}};
  server_.call("POST", "/api/v1/namespaces/default/configmaps", object);
  runner_.collect_garbage();
  EXPECT_EQ(server_.objects("/api/v1/configmaps").size(), 1u);
  remove_pod("a");
  runner_.collect_garbage();
  EXPECT_TRUE(server_.objects("/api/v1/configmaps").empty());
}

TEST_F(PodRunnerTest, WithoutTheFinalizerOrControllersAnAllocationStays) {
  make_pinned("c", {"GPU-0"});
  make_pinned("d", {"GPU-1"});
  run_pod("a", using_devices("c"));
  server_.call("PATCH", std::string(kResourceClaims) + "/c",
               {{"metadata", {{"finalizers", nullptr}}}});
  runner_.end("default/a", {.exit_code = 0});
  EXPECT_FALSE(value_at(pinned("c"), "/status/allocation").is_null());
  EXPECT_TRUE(value_at(pinned("c"), "/status/reservedFor").is_null());
  runner_.set_has_controllers(false);
  run_pod("b", using_devices("d"));
  runner_.end("default/b", {.exit_code = 0});
  EXPECT_FALSE(value_at(pinned("d"), "/status/reservedFor").is_null());
  runner_.release_devices();
  EXPECT_TRUE(value_at(pinned("d"), "/status/allocation").is_null());
}

TEST_F(PodRunnerTest, ADeletedResourceClaimGoesWithItsPod) {
  make_pinned("c", {"GPU-0"});
  run_pod("a", using_devices("c"));
  server_.call("DELETE", std::string(kResourceClaims) + "/c");
  EXPECT_FALSE(pinned("c").is_null());
  runner_.end("default/a", {.exit_code = 0});
  EXPECT_TRUE(pinned("c").is_null());
}

TEST_F(PodRunnerTest, AdvancesAWholeCluster) {
  make_pinned("c", {"GPU-0"});
  make_pod("a", using_devices("c"));
  runner_.advance();
  EXPECT_EQ(phase("a"), "Running");
  remove_pod("a");
  runner_.advance();
  EXPECT_TRUE(pod("a").is_null());
  EXPECT_TRUE(value_at(pinned("c"), "/status/allocation").is_null());
}

}  // namespace

}  // namespace gpu_platform::kubernetes
