#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "harness.h"
#include "kubernetes/client.h"

// The real daemon on a real control plane, as the platform's own user: kwok plays the kubelets of
// nodes with eight GPUs each. Run by scripts/check_kubernetes --with, which says where the cluster
// is.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using kubernetes::Method;

constexpr const char* kPodsOfCluster = "/api/v1/namespaces/default/pods";
constexpr const char* kClaimsOfCluster =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class KubernetesCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("GPU_PLATFORM_TEST_KUBERNETES");
    if (folder == nullptr) GTEST_SKIP() << "there is no cluster; see scripts/check_kubernetes";
    folder_ = folder;
    const Finished nodes = run_command({GP_SOURCE_DIRECTORY "/scripts/check_kubernetes", "--nodes",
                                        "4", "--of", folder_, "--name", "gpu-node"});
    ASSERT_EQ(nodes.exit_code, 0) << nodes.out << nodes.err;
    auto access = kubernetes::load_kubeconfig(folder_ + "/admin.kubeconfig", "");
    ASSERT_TRUE(access.has_value()) << access.error().message;
    admin_ = *kubernetes::Client::make(*std::move(access));
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .emulate = "",
        .config = "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + folder_ +
                  "/platform.kubeconfig\n    namespace: default\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    ASSERT_TRUE(eventually([&] { return daemon_->json({"status"})["total_gpus"] == 32; }))
        << daemon_->json({"status"}).dump(2) << daemon_->log();
  }

  Json ask(kubernetes::Request request) {
    std::optional<kubernetes::Answer> answer;
    admin_->send(std::move(request), [&](const kubernetes::Answer& came) { answer = came; });
    while (!answer) admin_->poll(base::seconds(1));
    return Json::parse(answer->body, nullptr, false);
  }
  std::size_t count(const std::string& path) {
    const Json list = ask({.path = path + "?labelSelector=gpu-platform%2Fcluster%3Ddefault"});
    return list["items"].size();
  }
  bool is_clean() {
    return eventually([&] { return count(kPodsOfCluster) == 0 && count(kClaimsOfCluster) == 0; });
  }
  std::string submit(std::vector<std::string> options) {
    options.insert(options.end(),
                   {"--image", "registry.example.org/torch:2", "--user", "nobody", "--", "train"});
    return daemon_->submit(std::move(options));
  }
  static std::string pod_name(const std::string& job, int rank = 0) {
    return fmt::format("gp-default-{}-1-{}", job, rank);
  }
  // Ends the container of a pod; false while there is no such pod.
  bool end(const std::string& job, int code, int rank = 0) {
    const Json annotations = {{"gpu-platform.test/run-seconds", "0"},
                              {"gpu-platform.test/exit-code", std::to_string(code)}};
    const Json pod = ask({.method = Method::kPatch,
                          .path = fmt::format("{}/{}", kPodsOfCluster, pod_name(job, rank)),
                          .body = Json{{"metadata", {{"annotations", annotations}}}}.dump(),
                          .content_type = "application/merge-patch+json"});
    return pod["kind"] == "Pod";
  }

  std::string folder_;
  std::unique_ptr<kubernetes::Client> admin_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(KubernetesCluster, KubeSchedulerAllocatesJustTheDevicesThatTheJobWasGiven) {
  const std::string id = submit({"--gpus", "2"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  const Json job = daemon_->job(id);
  const Json used = ask({.path = fmt::format("{}/{}", kClaimsOfCluster, pod_name(id))});
  EXPECT_EQ(used["status"]["allocation"]["devices"]["results"].size(), 2U) << used.dump(2);
  std::string rules;
  for (const Json& request : used["spec"]["devices"]["requests"]) rules += request.dump();
  for (const Json& gpu : job["gpus"]) {
    EXPECT_THAT(rules, HasSubstr(gpu["uuid"].get<std::string>()));
  }
  ASSERT_TRUE(end(id, 7));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 7);
  EXPECT_TRUE(is_clean());
}

TEST_F(KubernetesCluster, AGangStartsTogetherAndLeavesNothing) {
  const std::string id = submit({"--nodes", "3", "--gpus", "24"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  EXPECT_EQ(count(kPodsOfCluster), 3U);
  ASSERT_TRUE(end(id, 4, 1));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->job(id)["exit_code"], 4) << daemon_->job(id).dump(2);
  EXPECT_TRUE(is_clean());
}

TEST_F(KubernetesCluster, ACancelledJobsGpusAreFreeForTheNext) {
  const std::string first = submit({"--nodes", "4", "--gpus", "32"});
  ASSERT_TRUE(daemon_->reaches(first, "RUNNING"));
  const std::string next = submit({"--gpus", "8"});
  ASSERT_TRUE(daemon_->reaches(next, "QUEUED"));
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", first}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(first, "CANCELLED"));
  ASSERT_TRUE(daemon_->reaches(next, "RUNNING")) << daemon_->job(next).dump(2);
  ASSERT_TRUE(end(next, 0));
  ASSERT_TRUE(daemon_->reaches(next, "COMPLETED"));
  EXPECT_TRUE(is_clean());
}

TEST_F(KubernetesCluster, EveryPodIsAccountedForWhenTheDaemonIsKilledAtTwentyMoments) {
  base::Prng prng(16);
  constexpr int kKills = 20;
  std::vector<std::string> ids;
  std::set<std::string> ended;
  for (int kill = 0; kill < kKills; ++kill) {
    for (std::uint64_t n = 1 + prng.below(2); n > 0; --n) ids.push_back(submit({"--gpus", "1"}));
    const std::string& id = ids[prng.below(ids.size())];
    const bool is_away = prng.chance(1, 2);
    if (is_away) daemon_->kill_now();
    if (!ended.contains(id) && end(id, std::stoi(id) % 100)) ended.insert(id);
    if (!is_away) daemon_->kill_now();
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  for (const std::string& id : ids) {
    if (!ended.contains(id)) {
      ASSERT_TRUE(eventually([&] { return end(id, std::stoi(id) % 100); }))
          << daemon_->job(id).dump(2);
    }
    ASSERT_TRUE(eventually([&] { return !daemon_->job(id)["ended_at"].is_null(); }))
        << daemon_->job(id).dump(2);
    const Json job = daemon_->job(id);
    EXPECT_EQ(job["exit_code"], std::stoi(id) % 100) << job.dump(2);
    EXPECT_EQ(job["attempts"].size(), 1U) << job.dump(2);
  }
  EXPECT_TRUE(is_clean());
}

}  // namespace
}  // namespace gpu_platform::e2e
