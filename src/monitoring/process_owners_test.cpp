#include "monitoring/process_owners.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_platform::monitoring {
namespace {

const ProcessOwners::AttemptOfPid kNobody = [](std::uint64_t) {
  return std::optional<model::AttemptId>();
};

TEST(ProcessOwners, ACgroupBelowOursNamesItsAttempt) {
  const std::string_view prefix = "/gpu-platform-a1/";
  const auto attempt = attempt_of_cgroup("2:cpu:/\n0::/gpu-platform-a1/42-3\n", prefix);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->job.value, 42U);
  EXPECT_EQ(attempt->attempt, 3U);
  EXPECT_TRUE(attempt_of_cgroup("0::/gpu-platform-a1/42-3/inner\n", prefix));
}

TEST(ProcessOwners, OtherCgroupsNameNone) {
  const std::string_view prefix = "/gpu-platform-a1/";
  for (const char* text :
       {"0::/\n", "", "0::/gpu-platform-b2/42-3\n", "0::/gpu-platform-a1/node\n",
        "0::/gpu-platform-a1/42\n", "0::/gpu-platform-a1/42-\n", "0::/gpu-platform-a1/42-3x\n",
        "0::/gpu-platform-a1/99999999999999999999999-1\n"}) {
    EXPECT_FALSE(attempt_of_cgroup(text, prefix)) << text;
  }
  EXPECT_FALSE(attempt_of_cgroup("0::/42-3\n", "")) << "where jobs have no cgroups";
}

TEST(ProcessOwners, AnMpsServerOfOursIsKnownByItsCgroup) {
  const std::string_view prefix = "/gpu-platform-a1/";
  EXPECT_TRUE(is_cgroup_of_server("0::/gpu-platform-a1/mps-1001-GPU-7\n", prefix));
  EXPECT_FALSE(is_cgroup_of_server("0::/gpu-platform-a1/42-1/mps-1001\n", prefix))
      << "a job may name a cgroup of its own so";
  EXPECT_FALSE(is_cgroup_of_server("0::/mps-1001\n", prefix));
  EXPECT_FALSE(is_cgroup_of_server("0::/mps-1001\n", ""));
}

TEST(ProcessOwners, AProcessOfThisTestBelongsToItsUserAndToNoJob) {
  host::UserDirectory users;
  ProcessOwners owners("/sys/fs/cgroup/gpu-platform-none", users);
  const ProcessOwner owner = owners.find(static_cast<std::uint32_t>(getpid()), kNobody);
  EXPECT_TRUE(owner.exists);
  EXPECT_FALSE(owner.user.empty());
  EXPECT_FALSE(owner.command.empty());
  EXPECT_FALSE(owner.attempt);
}

TEST(ProcessOwners, AnAncestorThatIsAnAttemptsFirstProcessTells) {
  char program[] = "/bin/sleep";
  char time[] = "1000";
  char* arguments[] = {program, time, nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
  host::UserDirectory users;
  ProcessOwners owners("", users);
  const model::AttemptId attempt{model::JobId(7), 1};
  const ProcessOwner owner = owners.find(static_cast<std::uint32_t>(child), [&](std::uint64_t pid) {
    return pid == static_cast<std::uint64_t>(getpid()) ? std::optional(attempt) : std::nullopt;
  });
  EXPECT_EQ(owner.attempt, attempt);
  EXPECT_FALSE(owners.find(static_cast<std::uint32_t>(child), {}).attempt)
      << "it is in no cgroup of an attempt";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(owners.find(static_cast<std::uint32_t>(child), kNobody).exists);
}

}  // namespace
}  // namespace gpu_platform::monitoring
