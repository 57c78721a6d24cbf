// Programs around a job, through the whole platform: the site's prolog and epilog, as root, and the
// user's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Prolog : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: the site's programs are root's";
    chmod(site_.path().c_str(), 0755);
  }

  std::string file(const std::string& name) const { return site_.path() + "/" + name; }
  // A shell script with these lines; its path.
  std::string program(const std::string& name, const std::string& lines) const {
    std::ofstream(file(name)) << "#!/bin/sh\n" << lines << "\n";
    chmod(file(name).c_str(), 0755);
    return file(name);
  }
  std::string to_log(const std::string& what) const {
    return "echo " + what + " >> " + file("log") + "; ";
  }
  std::string log() const { return read_file(file("log")); }
  bool wait_for(const std::string& name) const {
    return eventually([&] { return std::filesystem::exists(file(name)); });
  }

  static std::string config(const std::string& execution) {
    return "fault_tolerance:\n  retry_backoff: 0s\n  max_retry_backoff: 0s\nexecution:\n" +
           execution;
  }
  // A daemon whose launcher runs programs of these lines; empty: none.
  Daemon& with(const std::string& prolog, const std::string& epilog) {
    std::string keys = "  private_tmp: true\n";
    if (!prolog.empty()) keys += "  prolog: " + program("prolog", prolog) + "\n";
    if (!epilog.empty()) keys += "  epilog: " + program("epilog", epilog) + "\n";
    daemon_ = std::make_unique<Daemon>(DaemonOptions{.config = config(keys)});
    EXPECT_TRUE(daemon_->start()) << daemon_->log();
    return *daemon_;
  }
  std::string submit(const std::string& script, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments{"submit", "--workdir", site_.path()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
    const Finished submitted = daemon_->cli(arguments);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    return submitted.out.substr(0, submitted.out.find('\n'));
  }
  nlohmann::json ended(const std::string& id) {
    daemon_->cli({"jobs", "wait", id});
    return daemon_->job(id);
  }
  bool comes_to(const std::string& id, const std::string& state) {
    return eventually([&] { return daemon_->job(id)["state"] == state; });
  }
  nlohmann::json node() { return daemon_->json({"status"})["nodes"][0]; }
  std::string gpu_state(std::size_t index) {
    return daemon_->json({"status"})["gpus"][index]["state"].get<std::string>();
  }

  TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(Prolog, OfTheSiteIsRootInTheJobsCgroupAndKnowsTheJob) {
  const std::string tell = "{ id -u; cat /proc/self/cgroup; env; } > ";
  with(tell + file("before"), tell + file("after"));
  const std::string id =
      submit("id -u; cat /proc/self/cgroup; exit 3",
             {"--gpus", "1", "--user", "backup", "--workdir", "/", "--env", "LD_PRELOAD=/none.so"});
  const nlohmann::json job = ended(id);
  EXPECT_EQ(job["exit_code"], 3);
  ASSERT_TRUE(wait_for("after"));
  ASSERT_TRUE(eventually([&] { return daemon_->processes("gp-supervisor").empty(); }));
  const std::string uuid = job["attempts"][0]["gpus"][0]["uuid"].get<std::string>();
  const std::string index = job["attempts"][0]["gpus"][0]["index"].dump();
  for (const std::string& text : {read_file(file("before")), read_file(file("after"))}) {
    EXPECT_TRUE(text.starts_with("0\n")) << text;
    EXPECT_THAT(text, HasSubstr("/" + id + "-1\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_JOB_ID=" + id + "\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_USER=backup\n"));
    EXPECT_THAT(text, HasSubstr("CUDA_VISIBLE_DEVICES=" + index + "\n"));
    EXPECT_THAT(text, HasSubstr("GPU_PLATFORM_GPU_UUIDS=" + uuid + "\n"));
    EXPECT_THAT(text, Not(HasSubstr("LD_PRELOAD")));
  }
  EXPECT_THAT(read_file(file("after")), HasSubstr("GPU_PLATFORM_EXIT_CODE=3\n"));
}

TEST_F(Prolog, ThatFailsRequeuesTheJobAndHoldsItAfterThreeTimes) {
  with("test -e " + file("well") + " || { echo not well; exit 7; }", "");
  const std::string id = submit("true", {"--gpus", "1"});
  ASSERT_TRUE(comes_to(id, "HELD")) << daemon_->job(id).dump(2);
  nlohmann::json job = daemon_->job(id);
  EXPECT_EQ(job["wait_reason"]["code"], "HELD_BY_PLATFORM");
  ASSERT_EQ(job["attempts"].size(), 3U);
  EXPECT_EQ(job["attempts"][2]["reason"], "PROLOG_FAILED");
  EXPECT_EQ(job["attempts"][2]["detail"], "the site's prolog: exit code 7: not well");
  EXPECT_EQ(job["losses"], 0);
  EXPECT_EQ(job["failures"], 0);
  EXPECT_EQ(node()["state"], "UP");  // of one job alone
  std::ofstream(file("well")) << "";
  EXPECT_EQ(daemon_->cli({"jobs", "release", id}).exit_code, 0);
  job = ended(id);
  EXPECT_EQ(job["state"], "COMPLETED");
  EXPECT_EQ(job["attempts"].size(), 4U);
  EXPECT_THAT(daemon_->log(), HasSubstr("the site's prolog: exit code 7: not well"));
}

TEST_F(Prolog, ThatFailsForTwoJobsInARowDrainsTheNode) {
  with("exit 1", "");
  const std::string first = submit("true", {"--gpus", "1"});
  ASSERT_TRUE(comes_to(first, "HELD"));
  const std::string second = submit("true", {"--gpus", "1"});
  ASSERT_TRUE(eventually([&] { return node()["state"] == "DRAINING"; })) << node().dump(2);
  EXPECT_THAT(node().dump(), HasSubstr("the site's prolog failed for jobs " + first + " and " +
                                       second + " in a row: "));
  EXPECT_TRUE(comes_to(second, "QUEUED"));
  program("prolog", "exit 0");
  EXPECT_EQ(daemon_->cli({"online", "--node", node()["name"].get<std::string>()}).exit_code, 0);
  EXPECT_EQ(ended(second)["state"], "COMPLETED");
}

TEST_F(Prolog, ThatTakesTooLongIsKilledAndAStopDoesNotWaitForIt) {
  daemon_ = std::make_unique<Daemon>(DaemonOptions{
      .config = config("  prolog: " + program("prolog", "touch " + file("begun") + "; sleep 1000") +
                       "\n  prolog_timeout: 1s\n")});
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  const std::string slow = submit(to_log("command"));
  ASSERT_TRUE(comes_to(slow, "HELD"));
  EXPECT_THAT(daemon_->job(slow)["attempts"][0]["detail"].dump(), HasSubstr("not done after 1 s"));
  daemon_->terminate();
  with("touch " + file("begun-2") + "; sleep 1000", "");
  const std::string id = submit(to_log("command"));
  ASSERT_TRUE(wait_for("begun-2"));
  EXPECT_EQ(daemon_->job(id)["state"], "STARTING");
  daemon_->cli({"jobs", "cancel", id});
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
  EXPECT_EQ(log(), "");
}

TEST_F(Prolog, NoGpuIsGivenOnBeforeTheEpilogHasEnded) {
  ASSERT_EQ(mkfifo(file("gate").c_str(), 0600), 0);
  with("", "touch " + file("begun") + "; cat " + file("gate"));
  const std::string first = submit("true", {"--gpus", "8"});
  ASSERT_TRUE(wait_for("begun"));
  EXPECT_EQ(ended(first)["state"], "COMPLETED");
  EXPECT_EQ(gpu_state(0), "CLEANING");
  const std::string second = submit("true", {"--gpus", "1"});
  EXPECT_EQ(daemon_->job(second)["wait_reason"]["code"], "NO_CAPACITY");
  program("epilog", "exit 0");
  std::ofstream(file("gate")) << "go\n";
  EXPECT_EQ(ended(second)["state"], "COMPLETED");
}

TEST_F(Prolog, TheEpilogRunsAfterACancelAtTheTimeLimitAndWithoutADaemon) {
  with("", to_log("$GPU_PLATFORM_JOB_ID $GPU_PLATFORM_END"));
  const std::string cancelled = submit("touch " + file("one") + "; sleep 1000");
  ASSERT_TRUE(wait_for("one"));
  daemon_->cli({"jobs", "cancel", cancelled});
  EXPECT_EQ(ended(cancelled)["state"], "CANCELLED");
  const std::string limited = submit("sleep 1000", {"--time", "1s"});
  EXPECT_EQ(ended(limited)["state"], "TIMED_OUT");
  ASSERT_EQ(mkfifo(file("gate").c_str(), 0600), 0);
  const std::string alone = submit("touch " + file("two") + "; cat " + file("gate") + "; exit 5");
  ASSERT_TRUE(wait_for("two"));
  daemon_->kill_now();
  std::ofstream(file("gate")) << "go\n";
  const std::string told =
      cancelled + " STOPPED\n" + limited + " TIME_LIMIT\n" + alone + " FAILED\n";
  EXPECT_TRUE(eventually([&] { return log() == told; })) << log();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_EQ(ended(alone)["exit_code"], 5);
  EXPECT_TRUE(eventually([&] { return daemon_->processes("gp-supervisor").empty(); }));
  EXPECT_TRUE(
      eventually([&] { return std::filesystem::is_empty(daemon_->node_folder() + "/attempts"); }));
}

TEST_F(Prolog, ThatOthersCouldChangeIsRefusedAtTheStart) {
  const std::string prolog = program("prolog", "exit 0");
  chmod(prolog.c_str(), 0777);
  Daemon daemon({.config = config("  prolog: " + prolog + "\n")});
  EXPECT_FALSE(daemon.start());
  EXPECT_THAT(daemon.log(),
              HasSubstr("execution.prolog: " + prolog + " can be written to by others"));
  const Finished launcher =
      run_command({e2e::program("gpu-platform-node"), "launcher", "--root", site_.path(),
                   "--listen", file("socket"), "--prolog", prolog});
  EXPECT_EQ(launcher.exit_code, 1);
  EXPECT_THAT(launcher.err, HasSubstr("prolog: " + prolog + " can be written to by others"));
}

TEST_F(Prolog, OfTheConfigurationIsRefusedWhereTheLauncherIsAService) {
  const std::string prolog = program("prolog", "exit 0");
  Daemon daemon({.config = config("  prolog: " + prolog + "\n"),
                 .arguments = {"--launcher", file("socket")}});
  EXPECT_FALSE(daemon.start());
  EXPECT_THAT(daemon.log(), HasSubstr("execution.prolog: the launcher at " + file("socket") +
                                      " is a service of its own"));
  EXPECT_THAT(daemon.log(), HasSubstr("--prolog FILE"));
  Daemon timed(
      {.config = config("  epilog_timeout: 1m\n"), .arguments = {"--launcher", file("socket")}});
  EXPECT_FALSE(timed.start());
  EXPECT_THAT(timed.log(), HasSubstr("execution.epilog_timeout: the launcher at "));
}

TEST_F(Prolog, OfTheUserFailsTheJobAndTheEpilogIsToldOfItsEnd) {
  with("", "");
  program("setup", "echo setup $(id -u) $GPU_PLATFORM_JOB_ID; exit ${SETUP:-0}");
  program("teardown", "echo teardown $GPU_PLATFORM_EXIT_CODE; exit 9");
  const std::vector<std::string> hooks{"--prolog", "setup", "--epilog", file("teardown")};
  const std::string id = submit("echo command; exit 4", hooks);
  nlohmann::json job = ended(id);
  EXPECT_EQ(job["exit_code"], 4);
  EXPECT_EQ(job["spec"]["prolog"], "setup");
  EXPECT_EQ(job["detail"], "its epilog: exit code 9");
  EXPECT_EQ(daemon_->cli({"jobs", "logs", id}).out, "setup 0 " + id + "\ncommand\nteardown 4\n");
  std::vector<std::string> failing = hooks;
  failing.insert(failing.end(), {"--env", "SETUP=6"});
  job = ended(submit(to_log("command"), failing));
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_EQ(job["exit_code"], 6);
  EXPECT_EQ(job["detail"], "its prolog: exit code 6");
  job = ended(submit(to_log("command"), {"--prolog", "/none"}));
  EXPECT_EQ(job["exit_code"], 127);
  EXPECT_THAT(job["detail"].dump(), HasSubstr("its prolog: execute /none: No such file"));
  EXPECT_EQ(log(), "");
  const Finished run = daemon_->cli(
      {"run", "--workdir", site_.path(), "--prolog", "setup", "--", "/bin/sh", "-c", "exit 3"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.out, HasSubstr("setup 0 "));
}

}  // namespace
}  // namespace gpu_platform::e2e
