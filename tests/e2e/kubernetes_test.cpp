#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "harness.h"
#include "kubernetes/pod_messages.h"
#include "kubernetes/pod_server_fixture.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/pod_runner.h"
#include "terminal.h"

// Jobs as pods, from outside: the real daemon, and an API server of the tests with a cluster that
// does what a cluster in good order does.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/jobs/pods";
constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/jobs/resourceclaims";

class Kubernetes : public ::testing::Test {
 protected:
  Kubernetes() : runner_(server_) {
    server_.call("POST", "/api/v1/namespaces",
                 {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "jobs"}}}});
    for (const std::string node : {"alpha", "beta"}) add_node(node);
    mover_ = std::jthread([this](const std::stop_token& stop) { move(stop); });
  }
  ~Kubernetes() override {
    daemon_.reset();
    mover_.request_stop();
    wake_.notify_all();
  }

  void add_node(const std::string& node, bool is_spot = false) {
    kubernetes::NodeOptions options;
    if (is_spot) options.labels = {{"karpenter.sh/capacity-type", "spot"}};
    for (int gpu = 0; gpu < 4; ++gpu) {
      options.gpus.push_back("GPU-" + node + "-" + std::to_string(gpu));
    }
    runner_.add_node(node, options);
  }
  DaemonOptions options(const std::string& further = "") {
    const std::string path = folder_.path() + "/kubeconfig";
    std::ofstream(path) << server_.kubeconfig();
    return {.emulate = "",
            .config = "engines:\n  local: false\n  kubernetes:\n    kubeconfig: " + path +
                      "\n    namespace: jobs\n" + further,
            .data_dir = folder_.path() + "/data"};
  }
  DaemonOptions standby_options() {
    DaemonOptions standby = options();
    standby.arguments = {"--standby"};
    return standby;
  }
  void make_daemon(const std::string& further = "") {
    daemon_ = std::make_unique<Daemon>(options(further));
  }
  void start_daemon(const std::string& further = "") {
    make_daemon(further);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string submit(std::vector<std::string> options, const std::string& program = "train") {
    options.insert(options.end(),
                   {"--image", "registry.example.org/torch:2", "--user", "backup", "--", program});
    return daemon_->submit(std::move(options));
  }
  static std::string pod_name(const std::string& job, int attempt = 1, int rank = 0) {
    return "gp-default-" + job + "-" + std::to_string(attempt) + "-" + std::to_string(rank);
  }
  bool end(const std::string& job, std::int32_t code, int attempt = 1, int rank = 0) {
    return eventually([&] { return runner_.end("jobs/" + pod_name(job, attempt, rank), {code}); });
  }
  bool is_clean(std::chrono::seconds limit = std::chrono::seconds(30)) {
    return eventually(
        [&] {
          return server_.objects(kPods).empty() && server_.objects(kClaims).empty() &&
                 server_.objects("/api/v1/namespaces/jobs/services").empty();
        },
        limit);
  }
  Json node(const std::string& name) {
    const Json nodes = daemon_->json({"nodes"});
    for (const Json& each : nodes["nodes"]) {
      if (each["name"] == name) return each;
    }
    return nullptr;
  }
  void set_moves(bool moves) { moves_ = moves; }
  // Its end waits for all processes of its data directory, so it comes after that of daemon_.
  void retire(std::unique_ptr<Daemon> daemon) { retired_.push_back(std::move(daemon)); }

  kubernetes::FakeApiServer server_;
  kubernetes::PodRunner runner_;
  TemporaryDirectory folder_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::unique_ptr<Daemon>> retired_;

 private:
  // The cluster's own life.
  void move(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, std::chrono::milliseconds(20));
      if (moves_) runner_.advance();
    }
  }

  std::atomic<bool> moves_ = true;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::jthread mover_;
};

