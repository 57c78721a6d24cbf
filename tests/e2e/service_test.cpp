// As the packaged services run it: a launcher with root's rights that was started apart, and a
// daemon that has none, runs as a service user and reaches the launcher over its socket.

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "service_fixture.h"

namespace gpu_platform::e2e {
namespace {

class Service : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    if (IsSkipped()) return;
    start_launcher();
    start_daemon();
  }
};

TEST_F(Service, JobsRunAsWhoSubmittedThemThoughTheDaemonHasNoRights) {
  struct stat about{};
  ASSERT_EQ(stat(("/proc/" + std::to_string(daemon_->pid())).c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, getpwnam(kServiceUser)->pw_uid);
  const Finished ran = as_user({"run", "--gpus", "1", "--", "/usr/bin/id", "-un"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "daemon\n");
}

TEST_F(Service, OutputThatOnlyItsOwnerMayReadIsShownToItsOwner) {
  const std::string open_folder = folder_.path() + "/jobs/room";
  ASSERT_EQ(mkdir(open_folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(open_folder.c_str(), 1, 1), 0);
  const Finished submitted = as_user({"submit", "--output", open_folder + "/out", "--wait", "--",
                                      "/bin/sh", "-c", "umask 077; echo words"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  const Finished shown = as_user({"jobs", "logs", id});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out, "words\n");
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
  const std::string id = submit("until [ -e " + flag() + " ]; do sleep 0.2; done; exit 7");
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
