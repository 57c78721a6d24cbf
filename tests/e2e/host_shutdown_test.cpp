// The host shuts down in the middle of jobs: the first process becomes systemd's last program and
// ends all others, the daemon's too. Here the first process is that of a PID namespace, and each
// start has a boot id of its own. What ran was lost with its node, also if it ignored SIGTERM, and
// is queued again.

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

// The arguments: our folder, then the daemon's command line. It ends when nothing else is left.
constexpr const char* kFirstProcess = R"(
folder=$1; shift
mount --bind "$folder/boot-id" /proc/sys/kernel/random/boot_id || exit 1
"$@" &
until [ -e "$folder/go-down" ]; do sleep 0.2; done
printf systemd-shutdow >/proc/self/comm
kill -TERM -1
set -- /proc/[0-9]*
until [ $# = 1 ]; do wait; sleep 0.2; set -- /proc/[0-9]*; done
)";

class HostShutdown : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a PID namespace with a boot id of its own";
    if (run_command({"unshare", "--mount", "true"}).exit_code != 0)
      GTEST_SKIP() << "no mount namespace can be made";
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  Daemon make_daemon() const {
    return Daemon({.prefix = {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                              "/bin/sh", "-c", kFirstProcess, "init", folder_.path()}});
  }
  // The first attempt says that it runs and waits for what is to come; the second does well.
  std::string submit(const Daemon& daemon, const std::string& name, const std::string& trap) const {
    return daemon.submit({"--gpus", "1", "--", "/bin/sh", "-c",
                          "[ $GPU_PLATFORM_ATTEMPT = 1 ] || exit 0; trap '" + trap +
                              "' TERM; touch " + path(name) + "; while :; do sleep 0.2; done"});
  }
  bool runs(const std::string& name) const {
    return eventually([&] { return access(path(name).c_str(), F_OK) == 0; });
  }

  TemporaryDirectory folder_;
};

TEST_F(HostShutdown, WhatRanIsLostWithItsNodeAndQueuedAgain) {
  write("boot-id", "11111111-1111-4111-8111-111111111111\n");
  Daemon daemon = make_daemon();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const std::string plain = submit(daemon, "plain", "-");
  const std::string failing = submit(daemon, "failing", "exit 7");
  const std::string saving = submit(daemon, "saving", "exit 0");
  for (const char* name : {"plain", "failing", "saving"}) ASSERT_TRUE(runs(name)) << name;
  const std::string earlier = daemon.submit({"--gpus", "1", "--", "/bin/false"});
  ASSERT_TRUE(daemon.reaches(earlier, "FAILED"));
  // Takes all GPUs of the node, so it waits until the others are lost.
  const std::string waits = daemon.submit({"--gpus", "8", "--", "/bin/true"});

  write("go-down", "");
  daemon.wait_for_exit();
  ASSERT_EQ(unlink(path("go-down").c_str()), 0);
  write("boot-id", "22222222-2222-4222-8222-222222222222\n");
  ASSERT_TRUE(daemon.start()) << daemon.log();

  for (const std::string& id : {plain, failing, saving}) {
    EXPECT_TRUE(daemon.reaches(id, "COMPLETED")) << daemon.job(id).dump(1);
    const auto job = daemon.job(id);
    ASSERT_EQ(job["attempts"].size(), 2u) << job.dump(1);
    EXPECT_EQ(job["attempts"][0]["lost"], "NODE_LOST") << job.dump(1);
  }
  EXPECT_TRUE(daemon.reaches(waits, "COMPLETED"));
  EXPECT_EQ(daemon.job(waits)["attempts"].size(), 1u) << daemon.job(waits).dump(1);
  EXPECT_EQ(daemon.job(earlier)["state"], "FAILED");
  EXPECT_EQ(daemon.job(earlier)["attempts"].size(), 1u);
}

}  // namespace
}  // namespace gpu_platform::e2e
