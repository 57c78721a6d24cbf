#include "shims/steps/step_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace gpu_platform::shims {
namespace {

// The exit code of a process that watches, because the watch keeps its signals and its children.
int code_of(const std::function<int()>& watching) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(watching());
  int status = 0;
  if (process < 0 || ::waitpid(process, &status, 0) != process || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// A task that leads a group and never ends by itself.
void add_task(StepWatch& watch, std::uint32_t rank) {
  const pid_t task = ::fork();
  if (task == 0) {
    std::signal(SIGINT, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpgid(0, 0);
    while (true) ::pause();
  }
  ::setpgid(task, task);
  watch.add(rank, task);
}

TEST(StepWatch, EndsTheTasksAtTheLimit) {
  EXPECT_EQ(code_of([] {
              WatchRules rules;
              rules.seconds = 1;
              auto watch = StepWatch::begin(rules);
              if (!watch) return 1;
              add_task(*watch, 0);
              TaskStreams streams({});
              const int code = watch->wait(streams);
              return watch->has_timed_out() ? code : 2;
            }),
            143);
}

// What becomes of two tasks after srun, outside of the job, has said this much and gone, or stayed.
int code_after(const std::string& words, bool stays,
               OnInterrupt on_interrupt = OnInterrupt::kTell) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const Connection caller(ends[0]);
  const int code = code_of([&] {
    WatchRules rules;
    rules.caller = &caller;
    rules.on_interrupt = on_interrupt;
    auto watch = StepWatch::begin(rules);
    if (!watch) return 1;
    for (const std::uint32_t rank : {0U, 1U}) add_task(*watch, rank);
    if (::write(ends[1], words.data(), words.size()) != static_cast<ssize_t>(words.size()))
      return 1;
    if (!stays) ::shutdown(ends[1], SHUT_WR);
    TaskStreams streams({});
    const int ended = watch->wait(streams);
    return watch->has_timed_out() ? 2 : ended;
  });
  ::close(ends[1]);
  return code;
}

TEST(StepWatch, SignalsOfSrunOutsideOfTheJobMeanWhatTheyMeanInSlurm) {
  const auto signal = [](int number) { return "signal " + std::to_string(number) + "\n"; };
  EXPECT_EQ(code_after(signal(SIGUSR1), true), 128 + SIGUSR1);
  EXPECT_EQ(code_after(signal(SIGTERM), true), 128 + SIGKILL);
  EXPECT_EQ(code_after(signal(SIGHUP), true), 128 + SIGKILL);
  EXPECT_EQ(code_after(signal(SIGQUIT), true), 128 + SIGKILL);
  EXPECT_EQ(code_after(signal(SIGINT) + signal(SIGINT), true), 128 + SIGINT);
  EXPECT_EQ(code_after(signal(SIGINT), true, OnInterrupt::kEnd), 128 + SIGINT);
  EXPECT_EQ(code_after(signal(SIGINT), true, OnInterrupt::kPassOn), 128 + SIGINT);
  EXPECT_EQ(code_after(signal(SIGINT) + signal(SIGCONT) + signal(SIGALRM) + signal(SIGUSR2), true),
            128 + SIGUSR2)
      << "those before change nothing";
}

TEST(StepWatch, TheTasksEndWithSrunOutsideOfTheJob) {
  EXPECT_EQ(code_after("", false), 128 + SIGTERM);
  EXPECT_EQ(code_after("what\nsignal x\nsignal 999\n", false), 128 + SIGTERM)
      << "words that make no sense are none";
}

}  // namespace
}  // namespace gpu_platform::shims
