// Jobs with an image of a user who runs the platform for himself: neither the daemon nor its
// launcher nor the container engine has root's rights. A real Podman.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr std::uint32_t kBobsUid = 34;

class RootlessContainers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = engine_.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(site_.path().c_str(), 0755);
    for (const char* const name : {"data", "work"}) {
      std::filesystem::create_directory(file(name));
      ASSERT_EQ(chown(file(name).c_str(), kBobsUid, kBobsUid), 0);
    }
    std::filesystem::create_directory_symlink("/etc", file("link"));
    write_rules(engine_.socket());
    daemon_ = std::make_unique<Daemon>(
        DaemonOptions{.config = "execution:\n  containers: " + file("rules") + "\n",
                      .data_dir = file("data"),
                      .prefix = as_account({"backup"}, {})});
    chmod(daemon_->directory().c_str(), 0755);
    ASSERT_EQ(chown(daemon_->directory().c_str(), kBobsUid, kBobsUid), 0);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  void write_rules(const std::string& socket) const {
    std::ofstream(file("rules")) << "socket " << socket
                                 << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\n"
                                 << "mount " << site_.path() << "\n";
    chmod(file("rules").c_str(), 0644);
  }
  std::string submit(const std::vector<std::string>& options, const std::string& script) {
    std::vector<std::string> words = {"--gpus", "0", "--user", "backup", "--image", kImage};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return daemon_->submit(words);
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  std::string output(const std::string& id) { return daemon_->cli({"jobs", "logs", id}).out; }
  bool says(const std::string& id, const std::string& text) {
    return eventually([&] { return output(id).find(text) != std::string::npos; });
  }
  static std::string why(const nlohmann::json& job) { return job["attempts"][0]["detail"].dump(); }
  bool nothing_is_left() {
    return eventually([&] {
      return engine_.containers().empty() && daemon_->processes("gp-supervisor").empty();
    });
  }

  Engine engine_{kBobsUid};
  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(RootlessContainers, AJobIsItsUserInsideAndOutsideAndEndsWithItsExitCode) {
  const std::string id =
      submit({"--mount", file("work") + ":/work"},
             "cat /etc/motd; id -u; echo mine > /work/made; grep -e NoNewPrivs -e CapBnd "
             "-e Seccomp: /proc/self/status; exit 7");
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["exit_code"], 7) << job.dump(2) << output(id);
  EXPECT_THAT(output(id), AllOf(HasSubstr("from the image\n34\n"), HasSubstr("NoNewPrivs:\t1"),
                                HasSubstr("CapBnd:\t0000000000000000"), HasSubstr("Seccomp:\t2")));
  struct stat made{};
  ASSERT_EQ(stat(file("work/made").c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, kBobsUid);
  EXPECT_EQ(ended(submit({}, "exec no-such-program"))["exit_code"], 127);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(RootlessContainers, SignalsAndTheEndReachAllProcessesOfTheContainer) {
  const std::string id =
      submit({"--mount", file("work") + ":/work"},
             "(trap 'touch /work/child' USR1; while :; do sleep 0.1; done) & "
             "trap 'touch /work/first' USR1; trap 'echo bye; exit 3' TERM; echo ready; "
             "while :; do sleep 0.1; done");
  ASSERT_TRUE(says(id, "ready"));
  EXPECT_EQ(daemon_->cli({"jobs", "signal", id, "-s", "USR1"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] {
    return std::filesystem::exists(file("work/first")) &&
           std::filesystem::exists(file("work/child"));
  }));
  EXPECT_EQ(daemon_->cli({"jobs", "cancel", id}).exit_code, 0);
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
  EXPECT_THAT(output(id), HasSubstr("bye"));
  const std::string deaf = submit({}, "trap '' TERM; echo ready; while :; do sleep 1; done");
  ASSERT_TRUE(says(deaf, "ready"));
  EXPECT_EQ(daemon_->cli({"jobs", "kill", deaf}).exit_code, 0);
  EXPECT_EQ(ended(deaf)["state"], "CANCELLED");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(RootlessContainers, AContainerOutlivesTheDaemonAndTheEngineAndNotItsSupervisor) {
  const std::string script = "echo ready; until test -e /work/go; do sleep 0.1; done; exit 5";
  const std::string first = submit({"--mount", file("work") + ":/work"}, script);
  ASSERT_TRUE(says(first, "ready"));
  daemon_->kill_now();
  engine_.stop();
  ASSERT_EQ(engine_.serve(), "");
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_EQ(daemon_->job(first)["state"], "RUNNING");
  std::ofstream(file("work/go")) << "";
  EXPECT_EQ(ended(first)["exit_code"], 5) << daemon_->job(first).dump(2);
  std::filesystem::remove(file("work/go"));
  const std::string second = submit({"--mount", file("work") + ":/work"}, script);
  ASSERT_TRUE(says(second, "ready"));
  const std::string lost = engine_.containers().at(0);
  for (const pid_t supervisor : daemon_->processes("gp-supervisor")) kill(supervisor, SIGKILL);
  EXPECT_TRUE(eventually([&] { return engine_.containers() != std::vector<std::string>{lost}; }));
  daemon_->cli({"jobs", "kill", second});  // it would run again
  ended(second);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(RootlessContainers, WhatCannotHoldThereIsRefusedWithThatReason) {
  const nlohmann::json linked = ended(submit({"--mount", file("link") + "/passwd:/in"}, "cat /in"));
  EXPECT_THAT(why(linked), HasSubstr("symbolic link"));
  const nlohmann::json gpu = ended(submit({"--gpus", "1"}, "true"));
  EXPECT_THAT(why(gpu), HasSubstr("emulated GPUs only where the node part has root's rights"));
  const std::string id = submit({}, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done");
  ASSERT_TRUE(says(id, "ready"));
  const Finished entered = daemon_->cli({"jobs", "exec", id, "--", "true"});
  EXPECT_NE(entered.exit_code, 0);
  EXPECT_THAT(entered.err, HasSubstr("commands cannot be run in this job's container"));
  daemon_->cli({"jobs", "kill", id});
  ended(id);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(RootlessContainers, AnEngineOfRootIsNoneForAUser) {
  Engine roots;
  if (std::string why = roots.start(); !why.empty()) GTEST_SKIP() << why;
  chmod(std::filesystem::path(roots.socket()).parent_path().c_str(), 0755);
  chmod(roots.socket().c_str(), 0666);
  write_rules(roots.socket());
  const nlohmann::json job = ended(submit({}, "echo it ran"));
  EXPECT_EQ(job["exit_code"], 125) << job.dump(2);
  EXPECT_THAT(why(job), HasSubstr("is not a Podman without root's rights"));
  EXPECT_TRUE(roots.containers().empty());
}

}  // namespace
}  // namespace gpu_platform::e2e
