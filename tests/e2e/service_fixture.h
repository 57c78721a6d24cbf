#pragma once

#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"

// The platform as the packaged services run it: a launcher with root's rights that was started
// apart, and a daemon that has none, runs as a service user and reaches the launcher over its
// socket.

namespace gpu_platform::e2e {

inline constexpr const char* kServiceUser = "list";
inline const std::vector<std::string> kAsService = as_account({kServiceUser}, {});
inline const std::vector<std::string> kAsUser = as_account({"daemon"}, {});

class ServiceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a launcher that may switch users";
    std::vector<std::string> test = kAsService;
    test.insert(test.end(), {"/usr/bin/test", "-x", program("gpu-platform")});
    if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to the service user";
    chmod(folder_.path().c_str(), 0755);
    make_folder(data_dir());
    ASSERT_EQ(mkdir(node_folder().c_str(), 0755), 0);
    make_folder(folder_.path() + "/jobs");
    chmod((folder_.path() + "/jobs").c_str(), 0777);
  }
  void TearDown() override {
    kill_launcher();
    daemon_.reset();
  }

  std::string data_dir() const { return folder_.path() + "/data"; }     // the daemon's
  std::string node_folder() const { return folder_.path() + "/node"; }  // the launcher's
  std::string launcher_socket() const { return node_folder() + "/launcher.sock"; }
  std::string flag() const { return folder_.path() + "/jobs/flag"; }

  static void make_folder(const std::string& path) {
    const passwd* user = getpwnam(kServiceUser);
    ASSERT_EQ(mkdir(path.c_str(), 0750), 0);
    ASSERT_EQ(chown(path.c_str(), user->pw_uid, user->pw_gid), 0);
  }

  // `further`: options beside those of the unit. Tests have users of the system only, which may
  // therefore have jobs.
  void start_launcher(const std::vector<std::string>& further = {}) {
    std::vector<std::string> words = {program("gpu-platform-node"),
                                      "launcher",
                                      "--root",
                                      node_folder(),
                                      "--listen",
                                      launcher_socket(),
                                      "--client-user",
                                      kServiceUser,
                                      "--root-jobs",
                                      "refuse",
                                      "--min-uid",
                                      "1"};
    words.insert(words.end(), further.begin(), further.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::filesystem::remove(launcher_socket());
    ASSERT_EQ(
        posix_spawn(&launcher_, words[0].c_str(), nullptr, nullptr, arguments.data(), environ), 0);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(launcher_socket()); }));
  }
  void kill_launcher() {
    if (launcher_ <= 0) return;
    kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
    launcher_ = -1;
  }

  void start_daemon() {
    daemon_.emplace(DaemonOptions{.data_dir = data_dir(),
                                  .prefix = kAsService,
                                  .arguments = {"--launcher", launcher_socket()}});
    chmod(daemon_->directory().c_str(), 0755);
    const passwd* user = getpwnam(kServiceUser);
    ASSERT_EQ(chown(daemon_->directory().c_str(), user->pw_uid, user->pw_gid), 0);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  // The command line as an ordinary user.
  Finished as_user(std::vector<std::string> arguments) {
    std::vector<std::string> command = kAsUser;
    command.push_back(program("gpu-platform"));
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::string server = "GPU_PLATFORM_SERVER=unix:" + daemon_->socket();
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    Finished finished = run_command(command, {server});
    std::filesystem::current_path(before);
    return finished;
  }
  std::string submit(const std::string& script) {
    const Finished done = as_user({"submit", "--gpus", "1", "--", "/bin/sh", "-c", script});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }

  TemporaryDirectory folder_;
  std::optional<Daemon> daemon_;
  pid_t launcher_ = -1;
};

}  // namespace gpu_platform::e2e
