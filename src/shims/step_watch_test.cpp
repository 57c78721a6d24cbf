#include "shims/step_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_platform::shims {
namespace {

// In a process of its own, because the watch keeps its signals.
TEST(StepWatch, KillsTheTasksAtTheLimit) {
  const pid_t step = ::fork();
  ASSERT_GE(step, 0);
  if (step == 0) {
    WatchRules rules;
    rules.seconds = 1;
    auto watch = StepWatch::begin(rules);
    if (!watch) ::_exit(1);
    const pid_t task = ::fork();
    if (task == 0) {
      ::setpgid(0, 0);
      while (true) ::pause();
    }
    watch->add(0, task);
    TaskStreams streams({});
    ::_exit(watch->wait(streams));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(step, &status, 0), step);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 137);
}

}  // namespace
}  // namespace gpu_platform::shims
