#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/pod_runner.h"

// Sick GPUs of a cluster, as an operator sees them: what health tools, drivers and kubelets say of
// them becomes a verdict, keeps work away, and is over when they say so. The real daemon, and an
// API server of the tests.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kPodsOfJobs = "/api/v1/namespaces/jobs/pods/";
constexpr const char* kClaimsOfJobs = "/apis/resource.k8s.io/v1/namespaces/jobs/resourceclaims/";

// The answer of the REST interface; null where there was none.
Json rest_answer(const std::string& socket, const std::string& target) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request =
        "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    (void)!send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    std::string buffer(65'536, '\0');
    for (ssize_t n = 0; (n = recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
      answer.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  close(fd);
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos) return nullptr;
  return Json::parse(answer.substr(head + 4), nullptr, false);
}

// Two nodes of four GPUs.
class KubernetesHealth : public ::testing::Test {
 protected:
  KubernetesHealth() : runner_(server_) {
    server_.call("POST", "/api/v1/namespaces",
                 {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "jobs"}}}});
    for (const std::string node : {"alpha", "beta"}) {
      kubernetes::NodeOptions options;
      for (int gpu = 0; gpu < 4; ++gpu) {
        options.gpus.push_back("GPU-" + node + "-" + std::to_string(gpu));
      }
      runner_.add_node(node, options);
    }
    mover_ = std::jthread([this](const std::stop_token& stop) { move(stop); });
  }
  ~KubernetesHealth() override {
    daemon_.reset();
    mover_.request_stop();
    wake_.notify_all();
  }

  void SetUp() override {
    const std::string path = folder_.path() + "/kubeconfig";
    std::ofstream(path) << server_.kubeconfig();
    // A node is half of this cluster.
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.emulate = "",
                      .config = "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + path +
                                "\n    namespace: jobs\nhealth:\n  max_out_percent: 60\n",
                      .data_dir = folder_.path() + "/data"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string submit(const std::string& gpus) {
    return daemon_->submit({"--gpus", gpus, "--image", "registry.example.org/torch:2", "--user",
                            "backup", "--", "train"});
  }
  static std::string pod_name(const std::string& job, int attempt = 1) {
    return "gp-default-" + job + "-" + std::to_string(attempt) + "-0";
  }
  bool end(const std::string& job, std::int32_t code, int attempt = 1) {
    return eventually([&] { return runner_.end("jobs/" + pod_name(job, attempt), {code}); });
  }
  // As the node problem detector does it.
  void set_condition(const std::string& node, const std::string& type, const std::string& status) {
    const Json condition = {{"type", type}, {"status", status}, {"reason", "Checked"}};
    const auto set = server_.call("PATCH", "/api/v1/nodes/" + node + "/status",
                                  {{"status", {{"conditions", Json::array({condition})}}}},
                                  "application/strategic-merge-patch+json");
    ASSERT_EQ(set.status, 200) << set.body;
  }
  // As a driver does it; null lifts it.
  void set_taint_of_first_gpu(const std::string& node, const Json& taint) {
    const std::string path = "/apis/resource.k8s.io/v1/resourceslices/" + node + "-gpu.nvidia.com";
    Json devices = server_.object(path)["spec"]["devices"];
    devices[0]["taints"] = taint.is_null() ? Json::array() : Json::array({taint});
    const auto set = server_.call("PATCH", path, {{"spec", {{"devices", devices}}}});
    ASSERT_EQ(set.status, 200) << set.body;
  }
  // As a kubelet does it.
  void set_health_of_device(const std::string& job, const std::string& health) {
    const Json claim = server_.object(kClaimsOfJobs + pod_name(job));
    const Json result = claim["status"]["allocation"]["devices"]["results"][0];
    const std::string name = "k8s." + result["driver"].get<std::string>() + "/claim=1-" +
                             result["device"].get<std::string>();
    const Json resource = {{"resourceID", name}, {"health", health}};
    Json statuses = server_.object(kPodsOfJobs + pod_name(job))["status"]["containerStatuses"];
    statuses[0]["allocatedResourcesStatus"] =
        Json::array({Json{{"name", "claim:gpus"}, {"resources", Json::array({resource})}}});
    const auto set = server_.call("PATCH", kPodsOfJobs + pod_name(job) + "/status",
                                  {{"status", {{"containerStatuses", statuses}}}});
    ASSERT_EQ(set.status, 200) << set.body;
  }

  Json health(const std::string& gpu) { return daemon_->json({"health", "--gpu", gpu}); }
  Json rest_health(const std::string& gpu) {
    return rest_answer(daemon_->socket(), "/v1/gpus/health?gpu=" + gpu);
  }
  bool is_in_state(const std::string& gpu, const std::string& state) {
    return eventually([&] { return health(gpu)["gpu"]["state"] == state; });
  }
  bool is_judged(const std::string& gpu, const std::string& action) {
    return eventually([&] { return health(gpu)["verdict"]["action"] == action; });
  }
  // "alpha:2", of the job's only GPU.
  std::string gpu_of(const std::string& job, std::size_t attempt = 0) {
    const Json gpu = daemon_->job(job)["attempts"][attempt]["gpus"][0];
    return gpu["node"].get<std::string>() + ":" + std::to_string(gpu["index"].get<int>());
  }
  static std::string node_of(const std::string& gpu) { return gpu.substr(0, gpu.find(':')); }

  kubernetes::FakeApiServer server_;
  kubernetes::PodRunner runner_;
  TemporaryDirectory folder_;
  std::unique_ptr<Daemon> daemon_;

 private:
  // The cluster's own life.
  void move(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, std::chrono::milliseconds(20));
      runner_.advance();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::jthread mover_;
};