TEST_F(Kubernetes, AJobRunsOnJustTheGpusThatItWasGivenAndLeavesNothing) {
  start_daemon();
  const std::string id = submit({"--gpus", "2", "--time", "1h"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  std::set<std::string> given;
  const Json running = daemon_->job(id);
  for (const Json& gpu : running["gpus"]) given.insert(gpu["uuid"].get<std::string>());
  EXPECT_EQ(given.size(), 2U);
  const Json used = server_.object(std::string(kClaims) + "/" + pod_name(id));
  for (const Json& request : used["spec"]["devices"]["requests"]) {
    const std::string rule = request["exactly"]["selectors"][0]["cel"]["expression"];
    EXPECT_TRUE(std::ranges::any_of(given, [&](const auto& uuid) { return rule.contains(uuid); }));
  }
  server_.append_log("jobs", pod_name(id), "epoch 1\n");
  EXPECT_TRUE(eventually([&] { return daemon_->cli({"jobs", "logs", id}).out == "epoch 1\n"; }));
  ASSERT_TRUE(end(id, 7));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->job(id)["exit_code"], 7);
  EXPECT_TRUE(is_clean());
  EXPECT_EQ(daemon_->cli({"jobs", "logs", id}).out, "epoch 1\n");
}

TEST_F(Kubernetes, NodesAreShownWithTheirEngineAndWithWhatClusterAndOthersDoThere) {
  start_daemon();
  EXPECT_EQ(node("alpha")["engine"], "kubernetes");
  EXPECT_EQ(node("alpha")["capacity"], "ON_DEMAND");
  server_.call("PATCH", "/api/v1/nodes/beta",
               {{"metadata", {{"labels", {{"karpenter.sh/capacity-type", "spot"}}}}}});
  EXPECT_TRUE(eventually([&] { return node("beta")["capacity"] == "SPOT"; }));
  const std::string on_spot = submit({"--gpus", "1", "--capacity", "spot"});
  ASSERT_TRUE(daemon_->reaches(on_spot, "RUNNING"));
  EXPECT_EQ(daemon_->job(on_spot)["gpus"][0]["node"], "beta");
  EXPECT_EQ(daemon_->job(on_spot)["spec"]["capacity"], "SPOT");
  server_.call("PATCH", "/api/v1/nodes/alpha", {{"spec", {{"unschedulable", true}}}});
  EXPECT_TRUE(eventually([&] { return node("alpha")["state"] == "DRAINING"; }));
  EXPECT_THAT(node("alpha").dump(), HasSubstr("cordoned"));
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  EXPECT_EQ(daemon_->job(id)["gpus"][0]["node"], "beta");
  server_.call("PATCH", "/api/v1/nodes/alpha", {{"spec", {{"unschedulable", nullptr}}}});
  EXPECT_TRUE(eventually([&] { return node("alpha")["state"] == "UP"; })) << node("alpha");
}

// What a person decided about a node outlives the node's own coming and going, and the other way
// round: only a person lifts it.
TEST_F(Kubernetes, ADrainOutlivesANodeThatLeavesItsClusterAndComesBack) {
  start_daemon();
  const auto is = [&](const char* state, const char* reason) {
    return eventually([&] {
      const Json now = node("alpha");
      return now["state"] == state && now["reason"].dump().contains(reason);
    });
  };
  ASSERT_TRUE(is("UP", ""));
  ASSERT_EQ(daemon_->cli({"drain", "--node", "alpha", "--reason", "a fan is loud"}).exit_code, 0);
  runner_.remove_node("alpha");
  EXPECT_TRUE(is("LOST", "a fan is loud")) << node("alpha");
  add_node("alpha", true);
  ASSERT_TRUE(eventually([&] { return node("alpha")["capacity"] == "SPOT"; })) << "it is back";
  EXPECT_TRUE(is("DRAINING", "a fan is loud")) << node("alpha");
  ASSERT_EQ(daemon_->cli({"online", "--node", "alpha"}).exit_code, 0);
  EXPECT_TRUE(is("UP", ""));
  runner_.remove_node("alpha");
  ASSERT_TRUE(is("LOST", ""));
  for (const char* reason : {"it is sent back", "it is lost for good"}) {
    EXPECT_TRUE(daemon_->json({"drain", "--node", "alpha", "--reason", reason})["changed"]);
    EXPECT_TRUE(is("LOST", reason)) << node("alpha");
  }
  EXPECT_NE(daemon_->cli({"online", "--node", "alpha"}).exit_code, 0) << "it is not there";
  add_node("alpha");
  EXPECT_TRUE(
      eventually([&] { return daemon_->cli({"online", "--node", "alpha"}).exit_code == 0; }));
  EXPECT_TRUE(is("UP", ""));
}

TEST_F(Kubernetes, WhoFollowsTheOutputGetsAllOfItThoughItIsFetchedAfterTheEnd) {
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  server_.append_log("jobs", pod_name(id), "the last words\n");
  server_.misbehave({.method = "GET",
                     .path = std::string(kPods) + "/" + pod_name(id) + "/log",
                     .times = 2,
                     .error = {.code = 500}});
  ASSERT_TRUE(end(id, 7));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->cli({"jobs", "logs", "--follow", id}).out, "the last words\n");
}

