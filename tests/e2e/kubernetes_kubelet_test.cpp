#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "terminal.h"

// The real daemon's jobs in containers of a real kubelet with containerd, on a node of four made-up
// GPUs. Run by scripts/check_kubelet --with, which says where the cluster is.

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// One program with all names of busybox; it is on the node.
constexpr const char* kImageOfNode = "gpu-platform.test/busybox:1";

// A function of the shell. A terminal has no size until Kubernetes has passed on the client's.
const std::string kTellSizes =
    "tell_sizes() { while :; do now=$(stty size 2>/dev/null </dev/tty); "
    "[ \"$now\" = \"$old\" ] || echo \"size $now\"; old=$now; sleep 0.1; done; }; ";

// The job that `run` names in its words.
std::string job_named_in(const std::string& words) {
  constexpr std::string_view kBefore = "gpu-platform: job ";
  const std::size_t begin = words.find(kBefore);
  if (begin == std::string::npos) return {};
  return std::to_string(std::stoi(words.substr(begin + kBefore.size())));
}

// More than any buffer holds.
std::string many_lines() {
  std::string lines;
  for (int i = 0; i < 300'000; ++i) lines += std::to_string(i) + "\n";
  return lines;
}

// All tests have one daemon: another one would have to wait until the lease of the first runs out.
class KubernetesKubelet : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* folder = std::getenv("GPU_PLATFORM_TEST_KUBELET");
    if (folder == nullptr) return;
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .emulate = "",
        .config = fmt::format("engines:\n  local: false\n  kubernetes:\n"
                              "    kubeconfig: {}/platform.kubeconfig\n    namespace: default\n",
                              folder)});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  static void TearDownTestSuite() { daemon_.reset(); }

  // Each test leaves the node to the next one.
  void TearDown() override {
    if (daemon_ != nullptr) daemon_->cli({"jobs", "kill", "--all-users", "--yes"});
  }
  void SetUp() override {
    if (daemon_ == nullptr) GTEST_SKIP() << "there is no node; see scripts/check_kubelet";
    ASSERT_TRUE(eventually([&] { return daemon_->json({"status"})["total_gpus"] == 4; }))
        << daemon_->json({"status"}).dump(2) << daemon_->log();
  }

  static std::vector<std::string> in_image(const std::string& verb,
                                           const std::vector<std::string>& options,
                                           const std::vector<std::string>& command) {
    std::vector<std::string> words = {verb, "--image", kImageOfNode, "--user", "backup"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  struct Ran : Finished {
    std::string job;
    Json object;  // the job at its end
  };
  static Ran run_program(const std::vector<std::string>& options,
                         const std::vector<std::string>& command, const std::string& input = {}) {
    Ran ran{daemon_->cli(in_image("run", options, command), {}, input), {}, {}};
    ran.job = job_named_in(ran.err);
    ran.object = daemon_->job(ran.job);
    return ran;
  }
  static Ran run(const std::vector<std::string>& options, const std::string& script,
                 const std::string& input = {}) {
    return run_program(options, {"sh", "-c", script}, input);
  }
  static std::string submit(const std::vector<std::string>& options, const std::string& script) {
    std::vector<std::string> words = in_image("submit", options, {"sh", "-c", script});
    words.erase(words.begin());
    return daemon_->submit(words);
  }
  static bool prints(const std::string& id, const std::string& text) {
    return eventually(
        [&] { return daemon_->cli({"jobs", "logs", id}).out.find(text) != std::string::npos; });
  }
  // One that runs until it is ended.
  static std::string sleeper() {
    const std::string id =
        submit({"--gpus", "1"}, "trap 'exit 9' TERM; while :; do sleep 0.1; done");
    EXPECT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2) << daemon_->log();
    return id;
  }
  static std::vector<std::string> client(const std::vector<std::string>& words) {
    std::vector<std::string> all = {program("gpu-platform"), "--server",
                                    "unix:" + daemon_->socket()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  static std::unique_ptr<Daemon> daemon_;
};

std::unique_ptr<Daemon> KubernetesKubelet::daemon_;

// ---- ends

TEST_F(KubernetesKubelet, OutputAndExitCodeOfAContainerAreTheJobs) {
  const Ran ended = run({"--gpus", "1"}, "echo to one; echo to the other >&2; exit 3");
  EXPECT_EQ(ended.exit_code, 3) << ended.err << ended.object.dump(2);
  EXPECT_THAT(ended.out, HasSubstr("to one\n"));
  EXPECT_THAT(ended.out, HasSubstr("to the other\n"));
  EXPECT_EQ(daemon_->cli({"jobs", "logs", ended.job}).out, ended.out);
  EXPECT_EQ(ended.object["state"], "FAILED");
}

TEST_F(KubernetesKubelet, AJobThatTakesTooMuchMemoryEndsWithThatReason) {
  const Ran ended = run({"--gpus", "0", "--memory", "32M"}, "tail /dev/zero");
  EXPECT_EQ(ended.object["reason"], "OUT_OF_MEMORY") << ended.object.dump(2);
}

TEST_F(KubernetesKubelet, AProgramThatTheImageLacksEndsAsInAShell) {
  const Ran missing = run_program({"--gpus", "0"}, {"no-such-program"});
  EXPECT_EQ(missing.exit_code, 127) << missing.err << missing.object.dump(2);
  const Ran closed = run_program({"--gpus", "0"}, {"/etc/passwd"});
  EXPECT_EQ(closed.exit_code, 126) << closed.err << closed.object.dump(2);
}

TEST_F(KubernetesKubelet, ACancelledJobHasItsGrace) {
  const std::string id =
      submit({"--gpus", "1"},
             "trap 'echo farewell; exit 9' TERM; echo ready; while :; do sleep 0.1; done");
  ASSERT_TRUE(prints(id, "ready")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 9) << daemon_->job(id).dump(2);
  EXPECT_THAT(daemon_->cli({"jobs", "logs", id}).out, HasSubstr("farewell"));
}

TEST_F(KubernetesKubelet, AJobThatIsKilledHasNone) {
  const std::string id =
      submit({"--gpus", "1"}, "trap '' TERM; echo ready; while :; do sleep 0.1; done");
  ASSERT_TRUE(prints(id, "ready")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->cli({"jobs", "kill", id}).exit_code, 0);
  ASSERT_TRUE(daemon_->reaches(id, "CANCELLED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 137) << daemon_->job(id).dump(2);
}

TEST_F(KubernetesKubelet, WhatEndsWhileTheDaemonIsAwayIsFoundWithItsOutput) {
  const std::string id = submit({"--gpus", "1"}, "sleep 2; echo meanwhile; exit 6");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(daemon_->reaches(id, "FAILED")) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->job(id)["exit_code"], 6);
  EXPECT_EQ(daemon_->cli({"jobs", "logs", id}).out, "meanwhile\n");
}

// ---- what a job has

TEST_F(KubernetesKubelet, AJobHasItsVariablesAndThoseOfThePlatform) {
  const Ran ended = run({"--gpus", "1", "--env", "GREETING=two $(words) $HOME"},
                        "echo \"$GREETING\"; echo \"job $GPU_PLATFORM_JOB_ID\"; "
                        "echo \"cuda ${CUDA_VISIBLE_DEVICES-unset}\"; id -u");
  EXPECT_EQ(ended.out, "two $(words) $HOME\njob " + ended.job + "\ncuda unset\n34\n") << ended.err;
}

TEST_F(KubernetesKubelet, ThePodsOfAGangKnowTheirRanks) {
  const Ran ended = run({"--gpus", "2", "--per-gpu"},
                        "echo \"rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT\"");
  EXPECT_EQ(ended.exit_code, 0) << ended.err << ended.object.dump(2);
  EXPECT_THAT(ended.out, HasSubstr("rank 0 of 2 at "));
  EXPECT_THAT(ended.out, HasSubstr("rank 1 of 2 at "));
}

TEST_F(KubernetesKubelet, AContainerHasTheDevicesOfItsGpusAndNoOthers) {
  const std::string keeper = sleeper();
  const Ran ended =
      run({"--gpus", "2"}, "ls /dev | grep nvidia; env | grep ^GPU_PLATFORM_TEST_GPU_ | sort");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json& gpus = ended.object["gpus"];
  ASSERT_EQ(gpus.size(), 2U);
  std::set<std::string> nodes;
  std::set<std::string> variables;
  for (const Json& gpu : gpus) {
    const std::string uuid = gpu["uuid"];
    const int minor = std::stoi(uuid.substr(uuid.size() - 4), nullptr, 16);
    nodes.insert(fmt::format("nvidia{}\n", minor));
    variables.insert(fmt::format("GPU_PLATFORM_TEST_GPU_{}={}\n", minor, uuid));
  }
  std::string all;
  for (const std::string& line : nodes) all += line;
  for (const std::string& line : variables) all += line;
  EXPECT_EQ(ended.out, all);
  EXPECT_NE(daemon_->job(keeper)["gpus"][0]["uuid"], gpus[0]["uuid"]);
  EXPECT_EQ(run({"--gpus", "0"}, "ls /dev | grep -c nvidia").out, "0\n");
}

// ---- ways into it

TEST_F(KubernetesKubelet, ACommandRunsInTheJobsContainer) {
  const std::string id = sleeper();
  const Finished command = daemon_->cli(
      {"jobs", "exec", id, "--", "sh", "-c", "cat; echo aside >&2; exit 5"}, {}, "what is sent\n");
  EXPECT_EQ(command.exit_code, 5) << command.err;
  EXPECT_EQ(command.out, "what is sent\n");
  EXPECT_THAT(command.err, HasSubstr("aside"));
  const std::string lines = many_lines();
  EXPECT_TRUE(daemon_->cli({"jobs", "exec", id, "--", "cat"}, {}, lines).out == lines);
  EXPECT_EQ(daemon_->cli({"jobs", "exec", id, "--", "no-such-program"}).exit_code, 127);
  Terminal terminal(
      client({"jobs", "exec", "--pty", id, "--", "sh", "-c", kTellSizes + "tell_sizes"}));
  EXPECT_TRUE(terminal.shows("size 24 80")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 130) << terminal.screen();
}

TEST_F(KubernetesKubelet, APortOfTheJobIsForwarded) {
  const std::string id = submit({"--gpus", "0"}, "nc -l -p 8080 -e head -n 1");
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING")) << daemon_->job(id).dump(2);
  Terminal forward(client({"jobs", "port-forward", id, "0:8080"}));
  ASSERT_TRUE(forward.shows("forwards connections")) << forward.screen();
  const std::string& screen = forward.screen();
  const std::string port = std::to_string(std::stoi(screen.substr(screen.find("127.0.0.1:") + 10)));
  EXPECT_EQ(run_command({"busybox", "nc", "127.0.0.1", port}, {}, "a question\n").out,
            "a question\n");
}

TEST_F(KubernetesKubelet, InputReachesTheJobUntilItsEnd) {
  const std::string input = many_lines();
  const Ran ended = run({"--gpus", "0", "--stdin"}, "cat; exit 4", input);
  EXPECT_EQ(ended.exit_code, 4) << ended.err << ended.object.dump(2);
  EXPECT_TRUE(ended.out == input) << ended.out.size() << " bytes of " << input.size();
}

TEST_F(KubernetesKubelet, AJobWithoutInputHasNone) {
  EXPECT_EQ(run({"--gpus", "0"}, "cat; echo nothing", "not for the job").out, "nothing\n");
}

TEST_F(KubernetesKubelet, ATerminalTakesKeysAndSizesAndOutlivesItsClient) {
  const auto words = in_image("run", {"--gpus", "0", "--pty"},
                              {"sh", "-c",
                               kTellSizes + "tell_sizes & echo ready; while read -r l; "
                                            "do [ $l != end ] || exit 7; echo \"<$l>\"; done"});
  std::string id;
  {
    Terminal terminal(client(words));
    EXPECT_TRUE(terminal.shows("ready")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("size 24 80")) << terminal.screen();
    terminal.resize(100, 30);
    EXPECT_TRUE(terminal.shows("size 30 100")) << terminal.screen();
    terminal.type("hello\r");
    EXPECT_TRUE(terminal.shows("<hello>")) << terminal.screen();
    terminal.type("\x10\x11");  // Ctrl-P Ctrl-Q
    EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
    id = job_named_in(terminal.screen());
  }
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
  Terminal terminal(client({"jobs", "attach", id}));
  EXPECT_TRUE(terminal.shows("<hello>")) << terminal.screen();
  terminal.type("again\r");
  EXPECT_TRUE(terminal.shows("<again>")) << terminal.screen();
  terminal.type("end\r");
  EXPECT_EQ(terminal.wait(), 7) << terminal.screen();
}

TEST_F(KubernetesKubelet, ATerminalIsAttachedToAfterTheDaemonWasKilled) {
  Terminal first(
      client(in_image("run", {"--gpus", "0", "--pty"},
                      {"sh", "-c", "echo ready; while read -r l; do echo \"<$l>\"; done"})));
  EXPECT_TRUE(first.shows("ready")) << first.screen();
  first.type("before\r");
  EXPECT_TRUE(first.shows("<before>")) << first.screen();
  const std::string id = job_named_in(first.screen());
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(daemon_->reaches(id, "RUNNING"));
  Terminal second(client({"jobs", "attach", id}));
  EXPECT_TRUE(second.shows("<before>")) << second.screen();
  second.type("after\r");
  EXPECT_TRUE(second.shows("<after>")) << second.screen();
  second.type("\x04");
  EXPECT_EQ(second.wait(), 0) << second.screen();
}

}  // namespace
}  // namespace gpu_platform::e2e
