// Accounts of the system at every door: those that Debian gives numbers above 1000, those of the
// platform itself, and the one for what belongs to no user. None of them has a job or a token.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;

// The host with more accounts, as the daemon sees it.
class AccountsOfTheSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a launcher that may switch users";
    if (run_command({"/usr/bin/unshare", "--mount", "/bin/true"}).exit_code != 0) {
      GTEST_SKIP() << "no mount namespace can be made, for an /etc/passwd of its own";
    }
    std::ofstream accounts(passwd());
    for (const std::string& line : lines_of(read_file("/etc/passwd"))) {
      if (line.find(":64030:") == std::string::npos) accounts << line << "\n";
    }
    accounts << "gp-slurm:x:64030:34::/:/usr/sbin/nologin\n"
             << "gp-ann:x:23456:34::/:/bin/sh\n"
             << "gp-far:x:1234567:34::/:/bin/sh\n"
             << "gp-short:x:65535:34::/:/bin/sh\n";
    accounts.close();
    chmod(passwd().c_str(), 0644);
  }
  std::string passwd() const { return folder_.path() + "/passwd"; }

  void start(const std::string& execution) {
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .config = "execution:\n" + execution,
        .prefix = {"/usr/bin/unshare", "--mount", "--propagation", "slave", "/bin/sh", "-c",
                   "mount --bind \"$0\" /etc/passwd && exec \"$@\"", passwd()}});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }
  Finished submitted(const std::string& user) const {
    return daemon_->cli({"submit", "--gpus", "0", "--user", user, "--workdir", "/", "--wait", "--",
                         "/usr/bin/id", "-u"});
  }
  void expect_user(const std::string& user) {
    const Finished done = submitted(user);
    EXPECT_EQ(done.exit_code, 0) << user << done.err;
    const Finished made = token_of(user);
    EXPECT_EQ(made.exit_code, 0) << user << made.err;
  }
  void expect_refused(const std::string& user, const std::string& why) {
    for (const Finished& refused : {submitted(user), token_of(user)}) {
      EXPECT_NE(refused.exit_code, 0) << user << refused.out;
      EXPECT_THAT(refused.err, HasSubstr("is an account of the system" + why)) << user;
    }
  }
  Finished token_of(const std::string& user) {
    return daemon_->cli({"token", "create", "--user", user, "--name", "t", "-q"});
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(AccountsOfTheSystem, HaveNoJobsAndNoTokens) {
  start("  min_uid: 1000\n");
  expect_user("gp-ann");
  expect_refused("backup", ", below 1000 (execution.min_uid");
  expect_refused("gp-slurm", ", above 60000");
  expect_refused("gp-far", ", above 60000");
  expect_refused("nobody", ", for what belongs to no user");
}

TEST_F(AccountsOfTheSystem, HaveNoneWhereTheSitesDirectoryHasHigherNumbers) {
  start("  min_uid: 20000\n  max_uid: 2000000\n");
  expect_user("gp-ann");
  expect_user("gp-far");
  expect_refused("backup", ", below 20000");
  expect_refused("nobody", ", for what belongs to no user");
  for (const Finished& refused : {submitted("gp-short"), token_of("gp-short")}) {
    EXPECT_THAT(refused.err, HasSubstr("65535 is not a user"));
  }
}

TEST_F(AccountsOfTheSystem, ARangeWithoutAUserIsAMistake) {
  Daemon daemon{{.config = "execution:\n  min_uid: 5000\n  max_uid: 4000\n"}};
  EXPECT_FALSE(daemon.start());
  EXPECT_THAT(daemon.log(), HasSubstr("execution.min_uid: 5000 is above execution.max_uid"));
}

}  // namespace
}  // namespace gpu_platform::e2e