TEST_F(Kubernetes, TheOutputOfAJobWithoutDevicesIsFetchedBeforeItIsForgotten) {
  start_daemon();
  const std::string id = submit({"--gpus", "0"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  const std::string log = std::string(kPods) + "/" + pod_name(id) + "/log";
  // A stream that does not end with its pod.
  server_.misbehave({.what = kubernetes::Misbehaviour::What::kHang, .path = log});
  daemon_->cli({"jobs", "logs", id});
  ASSERT_TRUE(eventually([&] { return server_.count("GET", log) == 1; }));
  server_.append_log("jobs", pod_name(id), "the last words\n");
  ASSERT_TRUE(end(id, 7));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->cli({"jobs", "logs", "--follow", id}).out, "the last words\n");
  EXPECT_TRUE(is_clean());
}

// The pod that a channel leads to, as the runner names it: of ".../pods/NAME/attach?…".
std::string pod_in(const std::string& path) {
  const std::size_t begin = path.find("/pods/") + 6;
  return "jobs/" + path.substr(begin, path.find('/', begin) - begin);
}

TEST_F(Kubernetes, AJobsInputReachesItsPodAndItsExitCodeIsRuns) {
  kubernetes::PodServer pods([this](kubernetes::PodServer::Pod& pod) {
    std::string input;
    for (std::string message = pod.read(); message != kubernetes::end_of_input_message();
         message = pod.read()) {
      if (message.empty()) return;
      input += message.substr(1);
    }
    const std::string name = pod_in(pod.path());
    server_.append_log("jobs", name.substr(5), "<" + input + ">");
    pod.exit(0);
    EXPECT_TRUE(runner_.end(name, {5}));
  });
  server_.pass_channels_to(pods.port());
  start_daemon();
  std::string input;
  for (int i = 0; i < 40'000; ++i) input += std::to_string(i) + "\n";
  const Finished run = daemon_->cli(
      {"run", "--stdin", "--gpus", "1", "--image", "x", "--user", "backup", "--", "cat"}, {},
      input);
  EXPECT_EQ(run.exit_code, 5) << run.err << daemon_->log();
  EXPECT_EQ(run.out, "<" + input + ">");
}

TEST_F(Kubernetes, ATerminalIsThePodsAndWhatItPrintedBeforeIsShown) {
  kubernetes::PodServer pods([this](kubernetes::PodServer::Pod& pod) {
    const std::string size = pod.read();
    pod.write(1, "[" + size.substr(1) + "]");
    std::string typed;
    while (!typed.ends_with("\r")) {
      const std::string message = pod.read();
      if (message.empty()) return;
      typed += message.substr(1);
    }
    pod.write(1, "typed: " + typed);
    pod.exit(0);
    EXPECT_TRUE(runner_.end(pod_in(pod.path()), {7}));
  });
  server_.pass_channels_to(pods.port());
  start_daemon();
  server_.append_log("jobs", pod_name("1"), "a prompt from before\r\n");
  Terminal terminal({program("gpu-platform"), "--server", "unix:" + daemon_->socket(), "run",
                     "--pty", "--gpus", "1", "--image", "x", "--user", "backup", "--", "sh"});
  EXPECT_TRUE(terminal.shows("a prompt from before")) << terminal.screen();
  EXPECT_TRUE(terminal.shows("{\"Width\":80,\"Height\":24}")) << terminal.screen();
  terminal.type("hello\r");
  EXPECT_TRUE(terminal.shows("typed: hello")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 7) << terminal.screen();
}

TEST_F(Kubernetes, AJobWithoutInputAndOutputForItsIdleTimeoutIsStopped) {
  kubernetes::PodServer pods([](kubernetes::PodServer::Pod& pod) {
    while (!pod.read().empty()) {
    }
  });
  server_.pass_channels_to(pods.port());
  start_daemon();
  Terminal terminal({program("gpu-platform"), "--server", "unix:" + daemon_->socket(), "run",
                     "--pty", "--idle-timeout", "2s", "--gpus", "1", "--image", "x", "--user",
                     "backup", "--", "sh"});
  ASSERT_TRUE(eventually([&] { return !daemon_->job("1")["ended_at"].is_null(); }));
  EXPECT_EQ(daemon_->job("1")["state"], "TIMED_OUT") << daemon_->job("1").dump(2);
  EXPECT_EQ(daemon_->job("1")["reason"], "IDLE_TIMEOUT");
  terminal.wait();
  EXPECT_TRUE(is_clean());
}

TEST_F(Kubernetes, GpusThatOthersHoldAreNotGivenAndAreShownWithWhoseTheyAre) {
  start_daemon();
  const Json request = {
      {"name", "gpu"},
      {"exactly",
       {{"deviceClassName", "gpu.nvidia.com"},
        {"selectors",
         {{{"cel",
            {{"expression",
              "device.attributes[\"gpu.nvidia.com\"].uuid == \"GPU-alpha-2\""}}}}}}}}};
  server_.call("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
               {{"apiVersion", "resource.k8s.io/v1"},
                {"kind", "ResourceClaim"},
                {"metadata", {{"name", "theirs"}}},
                {"spec", {{"devices", {{"requests", {request}}}}}}});
  server_.call("POST", "/api/v1/namespaces/default/pods",
               {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", "other"}}},
                {"spec",
                 {{"schedulerName", "default-scheduler"},
                  {"containers", {{{"name", "main"}, {"image", "x"}}}},
                  {"resourceClaims", {{{"name", "g"}, {"resourceClaimName", "theirs"}}}}}}});
  EXPECT_TRUE(eventually([&] {
    return daemon_->json({"status"}).dump().find("default/theirs") != std::string::npos;
  })) << daemon_->json({"status"}).dump(2);
  const std::string wide = submit({"--gpus", "4"});
  ASSERT_TRUE(daemon_->reaches(wide, "RUNNING"));
  EXPECT_EQ(daemon_->job(wide)["gpus"][0]["node"], "beta");
}

TEST_F(Kubernetes, AGangRunsOnSeveralNodesAndEndsWithItsFirstFailure) {
  start_daemon();
  const std::string id = submit({"--nodes", "2", "--gpus", "2"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  EXPECT_EQ(server_.objects(kPods).size(), 2U);
  ASSERT_TRUE(end(id, 3, 1, 1));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->job(id)["exit_code"], 3);
  EXPECT_TRUE(is_clean());
}

TEST_F(Kubernetes, ACancelledJobsPodIsStoppedWithItsGrace) {
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED"));
  EXPECT_EQ(daemon_->job(id)["attempts"][0]["exit_code"], 143) << daemon_->job(id).dump(2);
  EXPECT_TRUE(is_clean());
}

TEST_F(Kubernetes, APodThatKubernetesEvictsComesBackWithoutCostingARetry) {
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  ASSERT_TRUE(runner_.disrupt("jobs/" + pod_name(id), "EvictionByEvictionAPI", "drain"));
  ASSERT_TRUE(eventually([&] { return end(id, 0, 2); }));
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->job(id).dump(2);
  const Json job = daemon_->job(id);
  EXPECT_EQ(job["failures"], 0);
  EXPECT_EQ(job["attempts"][0]["reason"], "PREEMPTED") << job.dump(2);
  EXPECT_THAT(job["attempts"][0].dump(), HasSubstr("EvictionByEvictionAPI"));
}

TEST_F(Kubernetes, WhatCannotRunInAPodIsRefusedWithTheFieldAndTheReason) {
  start_daemon();
  const Finished none = daemon_->cli({"submit", "--user", "backup", "--", "true"});
  EXPECT_EQ(none.exit_code, 4) << none.err;
  EXPECT_THAT(none.err, HasSubstr("image"));
  const Finished root = daemon_->cli({"submit", "--image", "x", "--", "true"});
  EXPECT_EQ(root.exit_code, 4) << root.err;
  EXPECT_THAT(root.err, HasSubstr("root"));
  const Finished mount = daemon_->cli(
      {"submit", "--image", "x", "--user", "backup", "--mount", "/data:/data", "--", "true"});
  EXPECT_EQ(mount.exit_code, 4) << mount.err;
  EXPECT_THAT(mount.err, HasSubstr("mount"));
}

TEST_F(Kubernetes, AnAnnotationReachesThePodWhereTheSiteNamesIt) {
  constexpr const char* kLimit = "nvidia.com/container.main.gpu-memory.limit";
  start_daemon("    annotations: nvidia.com/container.main.gpu-memory.*\n");
  const std::string id = submit({"--gpus", "1", "--annotation", std::string(kLimit) + "=8Gi",
                                 "--env", "NVIDIA_GPU_MEMORY_LIMIT=8192"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
  const Json pod = server_.object(std::string(kPods) + "/" + pod_name(id));
  EXPECT_EQ(pod["metadata"]["annotations"][kLimit], "8Gi") << pod.dump(2);
  EXPECT_TRUE(std::ranges::any_of(pod["spec"]["containers"][0]["env"], [](const Json& variable) {
    return variable["name"] == "NVIDIA_GPU_MEMORY_LIMIT" && variable["value"] == "8192";
  })) << pod.dump(2);
  const Finished other = daemon_->cli({"submit", "--image", "x", "--user", "backup", "--annotation",
                                       "gpu-memory=8192", "--", "true"});
  EXPECT_EQ(other.exit_code, 4) << other.err;
  EXPECT_THAT(other.err, HasSubstr("engines.kubernetes.annotations"));
  ASSERT_TRUE(end(id, 0));
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED"));
}

TEST_F(Kubernetes, TheDaemonSaysWhatIsWrongWithAKubeconfigAndEnds) {
  make_daemon("    context: no-such\n");
  EXPECT_FALSE(daemon_->start());
  EXPECT_THAT(daemon_->log(), HasSubstr("no-such"));
  EXPECT_THAT(daemon_->log(), HasSubstr("kubeconfig"));
  server_.lack("create", "resourceclaims");
  make_daemon();
  EXPECT_FALSE(daemon_->start());
  EXPECT_THAT(daemon_->log(), HasSubstr("create resourceclaims.resource.k8s.io in namespace jobs"));
}

TEST_F(Kubernetes, ANewDataDirectoryDoesNotTakeThePodsOfALostOneForItsOwn) {
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->terminate(), 0);
  DaemonOptions fresh = options();
  fresh.data_dir = folder_.path() + "/fresh";
  Daemon refused(fresh);
  // The second time as the first: it has not become its own meanwhile.
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(refused.start());
    EXPECT_EQ(refused.wait_for_exit(), 4) << refused.log();
    EXPECT_THAT(refused.log(), HasSubstr("pod jobs/" + pod_name(id)));
    EXPECT_THAT(refused.log(), HasSubstr("--selector gpu-platform/cluster=default"));
  }
  const Json pod = server_.object(std::string(kPods) + "/" + pod_name(id));
  EXPECT_EQ(pod["status"]["phase"], "Running");
  EXPECT_FALSE(pod["metadata"].contains("deletionTimestamp"));
  fresh.config += "    cluster: second\n";
  Daemon other(fresh);
  ASSERT_TRUE(other.start()) << other.log();
  EXPECT_EQ(other.terminate(), 0);
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(end(id, 5));
  ASSERT_TRUE(daemon_->reaches(id, "FAILED"));
  EXPECT_EQ(daemon_->job(id)["exit_code"], 5);
}

// Where no policy keeps users from the platform's labels, they can write them on pods of theirs.
TEST_F(Kubernetes, APodOfAUserThatOnlyHasTheLabelKeepsNoNewDaemonOut) {
  for (const char* const name : {"web", "gp-default-one"}) {
    server_.call(
        "POST", "/api/v1/namespaces/default/pods",
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"name", name}, {"labels", {{"gpu-platform/cluster", "default"}}}}},
         {"spec", {{"containers", Json::array({{{"name", "main"}, {"image", "web:1"}}})}}}});
  }
  ASSERT_EQ(server_.objects("/api/v1/namespaces/default/pods").size(), 2U);
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  EXPECT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
}

