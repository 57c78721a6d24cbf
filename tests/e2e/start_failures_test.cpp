// Jobs that cannot be started: refused where that is known beforehand, else ended at once with a
// reason, and never tried again and again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::HasSubstr;

class StartFailures : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  nlohmann::json ended(std::vector<std::string> options, const std::vector<std::string>& command) {
    options.insert(options.begin(), {"submit", "--no-check", "--gpus", "0", "--retries", "3"});
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    const Finished submitted = daemon_.cli(options);
    EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
    daemon_.cli({"jobs", "wait", id});
    return daemon_.job(id);
  }

  Daemon daemon_;
};

TEST_F(StartFailures, MissingProgramEndsWith127InOneAttempt) {
  const auto job = ended({}, {"/no/such/program"});
  EXPECT_EQ(job["state"], "FAILED");
  EXPECT_EQ(job["exit_code"], 127);
  EXPECT_EQ(job["reason"], "LAUNCH_FAILED");
  EXPECT_EQ(job["attempts"].size(), 1u);
  EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr("/no/such/program: No such file"));
}

TEST_F(StartFailures, ProgramThatMayNotBeExecutedEndsWith126InOneAttempt) {
  const auto job = ended({}, {"/etc/passwd"});
  EXPECT_EQ(job["exit_code"], 126);
  EXPECT_EQ(job["attempts"].size(), 1u);
  EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr("Permission denied"));
}

TEST_F(StartFailures, DirectoryThatItsUserMayNotEnterEndsWith126InOneAttempt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string closed = daemon_.directory() + "/closed";
  ASSERT_EQ(mkdir(closed.c_str(), 0700), 0);
  const auto job = ended({"--user", "backup", "--workdir", closed}, {"/bin/true"});
  EXPECT_EQ(job["exit_code"], 126);
  EXPECT_EQ(job["attempts"].size(), 1u);
  EXPECT_THAT(job["detail"].get<std::string>(), HasSubstr("closed: Permission denied"));
}

TEST_F(StartFailures, UserWhoDoesNotExistIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may name another user";
  const Finished refused =
      daemon_.cli({"submit", "--gpus", "0", "--user", "no-such-user", "--", "/bin/true"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("user: there is no user 'no-such-user'"));
}

TEST_F(StartFailures, EnvironmentThatIsTooLargeIsRefusedWithTheLimit) {
  std::vector<std::string> environment;
  for (int i = 0; i < 15; ++i) {
    environment.push_back("LARGE_" + std::to_string(i) + "=" + std::string(100'000, 'x'));
  }
  const Finished refused = daemon_.cli({"submit", "--gpus", "0", "--", "/bin/true"}, environment);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("environment"));
  EXPECT_EQ(daemon_.json({"jobs", "list", "--all"})["jobs"].size(), 0u);
}

}  // namespace
}  // namespace gpu_platform::e2e
