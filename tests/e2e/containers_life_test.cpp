// The life of containers: an engine that goes away while jobs start, run and end, clients and
// supervisors that are killed, images that cannot be fetched. A real engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Ends with SIGTERM at once, which the first process of a container else ignores.
constexpr const char* kLoop = "trap 'exit 0' TERM; echo ready; while true; do sleep 0.1; done";

class ContainersLife : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directory(file("data"));
    write_rules("");
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n"});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void write_rules(const std::string& lines) const {
    std::ofstream(file("rules")) << "socket " << engine_.socket()
                                 << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\n"
                                 << "image 127.0.0.1:*\nmount " << file("data") << "\n"
                                 << lines;
    chmod(file("rules").c_str(), 0644);
  }
  std::string submit(std::vector<std::string> options, const std::string& script) const {
    std::vector<std::string> words = {"--gpus", "0", "--user", "backup", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return daemon_->submit(words);
  }
  nlohmann::json ended(const std::string& id) const {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) const { return daemon_->cli({"jobs", "logs", id}).out; }
  bool says(const std::string& id, const std::string& text) const {
    return eventually([&] { return output(id).find(text) != std::string::npos; });
  }
  std::string doing(const std::string& id) const {
    const nlohmann::json detail = daemon_->job(id)["detail"];
    return detail.is_string() ? detail.get<std::string>() : "";
  }

  // Of the processes that speak to this test's engine.
  std::vector<pid_t> clients() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string command = read_file(entry.path().string() + "/cmdline");
      const bool is_client = command.find("gpu-platform-container") != std::string::npos &&
                             command.find(file("rules")) != std::string::npos;
      if (is_client) found.push_back(std::stoi(entry.path().filename().string()));
    }
    return found;
  }
  bool nothing_is_left() const {
    return eventually([&] {
      return engine_.containers().empty() && daemon_->processes("gp-supervisor").empty() &&
             clients().empty() && groups().empty();
    });
  }
  // Of this test's attempts, in the older cgroup trees.
  std::vector<std::string> groups() const {
    std::vector<std::string> found;
    const std::string log = daemon_->log();
    constexpr std::string_view kBegin = "/gpu-platform-";
    const std::size_t at = log.find(kBegin, log.find("isolation held="));
    const std::string base = log.substr(at, log.find_first_of(" \"\n", at) - at);
    EXPECT_GT(base.size(), kBegin.size());
    std::ifstream mounts("/proc/self/mounts");
    std::string device;
    std::string point;
    std::string type;
    std::string rest;
    while (mounts >> device >> point >> type && std::getline(mounts, rest)) {
      const std::string path = point + base;
      if (type != "cgroup") continue;
      for (const auto& entry : entries_below(path)) {
        if (entry.is_directory()) found.push_back(entry.path().string());
      }
    }
    return found;
  }

  Engine engine_;
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(ContainersLife, AJobWaitsForAnEngineThatIsAwayAndSaysSo) {
  engine_.stop();
  const std::string id = submit({}, "echo done");
  EXPECT_TRUE(eventually([&] {
    return doing(id).find("waiting for the container engine at " + engine_.socket()) !=
           std::string::npos;
  })) << daemon_->job(id).dump(2);
  EXPECT_THAT(daemon_->cli({"jobs", "describe", id}).out, HasSubstr("waiting for the container"));
  EXPECT_THAT(daemon_->cli({"jobs", "explain", id}).out, HasSubstr("waiting for the container"));
  ASSERT_EQ(engine_.serve(), "");
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "COMPLETED") << job.dump(2);
  EXPECT_TRUE(job["detail"].is_null()) << job.dump(2);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, AJobThatWaitsForAnEngineCanBeCancelled) {
  engine_.stop();
  const std::string id = submit({}, "echo done");
  EXPECT_TRUE(eventually([&] { return !doing(id).empty(); }));
  daemon_->cli({"jobs", "cancel", id});
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
  ASSERT_EQ(engine_.serve(), "");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, AnEndWhileTheEngineIsAwayHasItsExitCode) {
  const std::string id = submit({"--mount", file("data") + ":/in:ro"},
                                "echo ready; until test -e /in/go; do sleep 0.1; done; exit 9");
  ASSERT_TRUE(says(id, "ready"));
  engine_.stop();
  std::ofstream(file("data/go")) << "";
  EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
  ASSERT_EQ(engine_.serve(), "");
  EXPECT_EQ(ended(id)["exit_code"], 9) << daemon_->job(id).dump(2);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, WhatAKilledClientLeavesWithTheEngineIsRemoved) {
  const std::string id = submit({}, kLoop);
  ASSERT_TRUE(says(id, "ready"));
  const auto running = clients();
  ASSERT_EQ(running.size(), 1U);
  kill(running[0], SIGKILL);
  EXPECT_EQ(ended(id)["state"], "FAILED");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, WhatAKilledSupervisorLeavesIsRemoved) {
  const std::string id = submit({"--mount", file("data") + ":/in:ro"}, kLoop);
  ASSERT_TRUE(says(id, "ready"));
  const auto running = clients();
  ASSERT_EQ(running.size(), 1U);
  daemon_->kill_now();
  for (const pid_t supervisor : daemon_->processes("gp-supervisor")) kill(supervisor, SIGKILL);
  kill(running[0], SIGKILL);
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  daemon_->cli({"jobs", "kill", id});  // it would run again
  ended(id);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, AContainerWithOurLabelsThatSomebodyElseMadeIsNotTouched) {
  const std::string id = submit({}, kLoop);
  ASSERT_TRUE(says(id, "ready"));
  const auto labels = run_command(
      engine_.tool({"inspect", "--format", R"({{index .Config.Labels "gpu-platform.cluster"}})",
                    engine_.containers().at(0)}));
  const std::string cluster = lines_of(labels.out).at(0);
  ASSERT_THAT(cluster, HasSubstr("gpu-platform-"));
  const Finished made = run_command(
      engine_.tool({"create", "--label", "gpu-platform.cluster=" + cluster, "--label",
                    "gpu-platform.attempt=1-1", "--label", "gpu-platform.job=1", kImage, "true"}));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto running = clients();
  ASSERT_EQ(running.size(), 1U);
  kill(running[0], SIGKILL);
  ended(id);
  EXPECT_TRUE(eventually([&] { return engine_.containers().size() == 1; }));
  EXPECT_THAT(made.out, HasSubstr(engine_.containers().at(0)));
}

