#include "shims/views/step_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/job_text.h"
#include "shims/steps/step_record.h"
#include "shims/text/host_list.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr StateName kRunning{"R", "RUNNING"};
constexpr StateName kCompleted{"CD", "COMPLETED"};
constexpr StateName kFailed{"F", "FAILED"};
constexpr StateName kCancelled{"CA", "CANCELLED"};
constexpr StateName kTimeout{"TO", "TIMEOUT"};

std::optional<std::int64_t> milliseconds_at(const Json& object, std::string_view key) {
  const auto seconds = cli::number_at(object, key);
  return seconds ? std::optional<std::int64_t>(std::llround(*seconds * 1000)) : std::nullopt;
}

// The part of the job that every step of it has, until it is said otherwise.
StepView whole_job(const Json& job) {
  StepView step;
  step.state = recorded_state_of(job);
  step.exit = exit_and_signal(job);
  step.started_at = cli::time_at(job, "started_at");
  step.ended_at = cli::time_at(job, "ended_at");
  step.nodes = node_names(job);
  step.tasks = node_count(job);
  step.cpus = cpus_of(job).value_or(0);
  step.memory_bytes = memory_of(job).value_or(0);
  step.gpus = static_cast<std::int64_t>(cli::total_gpus(cli::spec_of(job)));
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
StepView own_program(const Json& job) {
  StepView step = whole_job(job);
  step.id = is_batch(job) ? "batch" : "0";
  step.name = is_batch(job) ? "batch" : text_at(cli::spec_of(job), "name");
  if (is_batch(job)) keep_first_node(step);
  // A job is stopped by its limit or by a person, its program ends by a signal or of its own.
  if (step.state.code == "TO" || step.state.code == "CA") step.state = state_by_end(step.exit);
  step.cpu_ms = milliseconds_at(attempt_or_job(job), "cpu_time_seconds");
  step.peak_bytes = cli::integer_at(attempt_or_job(job), "peak_memory_bytes");
  step.average_bytes = step.all_bytes = step.peak_bytes;
  if (step.cpu_ms) step.least_cpu_ms = *step.cpu_ms / std::max<std::int64_t>(1, step.tasks);
  if (step.peak_bytes && step.nodes.size() == 1) step.peak_task = step.least_task = 0;
  return step;
}

bool has_timed_out(const Json& record, const Json& job) {
  const auto number = static_cast<std::uint32_t>(cli::integer_at(record, "number").value_or(0));
  const std::string attempt =
      text_at(cli::object_at(cli::spec_of(job), "labels"), timed_out_label(number));
  return !attempt.empty() &&
         attempt == fmt::format("{}", cli::integer_at(record, "attempt").value_or(0));
}

StateName state_of_step(const Json& record, const Json& job) {
  if (!cli::time_at(record, "ended_at")) return kRunning;
  // Its end was not reported: the job ended first.
  if (!text_at(record, "lost").empty()) {
    const StateName state = recorded_state_of(job);
    return state.code == "OOM" || state.code == "NF" ? state : kCancelled;
  }
  if (has_timed_out(record, job)) return kTimeout;
  if (!text_at(record, "signal").empty()) {
    const std::string reason = text_at(attempt_or_job(job), "reason");
    if (reason == "OUT_OF_MEMORY") return {"OOM", "OUT_OF_MEMORY"};
    return kCancelled;
  }
  return cli::integer_at(record, "exit_code").value_or(0) == 0 ? kCompleted : kFailed;
}

StepView recorded(const Json& record, const Json& job) {
  StepView step;
  step.id = fmt::format("{}", cli::integer_at(record, "number").value_or(0));
  step.name = text_at(record, "name");
  step.state = state_of_step(record, job);
  step.exit = exit_and_signal(record);
  step.started_at = cli::time_at(record, "started_at");
  step.ended_at = cli::time_at(record, "ended_at");
  step.nodes = cli::texts_at(record, "nodes");
  step.tasks = std::max<std::int64_t>(1, cli::integer_at(record, "tasks").value_or(1));
  step.cpus = cli::integer_at(record, "cpus").value_or(0);
  step.memory_bytes = cli::integer_at(record, "memory_bytes").value_or(0);
  step.gpus = cli::integer_at(record, "gpus").value_or(0);
  step.user_cpu_ms = milliseconds_at(record, "user_cpu_seconds");
  step.system_cpu_ms = milliseconds_at(record, "system_cpu_seconds");
  if (step.user_cpu_ms && step.system_cpu_ms) step.cpu_ms = *step.user_cpu_ms + *step.system_cpu_ms;
  step.least_cpu_ms = milliseconds_at(record, "least_cpu_seconds");
  step.least_task = cli::integer_at(record, "least_cpu_task");
  step.peak_bytes = cli::integer_at(record, "peak_memory_bytes");
  step.peak_task = cli::integer_at(record, "peak_memory_task");
  step.all_bytes = cli::integer_at(record, "all_memory_bytes");
  if (step.all_bytes) step.average_bytes = *step.all_bytes / step.tasks;
  return step;
}

}  // namespace

std::vector<StepView> steps_of(const Json& job) {
  std::vector<StepView> steps;
  if (!cli::time_at(job, "started_at")) return steps;
  const auto attempt = cli::integer_at(job, "attempt");
  std::vector<StepView> on_record;
  for (const Json& record : cli::list_at(job, "steps")) {
    if (cli::integer_at(record, "attempt") == attempt) on_record.push_back(recorded(record, job));
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

std::string derived_exit_of(const Json& job) {
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
