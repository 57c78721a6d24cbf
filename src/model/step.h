#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/shared.h"
#include "base/units.h"
#include "model/exit.h"

// The steps of a job: the commands that its own processes ran as tasks on its nodes (srun). They
// report them; the platform itself starts none, and nothing that it decides follows from them.

namespace gpu_platform::model {

// Bounds of what one job may have stored, over all its attempts.
inline constexpr std::size_t kMaxSteps = 4096;
inline constexpr std::size_t kMaxStepNodes = 65'536;  // entries of JobStep::nodes
inline constexpr std::size_t kMaxStepNameBytes = 64;
inline constexpr std::uint32_t kMaxStepTasks = 1'000'000;

// What the tasks used, each with the children that it waited for: as the kernel tells at the end of
// a task. All zero while the step runs.
struct StepUse {
  base::Duration user_time;    // of all tasks
  base::Duration system_time;  // of all tasks
  base::Bytes peak_memory;     // of the task with the most: the largest resident set of a process
  base::Bytes all_memory;      // the sum of these over all tasks
  std::uint32_t peak_task = 0;
  base::Duration least_time;  // CPU time of the task with the least
  std::uint32_t least_task = 0;

  friend bool operator==(const StepUse&, const StepUse&) = default;
};

struct JobStep {
  std::uint32_t number = 0;
  std::string name;  // printable, at most kMaxStepNameBytes
  std::uint32_t tasks = 1;
  // The places of its nodes among those of the attempt, ascending; empty: all of them.
  std::vector<std::uint32_t> nodes;
  std::uint32_t cpus = 0;  // on all its nodes
  base::Bytes memory;      // on all its nodes
  std::uint32_t gpus = 0;  // on all its nodes
  base::Instant started_at;
  base::Instant ended_at;  // unset: it runs
  // Once it has ended: of its tasks the highest code, or a signal. Lost if the attempt ended
  // without a report of the step's end.
  Exit exit;
  StepUse use;

  friend bool operator==(const JobStep&, const JobStep&) = default;
};

// By ascending number. A copy costs a count for each, so that a job may have thousands.
using JobSteps = std::vector<base::Shared<JobStep>>;

// Returns null if there is none of that number.
const JobStep* find_step(const JobSteps& steps, std::uint32_t number);
// Returns the steps with this one added, or in place of the one of its number. Cost: linear.
JobSteps with_step(const JobSteps& steps, JobStep step);
// Returns the steps with those that run ended at that time, in a way that is not known.
JobSteps with_ends(const JobSteps& steps, base::Instant ended_at);

}  // namespace gpu_platform::model
