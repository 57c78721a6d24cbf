#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "shims/step_record.h"
#include "shims/task_streams.h"

// The tasks of a step until all of them have ended: limits, signals, Ctrl-C. One thread, that of
// the step's first process; its signals are blocked from begin() on.

namespace gpu_platform::shims {

// What the first Ctrl-C does.
enum class OnInterrupt { kTell, kPassOn, kEnd };

struct WatchRules {
  std::uint32_t step = 0;
  bool ends_on_failure = false;
  OnInterrupt on_interrupt = OnInterrupt::kTell;
  std::optional<std::int64_t> seconds;
  std::optional<std::int64_t> seconds_after_end;
  // The process that signals all processes of the job; what it sends is not passed on once more.
  pid_t starter = 0;
  // The one task is of srun's own process group: it has srun's terminal, and the keys of that reach
  // it without srun.
  bool shares_group = false;
};

class StepWatch {
 public:
  static base::Result<StepWatch> begin(const WatchRules& rules);
  StepWatch(StepWatch&& other) noexcept;
  StepWatch& operator=(StepWatch&&) = delete;
  // Kills the tasks that are still there.
  ~StepWatch();

  // A task, which leads a process group of its own unless it shares that of srun.
  void add(std::uint32_t rank, pid_t pid) { tasks_.emplace(pid, rank); }

  // The highest code of all tasks, 128 + n for a signal.
  int wait(TaskStreams& streams);

  // What the tasks used that have ended.
  const StepUsage& usage() const { return usage_; }

 private:
  StepWatch(const WatchRules& rules, int fd) : rules_(rules), fd_(fd) {}
  void send(int signal) const;
  void stop(const std::string& reason);
  void reap();
  void take_signals();
  void interrupted();
  void end_by_interrupt();
  int patience_ms() const;
  std::string ranks() const;

  WatchRules rules_;
  int fd_ = -1;
  std::map<pid_t, std::uint32_t> tasks_;
  StepUsage usage_;
  bool has_first_ended_ = false;
  std::optional<std::int64_t> end_ms_;
  std::string why_;  // what the step ends for then
  std::optional<std::int64_t> interrupted_ms_;
  bool is_ending_ = false;  // by Ctrl-C
};

}  // namespace gpu_platform::shims