// Two daemons and one data directory, as on storage that two machines share.
TEST_F(Kubernetes, AStandbyTakesOverFromADaemonThatIsKilledAndFromOneThatStops) {
  start_daemon();
  const std::string id = submit({"--gpus", "2", "--time", "1h"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  const std::string uid =
      server_.object(std::string(kPods) + "/" + pod_name(id))["metadata"]["uid"];
  auto standby = std::make_unique<Daemon>(standby_options());
  std::future<bool> is_ready = std::async(std::launch::async, [&] { return standby->start(); });
  const auto stands_by = [](const Daemon& daemon) {
    return eventually([&] { return daemon.log().contains("standby the lease"); });
  };
  ASSERT_TRUE(stands_by(*standby)) << standby->log();
  EXPECT_FALSE(std::filesystem::exists(standby->socket())) << "it is not ready";
  daemon_->kill_now();
  ASSERT_TRUE(is_ready.get()) << standby->log();
  retire(std::exchange(daemon_, std::move(standby)));
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
  EXPECT_EQ(server_.object(std::string(kPods) + "/" + pod_name(id))["metadata"]["uid"], uid);

  standby = std::make_unique<Daemon>(standby_options());
  is_ready = std::async(std::launch::async, [&] { return standby->start(); });
  ASSERT_TRUE(stands_by(*standby)) << standby->log();
  const std::string second = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(second, "RUNNING"));
  const auto stopped_at = std::chrono::steady_clock::now();
  EXPECT_EQ(daemon_->terminate(), 0);
  ASSERT_TRUE(is_ready.get()) << standby->log();
  EXPECT_LT(std::chrono::steady_clock::now() - stopped_at, std::chrono::seconds(14))
      << "the lease was released, it did not expire";
  retire(std::exchange(daemon_, std::move(standby)));
  ASSERT_TRUE(end(id, 0));
  ASSERT_TRUE(end(second, 3));
  ASSERT_TRUE(daemon_->reaches(id, "COMPLETED"));
  ASSERT_TRUE(daemon_->reaches(second, "FAILED"));
  for (const std::string& each : {id, second}) {
    EXPECT_EQ(daemon_->job(each)["attempts"].size(), 1U) << daemon_->job(each).dump(2);
  }
  EXPECT_TRUE(is_clean());
}

TEST_F(Kubernetes, AStandbyLeavesTheDataDirectoryToADaemonThatHangs) {
  start_daemon();
  const std::string id = submit({"--gpus", "1"});
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  retire(std::make_unique<Daemon>(standby_options()));
  Daemon& standby = *retired_.back();
  ASSERT_EQ(kill(daemon_->pid(), SIGSTOP), 0);
  EXPECT_FALSE(standby.start());
  EXPECT_EQ(standby.wait_for_exit(), 4) << standby.log();
  ASSERT_EQ(kill(daemon_->pid(), SIGCONT), 0);
  ASSERT_TRUE(end(id, 0));
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << "it has its lease again";
  EXPECT_TRUE(is_clean());
}

TEST_F(Kubernetes, AStandbyEndsWhenItIsToldToAndNeedsACluster) {
  start_daemon();
  retire(std::make_unique<Daemon>(standby_options()));
  Daemon& standby = *retired_.back();
  std::future<bool> is_ready = std::async(std::launch::async, [&] { return standby.start(); });
  ASSERT_TRUE(eventually([&] { return standby.log().contains("standby the lease"); }));
  EXPECT_EQ(kill(standby.pid(), SIGTERM), 0);
  EXPECT_FALSE(is_ready.get());
  EXPECT_EQ(standby.wait_for_exit(), 0) << standby.log();
  const Finished refused = run_command({program("gpu-platform"), "serve", "--standby"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("engines.kubernetes"));
}

TEST_F(Kubernetes, ADaemonEndsSoonWhenItIsToldToWhileItsClusterDoesNotAnswer) {
  constexpr std::chrono::seconds kSoon{15};
  start_daemon();
  server_.misbehave({.what = kubernetes::Misbehaviour::What::kHang, .times = 0});
  auto told_at = std::chrono::steady_clock::now();
  EXPECT_EQ(daemon_->terminate(), 0) << daemon_->log();
  EXPECT_LT(std::chrono::steady_clock::now() - told_at, kSoon) << "while it runs";

  const auto ends_while_it_starts = [&](const std::function<bool()>& is_waiting) {
    std::future<bool> is_ready = std::async(std::launch::async, [&] { return daemon_->start(); });
    EXPECT_TRUE(eventually(is_waiting)) << daemon_->log();
    told_at = std::chrono::steady_clock::now();
    EXPECT_EQ(kill(daemon_->pid(), SIGTERM), 0);
    EXPECT_FALSE(is_ready.get());
    EXPECT_EQ(daemon_->wait_for_exit(), 0) << daemon_->log();
    EXPECT_LT(std::chrono::steady_clock::now() - told_at, kSoon) << daemon_->log();
  };
  const std::size_t before = server_.count("GET", "/version");
  ends_while_it_starts([&] { return server_.count("GET", "/version") > before; });
  server_.heal();
  server_.go_away();
  const auto lines = [&] {
    return std::ranges::count_if(lines_of(daemon_->log()), [](const std::string& line) {
      return line.contains("the cluster does not answer yet");
    });
  };
  const auto lines_before = lines();
  ends_while_it_starts([&] { return lines() > lines_before; });
  server_.come_back();
  EXPECT_TRUE(daemon_->start()) << daemon_->log();
}

TEST_F(Kubernetes, ADaemonThatIsKilledAgainAndAgainLosesDoublesAndLeaksNothing) {
  start_daemon();
  base::Prng prng(16);
  constexpr int kSubmitted = 20;
  std::vector<std::string> ids;
  std::set<std::string> ended;
  for (int i = 0; i < kSubmitted; ++i) {
    ids.push_back(submit({"--gpus", "1"}));
    if (prng.below(2) == 0) {
      // Some of what runs ends while the daemon is away.
      if (prng.below(2) == 0) daemon_->kill_now();
      const std::string& id = ids[prng.below(ids.size())];
      const bool has =
          runner_.end("jobs/" + pod_name(id), {static_cast<std::int32_t>(std::stoi(id) % 100)});
      if (has) ended.insert(id);
      if (daemon_->is_running()) daemon_->kill_now();
      ASSERT_TRUE(daemon_->start()) << daemon_->log();
    }
  }
  for (const std::string& id : ids) {
    if (!ended.contains(id)) {
      ASSERT_TRUE(end(id, std::stoi(id) % 100)) << daemon_->job(id).dump(2);
    }
    ASSERT_TRUE(eventually([&] { return !daemon_->job(id)["ended_at"].is_null(); }));
    const Json job = daemon_->job(id);
    EXPECT_EQ(job["exit_code"], std::stoi(id) % 100) << job.dump(2);
    EXPECT_EQ(job["attempts"].size(), 1U) << job.dump(2);
  }
  // A pod that two daemons may have asked for goes a minute after the last start at the earliest.
  EXPECT_TRUE(is_clean(std::chrono::seconds(180)));
}

}  // namespace
}  // namespace gpu_platform::e2e
