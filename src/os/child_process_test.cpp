#include "os/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/descriptor.h"

namespace gpu_platform::os {
namespace {

using ::testing::HasSubstr;

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

// What the shell prints that runs the script.
std::string said_by(const std::string& script, ChildProgram child = {}) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  child.words = {"/bin/sh", "-c", script};
  child.output = theirs.get();
  const auto pid = start_child_process(child);
  EXPECT_TRUE(pid.has_value());
  theirs.reset();
  std::string text = read_all(ours.get());
  int status = 0;
  EXPECT_EQ(::waitpid(pid.value_or(-1), &status, 0), pid.value_or(-1));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

TEST(ChildProcess, HasAllSignalsAsNew) {
  struct sigaction before{};
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR2, &ignore, &before);
  sigset_t blocked;
  sigset_t mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  const std::string said = said_by("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\n'");
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGUSR2, &before, nullptr);
  std::uint64_t in_blocked = 1;
  std::uint64_t in_ignored = 1;
  ASSERT_EQ(std::sscanf(said.c_str(), "SigBlk: %lxSigIgn: %lx", &in_blocked, &in_ignored), 2)
      << said;
  EXPECT_EQ(in_blocked, 0U);
  // The C library keeps two signals to itself, which it always has ignored.
  EXPECT_EQ(in_ignored & ~(std::uint64_t{3} << 31), 0U);
}

TEST(ChildProcess, LeadsAGroupOrASession) {
  // Of /proc/PID/stat behind the name: state, parent, group, session.
  const std::string show = "set -- $(cat /proc/$$/stat); echo $(($5 == $$)) $(($6 == $$))";
  EXPECT_EQ(said_by(show), "1 0\n");
  EXPECT_EQ(said_by(show, {.leads_session = true}), "1 1\n");
}

TEST(ChildProcess, HasNoDescriptorThatIsNotNamed) {
  const Descriptor kept(::open("/dev/zero", O_RDONLY));  // without close-on-exec
  ASSERT_GT(kept.get(), 2);
  // The list has that of the folder itself.
  const std::string list = "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0";
  EXPECT_EQ(said_by(list), "0 1 2 3 /dev/null\n");
  EXPECT_EQ(said_by("readlink /proc/self/fd/3; readlink /proc/self/fd/0",
                    {.input = kept.get(), .link = kept.get()}),
            "/dev/zero\n/dev/zero\n");
}

TEST(ChildProcess, TakesDescriptorsWhoseNumbersAreItsOwn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor ours(ends[0]);
  {
    const Descriptor theirs(ends[1]);
    // Its output becomes its errors, too, and its link is a number that it uses itself.
    ChildProgram child{.words = {"/bin/sh", "-c", "echo a; echo b >&2; echo c >&3"}};
    child.output = child.errors = theirs.get();
    child.link = theirs.get();
    const auto pid = start_child_process(child);
    ASSERT_TRUE(pid);
    ::waitpid(*pid, nullptr, 0);
  }
  EXPECT_EQ(read_all(ours.get()), "a\nb\nc\n");
}

TEST(ChildProcess, HasOurEnvironmentOrItsOwn) {
  ::setenv("GP_CHILD_TEST", "ours", 1);
  EXPECT_EQ(said_by("echo $GP_CHILD_TEST"), "ours\n");
  EXPECT_EQ(said_by("echo $GP_CHILD_TEST", {.environment = {{"GP_CHILD_TEST=its"}}}), "its\n");
  EXPECT_EQ(said_by("echo $GP_CHILD_TEST", {.environment = std::vector<std::string>()}), "\n");
  ::unsetenv("GP_CHILD_TEST");
}

TEST(ChildProcess, SaysWhyItDoesNotStart) {
  const auto none = start_child_process({.words = {"/no/such/program"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), ENOENT);
  const auto folder = start_child_process({.words = {"/"}});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error(), EACCES);
  EXPECT_FALSE(start_child_process({.words = {"sh"}}));
  const auto found = start_child_process({.words = {"sh", "-c", "exit 3"}, .searches_path = true});
  ASSERT_TRUE(found);
  int status = 0;
  ::waitpid(*found, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace
}  // namespace gpu_platform::os
