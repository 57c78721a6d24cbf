#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "shims/steps/rendezvous.h"
#include "shims/steps/step_record.h"
#include "shims/steps/task_streams.h"

// The tasks of a step until all of them have ended: limits, signals, Ctrl-C. One thread, that of
// the step's first process; its signals are blocked from begin() on.

namespace gpu_platform::shims {

// What the first Ctrl-C does.
enum class OnInterrupt { kTell, kPassOn, kEnd };

struct WatchRules {
  std::string step_id;  // "7.0"
  bool ends_on_failure = false;
  OnInterrupt on_interrupt = OnInterrupt::kTell;
  std::optional<std::int64_t> seconds;
  std::optional<std::int64_t> seconds_after_end;
  // The process that signals all processes of the job; what it sends is not passed on once more.
  pid_t starter = 0;
  // The one task is of srun's own process group: it has srun's terminal, and the keys of that reach
  // it without srun.
  bool shares_group = false;
  // If srun is outside of the job: the tasks end when it goes, and signals come from it.
  const Connection* caller = nullptr;
  // The node of each task, in the order of their ranks: the end of a task that failed is told with
  // it. Empty: no end is told.
  std::vector<std::string> nodes;
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
  // Whether they were ended because the step's time was over.
  bool has_timed_out() const { return has_timed_out_; }

 private:
  StepWatch(const WatchRules& rules, int fd) : rules_(rules), fd_(fd) {}
  void send(int signal) const;
  void stop(const std::string& reason);
  void ask_to_stop(std::int64_t grace_ms, const std::string& reason);
  void come_to_the_end();
  void reap();
  void note_end(int status);
  void tell_ends(const std::map<int, std::vector<std::uint32_t>>& ranks_by_status) const;
  void take_signals();
  void take_word();
  void take_signal_of_caller(int signal);
  void interrupted();
  void end_by_interrupt();
  void end_at_once();
  int poll_timeout_ms() const;
  WatchRules rules_;
  int fd_ = -1;
  std::map<pid_t, std::uint32_t> tasks_;
  StepUsage usage_;
  bool has_first_ended_ = false;
  std::optional<std::int64_t> end_ms_;
  std::string why_;  // what the step ends for then
  std::optional<std::int64_t> interrupted_ms_;
  bool is_ending_ = false;  // by Ctrl-C
  bool has_limit_ = false;  // end_ms_ is that of the step's time
  bool has_timed_out_ = false;
  bool has_caller_gone_ = false;
};

}  // namespace gpu_platform::shims