TEST_F(KubernetesHealth, AConditionOfANodeGoesRoundTheCircle) {
  const std::string id = submit("1");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  const std::string sick = gpu_of(id);
  const std::string node = node_of(sick);
  set_condition(node, "NVLinkStatusInactive", "True");

  for (const char* index : {":0", ":1", ":2", ":3"}) {
    ASSERT_TRUE(is_judged(node + index, "DRAIN")) << health(node + index).dump(2);
  }
  const Json shown = rest_health(sick);
  EXPECT_EQ(shown["verdict"]["rule"], "condition-nvlinkstatusinactive") << shown.dump(2);
  EXPECT_THAT(shown["verdict"]["next"].dump(), HasSubstr("when the condition ends"));
  EXPECT_THAT(daemon_->cli({"health"}).out, HasSubstr("4 with something wrong"));
  EXPECT_THAT(daemon_->cli({"health", sick}).out, HasSubstr("NVLinkStatusInactive"));
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING") << "it goes on";
  const std::string other = submit("1");
  ASSERT_TRUE(daemon_->reaches(other, "RUNNING"));
  EXPECT_NE(node_of(gpu_of(other)), node) << "new work keeps off";

  ASSERT_TRUE(end(id, 1));
  ASSERT_TRUE(eventually([&] { return daemon_->job(id)["attempts"].size() == 2; }))
      << daemon_->job(id).dump(2);
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  const Json moved = daemon_->job(id);
  EXPECT_EQ(moved["attempts"][0]["exit_code"], 1) << "the true exit code stays";
  EXPECT_EQ(moved["attempts"][0]["reason"], "GPU_FAULT") << moved.dump(2);
  EXPECT_EQ(moved["failures"], 0) << "it is innocent";
  EXPECT_NE(node_of(gpu_of(id, 1)), node) << moved.dump(2);
  EXPECT_EQ(rest_health(sick)["gpu"]["state"], "DRAINING");

  set_condition(node, "NVLinkStatusInactive", "False");
  ASSERT_TRUE(is_in_state(sick, "AVAILABLE")) << health(sick).dump(2);
  EXPECT_EQ(rest_health(sick)["gpu"]["state"], "AVAILABLE");
  const std::string wide = submit("4");
  ASSERT_TRUE(daemon_->reaches(wide, "RUNNING")) << daemon_->job(wide).dump(2);
  EXPECT_EQ(node_of(gpu_of(wide)), node) << "it is back in service";
}

