// A user's job on an emulated node, whose mount namespace it may arrange as it likes: nothing in it
// is run with the launcher's rights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;

// Who attacks: a job of an ordinary user, in a user namespace of its own. What is tried: a program
// of the platform is covered by one of the user's, which an exec session would then run as root.
// What refuses it: boards are told of processes by the daemon, and the node part runs nothing
// there.
TEST(AttackOnABoard, ProgramCoveredInTheJobsMountNamespaceIsNotRunAsRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: a launcher that may switch users";
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  chmod(daemon.directory().c_str(), 0755);
  const TemporaryDirectory folder;
  chmod(folder.path().c_str(), 0777);
  const std::string trap = folder.path() + "/trap";
  const std::string marks = folder.path() + "/marks";
  std::ofstream(trap) << "#!/bin/sh\nid >> " << marks << "\n";
  chmod(trap.c_str(), 0755);
  std::string covers;
  for (const char* name : {"gpu-emulator-register", "gpu-emulator", "gpu-platform-node"}) {
    covers += "mount --bind " + trap + " " + program(name) + " && ";
  }
  const std::string script =
      "exec unshare -Urm sh -c '" + covers + "touch " + folder.path() + "/ready; exec sleep 1000'";
  const Finished submitted = daemon.cli({"submit", "--user", "backup", "--gpus", "1", "--workdir",
                                         folder.path(), "--", "/bin/sh", "-c", script});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  if (!eventually([&] {
        return access((folder.path() + "/ready").c_str(), F_OK) == 0 ||
               daemon.job(id)["state"] == "FAILED";
      })) {
    FAIL() << daemon.job(id);
  }
  if (daemon.job(id)["state"] == "FAILED") GTEST_SKIP() << "no user namespaces on this host";
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  const Finished entered = daemon.cli(
      {"jobs", "exec", id, "--", "/bin/sh", "-c", "id -u; grep CapEff /proc/self/status"});
  EXPECT_EQ(entered.exit_code, 0) << entered.err;
  EXPECT_THAT(entered.out, HasSubstr("34\n"));
  EXPECT_THAT(entered.out, HasSubstr("0000000000000000"));
  EXPECT_EQ(read_file(marks), "");
  daemon.cli({"jobs", "kill", id});
}

}  // namespace
}  // namespace gpu_platform::e2e
