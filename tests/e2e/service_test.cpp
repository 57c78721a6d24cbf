// As the packaged services run it: a launcher with root's rights that was started apart, and a
// daemon that has none, runs as a service user and reaches the launcher over its socket.

#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

constexpr const char* kServiceUser = "nobody";
const std::vector<std::string> kAsService = {"/usr/bin/setpriv", "--reuid", "nobody",
                                             "--regid",          "nogroup", "--clear-groups"};
const std::vector<std::string> kAsUser = {"/usr/bin/setpriv", "--reuid", "daemon",
                                          "--regid",          "daemon",  "--clear-groups"};

class Service : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a launcher that may switch users";
    std::vector<std::string> test = kAsService;
    test.insert(test.end(), {"/usr/bin/test", "-x", program("gpu-platform")});
    if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to the service user";
    chmod(folder_.path().c_str(), 0755);
    make_folder(data_dir());
    make_folder(folder_.path() + "/jobs");
    chmod((folder_.path() + "/jobs").c_str(), 0777);
    start_launcher();
    daemon_.emplace(DaemonOptions{.data_dir = data_dir(),
                                  .prefix = kAsService,
                                  .arguments = {"--launcher", launcher_socket()}});
    chmod(daemon_->directory().c_str(), 0755);
    const passwd* user = getpwnam(kServiceUser);
    ASSERT_EQ(chown(daemon_->directory().c_str(), user->pw_uid, user->pw_gid), 0);
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  void TearDown() override {
    kill_launcher();
    daemon_.reset();
  }

  std::string data_dir() const { return folder_.path() + "/data"; }
  std::string launcher_socket() const { return folder_.path() + "/launcher.sock"; }
  std::string flag() const { return folder_.path() + "/jobs/flag"; }

  static void make_folder(const std::string& path) {
    const passwd* user = getpwnam(kServiceUser);
    ASSERT_EQ(mkdir(path.c_str(), 0750), 0);
    ASSERT_EQ(chown(path.c_str(), user->pw_uid, user->pw_gid), 0);
  }

  // `further`: options beside those of the unit.
  void start_launcher(const std::vector<std::string>& further = {}) {
    std::vector<std::string> words = {program("gpu-platform-node"),
                                      "launcher",
                                      "--root",
                                      data_dir(),
                                      "--listen",
                                      launcher_socket(),
                                      "--client-user",
                                      kServiceUser,
                                      "--root-jobs",
                                      "refuse",
                                      "--gpu-register",
                                      program("gpu-emulator-register")};
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

TEST_F(Service, JobsRunAsWhoSubmittedThemThoughTheDaemonHasNoRights) {
  struct stat about{};
  ASSERT_EQ(stat(("/proc/" + std::to_string(daemon_->pid())).c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, getpwnam(kServiceUser)->pw_uid);
  const Finished ran = as_user({"run", "--gpus", "1", "--", "/usr/bin/id", "-un"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "daemon\n");
}

TEST_F(Service, RootJobsAreRefusedByALauncherThatWasToldSo) {
  const Finished submitted = daemon_->cli({"submit", "--gpus", "0", "--", "/bin/true"});
  if (submitted.exit_code != 0) return;  // the daemon refuses them already
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  ASSERT_TRUE(eventually([&] {
    const auto job = daemon_->job(id);
    return !job["attempts"].empty() && job["attempts"][0]["reason"] == "LAUNCH_FAILED";
  })) << daemon_->job(id);
}

TEST_F(Service, TheLaunchersProgramsRunAsRootThoughTheDaemonHasNoRights) {
  std::vector<std::string> options;
  for (const std::string hook : {"prolog", "epilog"}) {
    const std::string file = folder_.path() + "/" + hook;
    std::ofstream(file) << "#!/bin/sh\necho $GPU_PLATFORM_HOOK $(id -un) $GPU_PLATFORM_USER >> "
                        << folder_.path() << "/hooks\n";
    ASSERT_EQ(chmod(file.c_str(), 0755), 0);
    options.insert(options.end(), {"--" + hook, file, "--" + hook + "-timeout", "2m"});
  }
  kill_launcher();
  start_launcher(options);
  // The daemon dials again by itself; until then the job waits for it.
  const Finished ran = as_user({"run", "--gpus", "1", "--", "/usr/bin/id", "-un"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "daemon\n");
  const std::string hooks = folder_.path() + "/hooks";
  EXPECT_TRUE(eventually([&] {
    return read_file(hooks) == "prolog root daemon\nepilog root daemon\n";
  })) << read_file(hooks);
}

TEST_F(Service, JobsOutliveBothAndAreKnownAfterwards) {
  const std::string id = submit("until [ -e " + flag() + " ]; do sleep 0.02; done; exit 7");
  ASSERT_TRUE(eventually([&] { return daemon_->job(id)["state"] == "RUNNING"; }));
  for (int round = 0; round < 3; ++round) {
    kill_launcher();
    daemon_->kill_now();
    start_launcher();
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    EXPECT_EQ(daemon_->job(id)["state"], "RUNNING");
  }
  kill_launcher();
  start_launcher();
  std::ofstream(flag()).flush();
  EXPECT_TRUE(eventually([&] { return daemon_->job(id)["exit_code"] == 7; })) << daemon_->job(id);
  EXPECT_EQ(daemon_->job(id)["attempts"].size(), 1U);
}

}  // namespace
}  // namespace gpu_platform::e2e
