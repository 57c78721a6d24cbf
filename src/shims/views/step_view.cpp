#include "shims/views/step_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/parse.h"
#include "client/answer.h"
#include "shims/steps/step_record.h"
#include "shims/text/host_list.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

constexpr StateName kRunning{"R", "RUNNING"};
constexpr StateName kCompleted{"CD", "COMPLETED"};
constexpr StateName kFailed{"F", "FAILED"};
constexpr StateName kCancelled{"CA", "CANCELLED"};
constexpr StateName kTimeout{"TO", "TIMEOUT"};

std::int64_t milliseconds_of(double seconds) {
  return std::llround(seconds * 1000);
}

// The part of the job that every step of it has, until it is said otherwise.
StepView whole_job(const v1::Job& job) {
  StepView step;
  step.state = recorded_state_of(job);
  step.exit = exit_and_signal(job);
  step.started_at = client::time_of(job.started_at());
  step.ended_at = client::time_of(job.ended_at());
  step.nodes = node_names(job);
  step.tasks = node_count(job);
  step.cpus = cpus_of(job).value_or(0);
  step.memory_bytes = memory_of(job).value_or(0);
  step.gpus = gpus_of_request(job);
  return step;
}

// The batch script runs on the first node alone, with its part of what the job has.
void keep_first_node(StepView& step) {
  const auto nodes = static_cast<std::int64_t>(std::max<std::size_t>(1, step.nodes.size()));
  if (nodes > 1) step.nodes = {step.nodes[host_order(step.nodes).front()]};
  step.tasks = 1;
  step.cpus /= nodes;
  step.memory_bytes /= nodes;
  step.gpus /= nodes;
}

StateName state_by_end(std::string_view exit) {
  if (!exit.ends_with(":0")) return kCancelled;
  return exit == "0:0" ? kCompleted : kFailed;
}

// The job's own program, whose processes are all of the job's: the memory is that of all together.
StepView own_program(const v1::Job& job) {
  StepView step = whole_job(job);
  step.id = is_batch(job) ? "batch" : "0";
  step.name = is_batch(job) ? "batch" : job.spec().name();
  if (is_batch(job)) keep_first_node(step);
  // A job is stopped by its limit or by a person, its program ends by a signal or of its own.
  if (step.state.code == "TO" || step.state.code == "CA") step.state = state_by_end(step.exit);
  const v1::Attempt* attempt = latest_attempt(job);
  if (attempt != nullptr && attempt->has_cpu_time_seconds())
    step.cpu_ms = milliseconds_of(attempt->cpu_time_seconds());
  if (attempt != nullptr && attempt->has_peak_memory_bytes())
    step.peak_bytes = attempt->peak_memory_bytes();
  step.average_bytes = step.all_bytes = step.peak_bytes;
  if (step.cpu_ms) step.least_cpu_ms = *step.cpu_ms / std::max<std::int64_t>(1, step.tasks);
  if (step.peak_bytes && step.nodes.size() == 1) step.peak_task = step.least_task = 0;
  return step;
}

bool has_timed_out(const v1::JobStep& record, const v1::Job& job) {
  const auto attempt = job.spec().labels().find(timed_out_label(record.number()));
  return attempt != job.spec().labels().end() &&
         attempt->second == fmt::format("{}", record.attempt());
}

StateName state_of_step(const v1::JobStep& record, const v1::Job& job) {
  if (!client::time_of(record.ended_at())) return kRunning;
  // Its end was not reported: the job ended first.
  if (record.lost() != v1::LOST_UNSPECIFIED) {
    const StateName state = recorded_state_of(job);
    return state.code == "OOM" || state.code == "NF" ? state : kCancelled;
  }
  if (has_timed_out(record, job)) return kTimeout;
  if (!record.signal().empty()) {
    const v1::Attempt* attempt = latest_attempt(job);
    const v1::EndReason reason = attempt != nullptr ? attempt->reason() : job.reason();
    if (reason == v1::END_REASON_OUT_OF_MEMORY) return {"OOM", "OUT_OF_MEMORY"};
    return kCancelled;
  }
  return record.exit_code() == 0 ? kCompleted : kFailed;
}

