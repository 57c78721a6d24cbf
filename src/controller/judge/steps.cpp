#include "controller/judge/steps.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/utf8.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Attempt;
using model::Job;
using model::JobStep;
using model::StepUse;

namespace {

// Clocks of the nodes may differ, and be set, by so much.
constexpr base::Duration kClockSlack = base::minutes(5);

std::unexpected<base::Error> unfit(std::string_view field, std::string_view what) {
  return base::fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", field, what),
                    std::string(field));
}

bool is_printable_name(std::string_view text) {
  while (!text.empty())
    if (base::is_harmful(base::take_character(text))) return false;
  return true;
}

std::uint64_t attempt_gpus(const Attempt& attempt) {
  return attempt.allocation.gpu_count();
}
std::uint64_t attempt_cpus(const Attempt& attempt) {
  std::uint64_t cpus = 0;
  for (const model::NodeAllocation& part : attempt.allocation.nodes) cpus += part.cpus;
  return cpus;
}
base::Bytes attempt_memory(const Attempt& attempt) {
  base::Bytes memory;
  for (const model::NodeAllocation& part : attempt.allocation.nodes) memory += part.memory;
  return memory;
}

base::Status check_share(const JobStep& step, const Attempt& attempt) {
  if (step.tasks == 0 || step.tasks > model::kMaxStepTasks)
    return unfit("tasks", fmt::format("must be 1 to {}", model::kMaxStepTasks));
  if (step.cpus > attempt_cpus(attempt)) return unfit("cpus", "the job has fewer");
  if (step.gpus > attempt_gpus(attempt)) return unfit("gpus", "the job has fewer");
  if (step.memory < base::Bytes() || step.memory > attempt_memory(attempt))
    return unfit("memory_bytes", "the job has less");
  const bool is_ascending =
      std::ranges::adjacent_find(step.nodes, std::greater_equal<>()) == step.nodes.end();
  const bool is_known = step.nodes.empty() || step.nodes.back() < attempt.allocation.nodes.size();
  if (!is_ascending || !is_known)
    return unfit("nodes", "must be places of the job's nodes, from 0, in ascending order");
  return {};
}

base::Status check_times(const JobStep& step, const Attempt& attempt, base::Instant now) {
  if (!step.started_at.is_set()) return unfit("started_at", "is missing");
  if (step.started_at + kClockSlack < attempt.requested_at)
    return unfit("started_at", "is before the start of the job");
  if (step.started_at > now + kClockSlack) return unfit("started_at", "has not arrived yet");
  if (!step.ended_at.is_set()) return {};
  if (step.ended_at < step.started_at) return unfit("ended_at", "is before started_at");
  if (step.ended_at > now + kClockSlack) return unfit("ended_at", "has not arrived yet");
  return {};
}

base::Status check_step_end(const JobStep& step) {
  if (step.exit.lost != model::Lost::kNo) return unfit("lost", "must not be set in a report");
  if (!step.ended_at.is_set()) {
    if (step.exit.code || step.exit.signal) return unfit("ended_at", "is missing");
    return step.use == StepUse() ? base::Status() : unfit("ended_at", "is missing");
  }
  if (step.exit.code.has_value() == step.exit.signal.has_value())
    return unfit("exit_code", "exactly one of exit_code and signal must be there");
  return {};
}

base::Status check_step_use(const JobStep& step) {
  const StepUse& use = step.use;
  const base::Duration none;
  if (use.user_time < none) return unfit("user_cpu_seconds", "must not be negative");
  if (use.system_time < none) return unfit("system_cpu_seconds", "must not be negative");
  if (use.least_time < none || use.least_time > use.user_time + use.system_time)
    return unfit("least_cpu_seconds", "must be a part of all CPU time");
  if (use.peak_memory < base::Bytes() || use.peak_memory > use.all_memory)
    return unfit("peak_memory_bytes", "must be a part of all_memory_bytes");
  if (use.peak_task >= step.tasks) return unfit("peak_memory_task", "is not a task of the step");
  if (use.least_task >= step.tasks) return unfit("least_cpu_task", "is not a task of the step");
  return {};
}

base::Status check_step_room(const Job& job, const JobStep& step) {
  std::size_t steps = 0;
  std::size_t nodes = step.nodes.size();
  for (const Attempt& attempt : job.attempts) {
    steps += attempt.steps->size();
    for (const base::Shared<JobStep>& other : *attempt.steps) nodes += other->nodes.size();
  }
  if (steps < model::kMaxSteps && nodes <= model::kMaxStepNodes) return {};
  return base::fail(ErrorCode::kResourceExhausted,
                    fmt::format("number: job {} has {} steps on record, and no more are kept",
                                job.id.value, steps),
                    "number");
}

}  // namespace

base::Result<std::optional<model::StepRecorded>> judge_step(const Job& job,
                                                            const model::RecordStep& command,
                                                            base::Instant now,
                                                            store::Headroom headroom) {
  const JobStep& step = command.step;
  const Attempt* attempt = job.current_attempt();
  if (attempt == nullptr || attempt->number != command.attempt.attempt ||
      !model::may_have_processes(attempt->state))
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("attempt: attempt {} of job {} does not run",
                                  command.attempt.attempt, job.id.value),
                      "attempt");
  if (headroom != store::Headroom::kAmple)
    return base::fail(ErrorCode::kResourceExhausted, "the disk is full: no steps are recorded");
  if (step.name.size() > model::kMaxStepNameBytes || !is_printable_name(step.name))
    return unfit("name", fmt::format("must be printable, and at most {} bytes long",
                                     model::kMaxStepNameBytes));
  TRY(check_share(step, *attempt));
  TRY(check_times(step, *attempt, now));
  TRY(check_step_end(step));
  TRY(check_step_use(step));
  const JobStep* const known = find_step(*attempt->steps, step.number);
  if (known == nullptr) {
    TRY(check_step_room(job, step));
    return model::StepRecorded{command.attempt, step};
  }
  // A report comes again if its answer was lost, and late if a later one overtook it.
  if (!step.ended_at.is_set() || *known == step) return std::nullopt;
  if (known->ended_at.is_set())
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("number: the end of step {} is on record already", step.number),
                      "number");
  return model::StepRecorded{command.attempt, step};
}

}  // namespace gpu_platform::controller