TEST_F(KubernetesHealth, AConditionThatEndsWhileTheDaemonIsAwayIsOverWhenItIsBack) {
  set_condition("alpha", "GPUMissing", "True");
  set_condition("beta", "GPUClockThrottling", "True");
  ASSERT_TRUE(is_in_state("alpha:0", "DRAINING")) << health("alpha:0").dump(2);
  ASSERT_TRUE(is_judged("beta:0", "AVOID")) << health("beta:0").dump(2);
  daemon_->kill_now();
  set_condition("alpha", "GPUMissing", "False");
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_TRUE(is_in_state("alpha:0", "AVAILABLE")) << health("alpha:0").dump(2);
  EXPECT_EQ(health("beta:0")["verdict"]["action"], "AVOID") << "that one lasts";
  set_condition("beta", "GPUClockThrottling", "False");
  ASSERT_TRUE(is_judged("beta:0", "NONE")) << health("beta:0").dump(2);
  // Its begin and its end: what was told again after the start was nothing new.
  const std::string kept = daemon_->cli({"health", "evidence"}).out;
  const std::vector<std::string> lines = lines_of(kept);
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const auto& line) { return line.contains("GPUClockThrottling"); }),
            2)
      << kept;
}

TEST_F(KubernetesHealth, AConditionThatNothingKnowsIsShownAndDoesNothing) {
  set_condition("alpha", "SomethingNew", "True");
  ASSERT_TRUE(is_judged("alpha:0", "COUNT")) << health("alpha:0").dump(2);
  EXPECT_EQ(health("alpha:0")["gpu"]["state"], "AVAILABLE");
  EXPECT_THAT(daemon_->cli({"health", "alpha:0"}).out, HasSubstr("SomethingNew"));
  EXPECT_THAT(daemon_->cli({"health", "alpha"}).out, HasSubstr("4 with something wrong"));
}

TEST_F(KubernetesHealth, ATaintOfADeviceKeepsThatGpuFromWorkUntilItIsLifted) {
  set_taint_of_first_gpu(
      "alpha", {{"key", "gpu.nvidia.com/xid"}, {"value", "79"}, {"effect", "NoSchedule"}});
  ASSERT_TRUE(is_judged("alpha:0", "DRAIN")) << health("alpha:0").dump(2);
  EXPECT_EQ(rest_health("alpha:0")["verdict"]["rule"], "xid-79");
  EXPECT_EQ(health("alpha:1")["gpu"]["state"], "AVAILABLE");
  const std::string wide = submit("4");
  ASSERT_TRUE(daemon_->reaches(wide, "RUNNING")) << daemon_->job(wide).dump(2);
  EXPECT_EQ(node_of(gpu_of(wide)), "beta");
  set_taint_of_first_gpu("alpha", nullptr);
  EXPECT_TRUE(is_in_state("alpha:0", "AVAILABLE")) << health("alpha:0").dump(2);
}

TEST_F(KubernetesHealth,
       ADeviceThatItsDriverCallsUnhealthyUnderAJobIsSickUntilAPersonSaysOtherwise) {
  const std::string id = submit("1");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  const std::string sick = gpu_of(id);
  set_health_of_device(id, "Unhealthy");
  ASSERT_TRUE(is_judged(sick, "DRAIN")) << health(sick).dump(2);
  const Json shown = rest_health(sick);
  EXPECT_EQ(shown["verdict"]["rule"], "condition-devicehealth") << shown.dump(2);
  const auto is_told = [&](const Json& piece) {
    return piece["kind"] == "NODE_CONDITION" && piece["job"] == id;
  };
  EXPECT_TRUE(std::ranges::any_of(shown["evidence"], is_told)) << shown.dump(2);
  ASSERT_TRUE(end(id, 1));
  ASSERT_TRUE(eventually([&] { return daemon_->job(id)["attempts"].size() == 2; }))
      << daemon_->job(id).dump(2);
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  EXPECT_EQ(daemon_->job(id)["attempts"][0]["reason"], "GPU_FAULT");
  EXPECT_NE(gpu_of(id, 1), sick);
  EXPECT_TRUE(is_in_state(sick, "DRAINING")) << "the end of the pod says nothing of the device";
  ASSERT_EQ(daemon_->cli({"online", sick}).exit_code, 0);
  EXPECT_TRUE(is_in_state(sick, "AVAILABLE")) << health(sick).dump(2);
}

}  // namespace
}  // namespace gpu_platform::e2e