// What it used, as far as that is on record.
void add_usage(const v1::JobStep& record, StepView& step) {
  if (record.has_user_cpu_seconds()) step.user_cpu_ms = milliseconds_of(record.user_cpu_seconds());
  if (record.has_system_cpu_seconds())
    step.system_cpu_ms = milliseconds_of(record.system_cpu_seconds());
  if (step.user_cpu_ms && step.system_cpu_ms) step.cpu_ms = *step.user_cpu_ms + *step.system_cpu_ms;
  if (record.has_least_cpu_seconds())
    step.least_cpu_ms = milliseconds_of(record.least_cpu_seconds());
  if (record.has_least_cpu_task()) step.least_task = record.least_cpu_task();
  if (record.has_peak_memory_bytes()) step.peak_bytes = record.peak_memory_bytes();
  if (record.has_peak_memory_task()) step.peak_task = record.peak_memory_task();
  if (record.has_all_memory_bytes()) step.all_bytes = record.all_memory_bytes();
  if (step.all_bytes) step.average_bytes = *step.all_bytes / step.tasks;
}

StepView recorded(const v1::JobStep& record, const v1::Job& job) {
  StepView step;
  step.id = fmt::format("{}", record.number());
  step.name = record.name();
  step.state = state_of_step(record, job);
  step.exit = exit_and_signal(record);
  step.started_at = client::time_of(record.started_at());
  step.ended_at = client::time_of(record.ended_at());
  step.nodes.assign(record.nodes().begin(), record.nodes().end());
  step.tasks = std::max<std::int64_t>(1, record.tasks());
  step.cpus = record.cpus();
  step.memory_bytes = static_cast<std::int64_t>(record.memory_bytes());
  step.gpus = record.gpus();
  add_usage(record, step);
  return step;
}

}  // namespace

std::vector<StepView> steps_of(const v1::Job& job) {
  std::vector<StepView> steps;
  if (!client::time_of(job.started_at())) return steps;
  std::vector<StepView> on_record;
  for (const v1::JobStep& record : job.steps()) {
    if (record.attempt() == job.attempt()) on_record.push_back(recorded(record, job));
  }
  // The program of srun is step 0, and on record as such unless that was lost.
  const bool has_own = is_batch(job) || on_record.empty() || on_record.front().id != "0";
  if (has_own) steps.push_back(own_program(job));
  steps.insert(steps.end(), on_record.begin(), on_record.end());
  return steps;
}

std::string trackable(const StepView& step) {
  std::string text = fmt::format("cpu={}", step.cpus);
  if (step.memory_bytes > 0) text += fmt::format(",mem={}", slurm_memory(step.memory_bytes));
  text += fmt::format(",node={}", step.nodes.size());
  if (step.gpus > 0) text += fmt::format(",gres/gpu={}", step.gpus);
  return text;
}

base::Duration run_time(const StepView& step, base::Instant now) {
  if (!step.started_at) return {};
  return std::max(step.ended_at.value_or(now) - *step.started_at, base::Duration());
}

std::string node_of_task(const StepView& step, std::optional<std::int64_t> task) {
  return task && step.nodes.size() == 1 ? step.nodes.front() : std::string();
}

std::string derived_exit_of(const v1::Job& job) {
  std::pair<std::int64_t, std::int64_t> highest;
  for (const StepView& step : steps_of(job)) {
    if (step.id == "batch") continue;
    const std::size_t colon = step.exit.find(':');
    const auto number = [&](std::string_view text) {
      return static_cast<std::int64_t>(base::parse_count(text, 0, INT32_MAX).value_or(0));
    };
    highest = std::max(highest, std::pair(number(std::string_view(step.exit).substr(0, colon)),
                                          number(std::string_view(step.exit).substr(colon + 1))));
  }
  return fmt::format("{}:{}", highest.first, highest.second);
}

StepName step_name_of(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

}  // namespace gpu_platform::shims
