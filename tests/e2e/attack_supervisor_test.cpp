// Attacks by jobs on their own supervisors, and what a site keeps if one is lost nevertheless. The
// attacker is an ordinary user with jobs of their own, here `backup`, that the kernel kills for
// memory in every moment of a start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;

class AttackSupervisor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: jobs of other users";
    chmod(site_.path().c_str(), 0755);
    std::filesystem::create_directory(room());
    chmod(room().c_str(), 01777);
    const Finished reaches = run_command(as_account({"backup"}, {"/usr/bin/test", "-w", room()}));
    if (reaches.exit_code != 0) GTEST_SKIP() << "closed to other users: " << room();
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  std::string room() const { return file("room"); }
  std::string program(const std::string& path, const std::string& lines) const {
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  // A daemon whose site has an epilog of these lines.
  void start_with(const std::string& epilog) {
    const std::string config = "fault_tolerance:\n  max_retries: 0\nexecution:\n  epilog: " +
                               program(file("epilog"), epilog) + "\n";
    daemon_ = std::make_unique<Daemon>(DaemonOptions{.config = config});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  void start() { start_with("echo $GPU_PLATFORM_JOB_ID $GPU_PLATFORM_END >> " + file("log")); }

  bool limits_memory() const {
    const nlohmann::json status = daemon_->json({"status"});
    return std::ranges::any_of(status["isolation"], [](const nlohmann::json& state) {
      return state["guard"] == "memory" && state["held"].get<bool>();
    });
  }

  std::string submit(std::vector<std::string> options, const std::string& script) const {
    std::vector<std::string> words{"--gpus", "0", "--workdir", room(), "--user", "backup"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    return daemon_->submit(words);
  }
  // The first attempt of a job that has ended and left nothing.
  nlohmann::json ended(const std::string& id) const {
    daemon_->cli({"jobs", "wait", "--timeout", "60s", id});
    EXPECT_TRUE(eventually([&] {
      const nlohmann::json job = daemon_->job(id);
      return !job["attempts"].empty() && job["attempts"][0]["state"] == "RELEASED";
    })) << daemon_->job(id).dump(2);
    return daemon_->job(id)["attempts"][0];
  }
  bool runs(const std::string& id) const { return daemon_->reaches(id, "RUNNING"); }
  std::vector<std::string> epilogs() const {
    std::vector<std::string> lines = lines_of(read_file(file("log")));
    std::ranges::sort(lines);
    return lines;
  }

  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

// The value holds for all processes that share memory: a job's own, given to one of these, would be
// the supervisor's too.
TEST_F(AttackSupervisor, OfAJobKeepsItsProtectionFromTheKernel) {
  start();
  const std::string own = read_file("/proc/self/oom_score_adj");
  const std::string id = submit({}, "cat /proc/self/oom_score_adj; exec sleep 1000");
  ASSERT_TRUE(runs(id));
  EXPECT_TRUE(eventually([&] { return daemon_->cli({"jobs", "logs", id}).out == own; }));
  // The launcher's value is -900 where root may lower it.
  const auto value_of = [](pid_t pid) {
    return read_file("/proc/" + std::to_string(pid) + "/oom_score_adj");
  };
  const auto launchers = daemon_->processes("launcher");
  ASSERT_EQ(launchers.size(), 1U);
  const auto supervisors = daemon_->processes("gp-supervisor");
  EXPECT_EQ(supervisors.size(), 1U);
  for (const pid_t supervisor : supervisors) {
    EXPECT_EQ(value_of(supervisor), value_of(launchers[0]));
  }
  daemon_->cli({"jobs", "kill", id});
  ended(id);
}

TEST_F(AttackSupervisor, OutlivesAJobWithTooLittleMemoryToStart) {
  start();
  if (!limits_memory()) GTEST_SKIP() << "advisory on this host: memory";
  std::vector<std::string> ids;
  for (const char* memory : {"4K", "16K", "32K", "64K", "128K"}) {
    for (int i = 0; i < 3; ++i) ids.push_back(submit({"--memory", memory}, "true"));
  }
  std::vector<std::string> expected;
  for (const std::string& id : ids) {
    const nlohmann::json attempt = ended(id);
    EXPECT_NE(attempt["reason"], "SUPERVISOR_LOST") << attempt.dump(2);
    const bool ran_out = attempt["reason"] == "OUT_OF_MEMORY";
    EXPECT_TRUE(ran_out || id != ids.front()) << "a page is enough for no program";
    expected.push_back(id + (ran_out ? " OUT_OF_MEMORY" : " COMPLETED"));
  }
  std::ranges::sort(expected);
  EXPECT_EQ(epilogs(), expected);
}

// What a job has in its /dev/shm counts, and no process of it can be killed to get it back.
TEST_F(AttackSupervisor, OutlivesStepsAndCommandsInAJobThatIsFull) {
  start();
  if (!limits_memory()) GTEST_SKIP() << "advisory on this host: memory";
  constexpr const char* kFill = "(head -c 1G /dev/zero > /dev/shm/full); true";
  const std::string fill = program(room() + "/fill", kFill);
  for (int i = 0; i < 3; ++i) {
    const std::string id = submit({"--memory", "24M", "--prolog", fill}, "true");
    EXPECT_NE(ended(id)["reason"], "SUPERVISOR_LOST");
  }
  const std::string full =
      submit({"--memory", "24M"}, std::string(kFill) + "; echo > full; exec sleep 1000");
  EXPECT_TRUE(eventually([&] {
    return std::filesystem::exists(room() + "/full") || daemon_->job(full)["state"] == "FAILED";
  }));
  for (int i = 0; i < 5; ++i) daemon_->cli({"jobs", "exec", full, "--", "/bin/true"});
  daemon_->cli({"jobs", "kill", full});
  EXPECT_NE(ended(full)["reason"], "SUPERVISOR_LOST");
  EXPECT_EQ(epilogs().size(), 4U);
}

TEST_F(AttackSupervisor, ThatIsLostLeavesTheSitesEpilogToTheLauncher) {
  const std::string gate = file("gate");
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  start_with("{ env; id -u; cat /proc/self/cgroup; cat " + gate + "; echo end; } >> " +
             file("log"));
  const std::string id = daemon_->submit({"--gpus", "8", "--workdir", room(), "--user", "backup",
                                          "--memory", "64M", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(runs(id));
  for (const pid_t supervisor : daemon_->processes("gp-supervisor")) kill(supervisor, SIGKILL);
  ASSERT_TRUE(eventually([&] { return read_file(file("log")).find("0::") != std::string::npos; }));
  const std::string text = read_file(file("log"));
  EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_HOOK=epilog\n"));
  EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_JOB_ID=" + id + "\n"));
  EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_USER=backup\n"));
  EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_END=SUPERVISOR_LOST\n"));
  EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(text, HasSubstr("\n0\n"));
  EXPECT_THAT(text, HasSubstr("/" + id + "-1\n"));
  // Neither a new daemon nor a new launcher takes it for something to kill, or runs it again.
  daemon_->kill_now();
  for (const pid_t launcher : daemon_->processes("launcher")) kill(launcher, SIGKILL);
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_NE(daemon_->job(id)["attempts"][0]["state"], "RELEASED") << "the GPUs wait for the epilog";
  std::ofstream(gate) << "go\n";
  EXPECT_EQ(ended(id)["reason"], "SUPERVISOR_LOST");
  const std::string all = read_file(file("log"));
  EXPECT_TRUE(all.ends_with("go\nend\n")) << all;
  EXPECT_EQ(all.find("GPU_PLATFORM_HOOK"), all.rfind("GPU_PLATFORM_HOOK"));
  EXPECT_TRUE(eventually([&] { return daemon_->processes("gp-supervisor").empty(); }));
  EXPECT_FALSE(std::filesystem::exists(daemon_->node_folder() + "/attempts/" + id + "-1.epilog"));
}

TEST_F(AttackSupervisor, ThatIsLostWithDaemonAndLauncherLeavesItToTheNext) {
  start();
  const std::string id = submit({}, "exec sleep 1000");
  ASSERT_TRUE(runs(id));
  const auto supervisors = daemon_->processes("gp-supervisor");
  const auto launchers = daemon_->processes("launcher");
  daemon_->kill_now();
  for (const pid_t pid : launchers) kill(pid, SIGKILL);
  for (const pid_t pid : supervisors) kill(pid, SIGKILL);
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_EQ(ended(id)["reason"], "SUPERVISOR_LOST");
  EXPECT_EQ(epilogs(), std::vector<std::string>{id + " SUPERVISOR_LOST"});
}

}  // namespace
}  // namespace gpu_platform::e2e
