// Engines that misbehave: one that hangs, and ones that answer nonsense. No job is lost with them,
// and none runs otherwise than it was asked to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "execution/container/fake_engine_test.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using execution::EngineRequest;
using execution::FakeEngine;
using execution::http_answer;
using execution::usual_answer;
using ::testing::HasSubstr;

constexpr const char* kInspectedImage = R"({"Id":"sha256:0b","Config":{"Cmd":["true"]}})";

class MisbehavingEngine : public ::testing::Test {
 protected:
  void start(const std::string& socket, const std::string& lines = "") {
    chmod(site_.path().c_str(), 0755);
    std::ofstream(rules()) << "socket " << socket
                           << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\n"
                           << lines;
    chmod(rules().c_str(), 0644);
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + rules() + "\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  std::string rules() const { return site_.path() + "/rules"; }
  std::string submit(const std::string& script) {
    return daemon_->submit(
        {"--gpus", "0", "--user", "backup", "--image", kImage, "--", "sh", "-c", script});
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  bool says(const std::string& id, const std::string& text) {
    return eventually(
        [&] { return daemon_->cli({"jobs", "logs", id}).out.find(text) != std::string::npos; });
  }
  bool is_doing(const std::string& id, const std::string& what) {
    return eventually(
        [&] { return daemon_->job(id)["detail"].dump().find(what) != std::string::npos; });
  }
  static std::string why(const nlohmann::json& job) { return job["attempts"][0]["detail"].dump(); }

  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(MisbehavingEngine, AnEngineThatHangsHoldsNeitherThePlatformNorItsJobs) {
  Engine engine;
  if (std::string why = engine.start(); !why.empty()) GTEST_SKIP() << why;
  start(engine.socket());
  const std::string running = submit("trap 'exit 6' USR1; echo ready; while :; do sleep 0.1; done");
  ASSERT_TRUE(says(running, "ready"));
  engine.hang();
  const std::string waiting = submit("echo it ran");
  EXPECT_TRUE(is_doing(waiting, "waiting for the container engine"));
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
  EXPECT_EQ(daemon_->job(running)["state"], "RUNNING");
  const std::string given_up = submit("echo it ran");
  EXPECT_TRUE(eventually([&] { return daemon_->job(given_up)["state"] == "RUNNING"; }));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", given_up}).exit_code, 0);
  EXPECT_EQ(ended(given_up)["state"], "CANCELLED");
  // The container itself does not hang: its signals do not go through the engine.
  EXPECT_EQ(daemon_->cli({"jobs", "signal", running, "-s", "USR1"}).exit_code, 0);
  engine.go_on();
  EXPECT_EQ(ended(running)["exit_code"], 6) << daemon_->job(running).dump(2);
  EXPECT_EQ(ended(waiting)["state"], "COMPLETED") << daemon_->job(waiting).dump(2);
  EXPECT_TRUE(eventually([&] { return engine.containers().empty(); }));
}

TEST_F(MisbehavingEngine, WhatIsNoAnswerOfHttpIsWaitedForAndTheJobCanBeCancelled) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  FakeEngine engine(
      [](const EngineRequest&) { return std::string("\x00\xff\x13garbage\n\n", 12); });
  start(engine.socket());
  const std::string id = submit("true");
  EXPECT_TRUE(is_doing(id, "waiting for the container engine"));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", id}).exit_code, 0);
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
}

TEST_F(MisbehavingEngine, AnswersThatMakeNoSenseEndTheJobWithThatReason) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  // What it says of what it made, and what it made.
  std::atomic<const char*> image = "[[[";
  std::atomic<const char*> created = "";
  std::atomic<const char*> inspected = "";
  FakeEngine engine([&](const EngineRequest& request) {
    if (request.is("POST /containers/create")) return http_answer(201, created.load());
    if (request.is("GET /images/localhost/gp-test:1/json")) return http_answer(200, image.load());
    if (request.is("GET /containers/0a/json")) return http_answer(200, inspected.load());
    return usual_answer(request);
  });
  start(engine.socket());
  const struct {
    const char* created;
    const char* inspected;
    const char* why;
  } cases[] = {
      {"[[[", "", "the engine reported no container"},
      {R"({"Id":7})", "", "the engine reported no container"},
      {R"({"Id":"../../images/x"})", "", "the engine reported no container"},
      {R"({"Id":"0a"})", "[[[", "did not report what it has made"},
      {R"({"Id":"0a"})", R"({"HostConfig":[]})", "did not report what it has made"},
      {R"({"Id":"0a"})", R"({"HostConfig":{"Privileged":true}})", "made it privileged"},
      {R"({"Id":"0a"})", R"({"HostConfig":{"NetworkMode":"host"}})", "made NetworkMode"},
      {R"({"Id":"0a"})", R"({"HostConfig":{"PidMode":"host"}})", "made PidMode the host's"},
  };
  EXPECT_THAT(why(ended(submit("true"))), HasSubstr("did not report the image's id"));
  image = kInspectedImage;
  for (const auto& each : cases) {
    created = each.created;
    inspected = each.inspected;
    const nlohmann::json job = ended(submit("true"));
    EXPECT_EQ(job["exit_code"], 125) << job.dump(2);
    EXPECT_THAT(why(job), HasSubstr(each.why)) << each.created << each.inspected;
  }
  for (const EngineRequest& request : engine.requests())
    EXPECT_FALSE(request.is("POST /containers/0a/start"));
}

TEST_F(MisbehavingEngine, WhatIsMadeWhileTheJobIsCancelledIsRemoved) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  std::atomic<bool> is_making = false;
  std::atomic<bool> is_made = false;
  std::atomic<bool> is_removed = false;
  FakeEngine engine([&](const EngineRequest& request) {
    if (request.is("GET /images/localhost/gp-test:1/json"))
      return http_answer(200, kInspectedImage);
    if (request.is("DELETE /containers/0a")) is_removed = true;
    if (!request.is("POST /containers/create")) return usual_answer(request);
    is_making = true;
    eventually([&] { return is_made.load(); });
    return http_answer(201, R"({"Id":"0a"})");
  });
  start(engine.socket());
  const std::string id = submit("true");
  ASSERT_TRUE(eventually([&] { return is_making.load(); })) << daemon_->job(id).dump(2);
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return daemon_->job(id)["state"] == "STOPPING"; }));
  is_made = true;
  EXPECT_TRUE(eventually([&] { return is_removed.load(); }));
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
}

// The tests' storage has no limit for one container, as most have none.
TEST_F(MisbehavingEngine, ALimitOfWhatIsWrittenThatTheEngineCannotKeepIsNoSilentNone) {
  Engine engine;
  if (std::string why = engine.start(); !why.empty()) GTEST_SKIP() << why;
  start(engine.socket(), "writable 10m\n");
  const nlohmann::json job = ended(submit("dd if=/dev/zero of=/tmp/x bs=1M count=64"));
  EXPECT_EQ(job["exit_code"], 125) << job.dump(2);
  EXPECT_THAT(why(job), HasSubstr("storage-opt")) << "the engine's words: " << job.dump(2);
  EXPECT_TRUE(eventually([&] { return engine.containers().empty(); }));
}

}  // namespace
}  // namespace gpu_platform::e2e
