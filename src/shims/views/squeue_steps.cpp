#include "shims/views/squeue_steps.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kUsualSteps = "%.15i %.8j %.9P %.8u %.9M %N";

std::string id_of(const QueueStepRow& row) {
  return array_task_id(row.job) + "." + row.step.id;
}

std::string user_of_step(const QueueStepRow& row) {
  return row.job.spec().user();
}

const std::vector<Field<QueueStepRow>>& step_fields() {
  static const std::vector<Field<QueueStepRow>> kFields = {
      {'A', "NumTasks", "NTASKS",
       [](const QueueStepRow& r) { return fmt::format("{}", r.step.tasks); }},
      {'b', "Gres", "TRES_PER_NODE",
       [](const QueueStepRow& r) {
         return r.step.gpus > 0 ? fmt::format("gres/gpu:{}", r.step.gpus) : std::string("N/A");
       }},
      {'C', "NumCPUs", "CPUS",
       [](const QueueStepRow& r) { return fmt::format("{}", r.step.cpus); }},
      {'i', "StepID", "STEPID", id_of},
      {'j', "StepName", "NAME", [](const QueueStepRow& r) { return r.step.name; }},
      {'l', "TimeLimit", "TIME_LIMIT",
       [](const QueueStepRow&) { return std::string("UNLIMITED"); }},
      {'M', "TimeUsed", "TIME",
       [](const QueueStepRow& r) { return short_elapsed(run_time(r.step, r.now)); }},
      {'N', "Nodes", "NODELIST", [](const QueueStepRow& r) { return host_list(r.step.nodes); }},
      {'P', "Partition", "PARTITION", [](const QueueStepRow& r) { return partition_of(r.job); }},
      {'S', "StartTime", "START_TIME",
       [](const QueueStepRow& r) { return slurm_time(r.step.started_at, "N/A"); }},
      {'t', "StepState", "STATE",
       [](const QueueStepRow& r) { return std::string(r.step.state.name); }},
      {'u', "UserName", "USER", user_of_step},
      {'U', "UserID", "USER", [](const QueueStepRow& r) { return user_number(user_of_step(r)); }},
  };
  return kFields;
}

}  // namespace

base::Result<std::vector<Bound<QueueStepRow>>> step_columns_of(const Settings& settings) {
  constexpr std::size_t kNamedWidth = 20;
  const std::span<const Field<QueueStepRow>> known = step_fields();
  if (settings.has("Format")) {
    TRY_ASSIGN(const auto columns, named_columns(settings.value("Format"), ':', kNamedWidth));
    return bound(columns, known);
  }
  const std::string format = settings.has("format") ? whole_format(settings.value("format"), known)
                                                    : std::string(kUsualSteps);
  TRY_ASSIGN(const auto columns, letter_columns(format));
  return bound(columns, known);
}

std::vector<QueueStepRow> running_steps(const std::vector<v1::Job>& jobs, const std::string& wanted,
                                        base::Instant now) {
  std::vector<QueueStepRow> rows;
  for (const v1::Job& job : jobs) {
    for (StepView& step : steps_of(job)) {
      QueueStepRow row{job, std::move(step), now};
      if (!row.step.runs()) continue;
      if (wanted.empty() || is_listed(id_of(row), wanted)) rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace gpu_platform::shims
