#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/views/job_state.h"

// The steps of a job as Slurm's commands tell of them: the batch script, and the steps that are on
// record. What enters a job from outside counts with its batch script: there is no step for it, as
// in a Slurm without PrologFlags=contain. Pure.

namespace gpu_platform::shims {

struct StepView {
  std::string id;    // "batch", "0", "1"
  std::string name;  // of its command
  StateName state;
  std::string exit;  // "0:9": exit code and signal
  std::optional<base::Instant> started_at;
  std::optional<base::Instant> ended_at;
  std::vector<std::string> nodes;
  std::int64_t tasks = 1;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t gpus = 0;
  // What it used. Absent: not known, or not yet.
  std::optional<std::int64_t> user_cpu_ms;
  std::optional<std::int64_t> system_cpu_ms;
  std::optional<std::int64_t> cpu_ms;
  std::optional<std::int64_t> least_cpu_ms;  // of one task
  std::optional<std::int64_t> peak_bytes;    // of one task
  std::optional<std::int64_t> average_bytes;
  std::optional<std::int64_t> all_bytes;  // the sum of these peaks
  std::optional<std::int64_t> peak_task;
  std::optional<std::int64_t> least_task;

  bool runs() const { return started_at && !ended_at; }
};

// Returns the steps of the latest attempt in sacct's order; none before it has started.
std::vector<StepView> steps_of(const v1::Job& job);

// The highest exit code of the steps of its own, besides its batch script: "3:0", and "0:0" if it
// has none.
std::string derived_exit_of(const v1::Job& job);

// "cpu=2,mem=4G,node=1,gres/gpu=2"
std::string trackable(const StepView& step);
base::Duration run_time(const StepView& step, base::Instant now);
// The node where a task ran, if that is known.
std::string node_of_task(const StepView& step, std::optional<std::int64_t> task);

// What "-j 7.batch" names: the job, and the step; empty: all of it.
struct StepName {
  std::string job;
  std::string step;
};
StepName step_name_of(std::string_view text);

}  // namespace gpu_platform::shims
