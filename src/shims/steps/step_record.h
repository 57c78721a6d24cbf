#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"

// What the daemon is told of a step. A step never fails for it: the daemon may be away, and then
// the report comes later, or not at all.

namespace gpu_platform::shims {

// What is known when the tasks begin.
struct StepFacts {
  std::string job;
  std::uint32_t attempt = 1;
  std::uint32_t number = 0;
  std::string command;  // its path or name
  std::uint32_t tasks = 1;
  std::vector<std::string> nodes;
  std::uint32_t cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t gpus = 0;
};

// What the kernel told of the tasks that have ended.
class StepUsage {
 public:
  // `status` as wait4 gives it.
  void add(std::uint32_t rank, int status, const rusage& used);
  // The highest code of all tasks, 128 + n for a signal.
  int code() const { return code_; }
  // The signal that ended the task with that code; 0: none did.
  int signal() const;
  // Fills the report's fields about the end.
  void put(v1::JobStep& report) const;

 private:
  int code_ = 0;
  int status_ = 0;  // of the task with that code
  bool has_any_ = false;
  std::int64_t user_us_ = 0;
  std::int64_t system_us_ = 0;
  std::int64_t least_us_ = 0;
  std::uint32_t least_task_ = 0;
  std::int64_t peak_kib_ = 0;
  std::int64_t all_kib_ = 0;
  std::uint32_t peak_task_ = 0;
};

// The name of a step: the last part of its command's path, harmless and short.
std::string step_name(const std::string& command);

// The label of the job that says in which attempt the step of that number was ended because its own
// time limit was over. The platform's record of a step does not tell.
std::string timed_out_label(std::uint32_t number);

// The report of a step that runs; with times, the fields that StepUsage puts make it that of its
// end. Pure.
v1::JobStep running_report(const StepFacts& facts, base::Instant started_at);

// Reports one step, each time from a process of its own, which has none of the step's files and
// locks.
class StepRecorder {
 public:
  explicit StepRecorder(StepFacts facts) : facts_(std::move(facts)) {}
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;
  ~StepRecorder();

  // After the tasks were started. Returns at once. A step that is over soon is reported only then.
  void begin();
  // When they have ended. Returns when the daemon has it, or after a short time: the process goes
  // on trying for a while.
  void end(const StepUsage& usage, bool has_timed_out);

 private:
  void stop_first_report();

  StepFacts facts_;
  base::Instant started_at_;
  pid_t reporter_ = 0;  // of the beginning; 0: none
};

}  // namespace gpu_platform::shims
