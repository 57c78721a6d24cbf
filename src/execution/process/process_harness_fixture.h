#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "execution/engine_harness_fixture.h"
#include "execution/process/attempt_files.h"
#include "execution/process/engine_fixture.h"

namespace gpu_platform::execution::testing {

// Processes of this host for the suite of all engines. What a job does is a shell's script, which
// leaves its traces in the job's directory. The fixture is no test here, but sets up the engine.
class ProcessHarness : public EngineHarness, protected EngineTest {
 public:
  explicit ProcessHarness(Mode mode) : EngineTest(mode) {}
  ~ProcessHarness() override { TearDown(); }

  std::string open() override {
    if (geteuid() != 0) return "needs root: cgroups and other users";
    SetUp();
    if (engine_ == nullptr) ADD_FAILURE() << "no engine";
    return {};
  }
  Engine& engine() override { return *engine_; }
  void close() override { close_engine(); }
  void reopen() override { open_engine(); }

  StartOrder order(std::uint64_t job, const Act& act) override {
    if (act.kind == Act::Kind::kMissing) return EngineTest::order(job, {"/no/such/program"});
    return shell(job, script_of(fmt::format("{}-1", job), act));
  }
  void let_end(model::AttemptId attempt) override { make_file(trace(attempt, "go")); }
  void kill_supervisor(model::AttemptId attempt) override {
    kill(static_cast<pid_t>(supervisor_pid(attempt)), SIGKILL);
  }

  bool wait_until(const std::function<bool()>& condition) override { return eventually(condition); }
  Told told(model::AttemptId attempt) const override { return observed_->of(attempt); }
  int runs(model::AttemptId attempt) const override {
    const std::string lines = read(trace(attempt, "runs"));
    return static_cast<int>(std::ranges::count(lines, '\n'));
  }
  bool is_ready(model::AttemptId attempt) const override { return has(trace(attempt, "ready")); }
  bool has_got_usr1(model::AttemptId attempt) const override {
    return has(trace(attempt, "signal"));
  }
  bool is_over(model::AttemptId attempt) const override {
    const auto beginning = read_attempt(folder(), attempt).record.beginning;
    return beginning && !is_alive(static_cast<int>(beginning->supervisor_pid));
  }
  bool is_forgotten(model::AttemptId attempt) const override {
    return !read_attempt(folder(), attempt).exists;
  }

 private:
  void TestBody() override {}

  std::string trace(model::AttemptId attempt, const std::string& what) const {
    return path(fmt::format("{}-{}.{}", attempt.job.value, attempt.attempt, what));
  }
  static bool has(const std::string& file) { return access(file.c_str(), F_OK) == 0; }
  static void make_file(const std::string& file) {
    ::close(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  }

  // The first process of a container ignores signals without a handler, also its own: a child
  // crashes for it.
  static std::string script_of(const std::string& attempt, const Act& act) {
    const std::string begin = fmt::format("echo run >> {}.runs; ", attempt);
    const std::string ready = fmt::format("echo > {}.ready; ", attempt);
    switch (act.kind) {
      case Act::Kind::kEnds:
        return begin + fmt::format("exit {}", act.code);
      case Act::Kind::kWaits:
        return begin + fmt::format("trap 'echo > {}.signal' USR1; ", attempt) + ready +
               fmt::format("until test -e {}.go; do sleep 0.02; done; exit {}", attempt, act.code);
      case Act::Kind::kObeysTerm:
        return begin + "trap 'exit 143' TERM; " + ready + "while :; do sleep 0.02; done";
      case Act::Kind::kIgnoresTerm:
        return begin + "trap '' TERM; " + ready + "while :; do sleep 0.02; done";
      case Act::Kind::kCrashes:
        return begin + "kill -SEGV $$; sh -c 'kill -SEGV $$'; exit $?";
      case Act::Kind::kMissing:
        break;
    }
    return {};
  }
};

}  // namespace gpu_platform::execution::testing