TEST_F(ContainersLife, AContainerOverItsMemoryEndsAsOutOfMemory) {
  const std::string id = submit({"--memory", "64MiB"}, "tail -c 400m /dev/zero");
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["state"], "FAILED") << job.dump(2);
  EXPECT_EQ(job["reason"], "OUT_OF_MEMORY") << job.dump(2);
  EXPECT_TRUE(nothing_is_left());
}

// With and without a limit: where memory is counted differs.
TEST_F(ContainersLife, TheMemoryAndTheCpuTimeOfAContainerAreItsJobs) {
  const std::string script = "dd if=/dev/zero of=/dev/null bs=100M count=5";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--memory", "512MiB"}, std::vector<std::string>{}}) {
    const std::string id = submit(options, script);
    const nlohmann::json job = ended(id);
    ASSERT_EQ(job["state"], "COMPLETED") << job.dump(2);
    const nlohmann::json attempt = job["attempts"][0];
    EXPECT_GE(attempt["peak_memory_bytes"].get<std::int64_t>(), 100 << 20) << job.dump(2);
    EXPECT_LE(attempt["peak_memory_bytes"].get<std::int64_t>(), 512 << 20) << job.dump(2);
    EXPECT_GT(attempt["cpu_time_seconds"].get<double>(), 0.01) << job.dump(2);
  }
}

TEST_F(ContainersLife, AnImageThatCannotBeFetchedFailsWithTheRegistrysWords) {
  const std::string id = submit({"--image", "127.0.0.1:1/team/tool"}, "true");
  EXPECT_TRUE(eventually([&] { return doing(id).find("pull") != std::string::npos; }));
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["exit_code"], 125) << job.dump(2);
  EXPECT_THAT(job["attempts"][0]["detail"].get<std::string>(),
              AllOf(HasSubstr("fetching image 127.0.0.1:1/team/tool"), HasSubstr("refused")));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ContainersLife, ARootFilesystemThatIsReadOnlyStaysAsItIs) {
  write_rules("writable none\n");
  const std::string id = submit({"--tmpfs", "/scratch:8M"},
                                "touch /tmp/a || echo read-only; touch /scratch/a && echo scratch");
  EXPECT_EQ(ended(id)["state"], "COMPLETED") << output(id);
  EXPECT_THAT(output(id), AllOf(HasSubstr("read-only\n"), HasSubstr("scratch\n")));
}

}  // namespace
}  // namespace gpu_platform::e2e
