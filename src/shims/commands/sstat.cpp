#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/steps/live_usage.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"
#include "shims/views/sacct_fields.h"
#include "shims/views/step_view.h"

// sstat: what the steps of running jobs use.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kUsageSynopsis = "[options] -j ID[.STEP],…";
constexpr std::string_view kUsualUsage =
    "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,"
    "MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,"
    "AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,"
    "MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,"
    "AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,"
    "TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,"
    "TRESUsageOutMinTask,TRESUsageOutTot";
constexpr std::string_view kProcessColumns = "JobID%-12,Nodes%-20,Pids%-20";

constexpr Option kSstatAlone[] = {
    {"jobs", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"allsteps", 'a', Take::kNothing, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", ""},
    {"fields", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"helpformat", 'e', Take::kNothing, Rule::kHonoured, "", ""},
    {"pidformat", 'i', Take::kNothing, Rule::kHonoured, "", ""},
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"noconvert", 0, Take::kNothing, Rule::kHonoured, "", ""},
};
constexpr auto kSstatOptions = joined(kSstatAlone, kVerboseOption, kHelpOption, kCommonOptions);

// A step that runs.
struct UsageRow {
  std::string id;
  std::vector<LiveTask> tasks;
  Units units;
  // Of the batch script's step: what the job used of its GPUs so far (sacct_fields.h).
  std::string gpus = {};
  std::string energy = {};
};

const LiveTask& largest_task(const UsageRow& row) {
  return *std::ranges::max_element(row.tasks, {}, &LiveTask::peak_bytes);
}
const LiveTask& task_of_least_cpu(const UsageRow& row) {
  return *std::ranges::min_element(row.tasks, {}, &LiveTask::cpu_ms);
}
std::int64_t all_cpu_ms(const UsageRow& row) {
  std::int64_t all = 0;
  for (const LiveTask& task : row.tasks) all += task.cpu_ms;
  return all;
}
std::int64_t average_bytes(const UsageRow& row) {
  std::int64_t all = 0;
  for (const LiveTask& task : row.tasks) all += task.peak_bytes;
  return all / std::ssize(row.tasks);
}

std::string whole_seconds(std::int64_t milliseconds) {
  return cpu_time_text(milliseconds / 1000 * 1000);
}
std::string usage_memory(const UsageRow& row, std::int64_t bytes) {
  return kibibytes_text(bytes / 1024, row.units);
}
// "cpu=00:00:05,mem=12K", and between them what GPUs did.
std::string both(const UsageRow& row, std::int64_t cpu_ms, std::int64_t bytes) {
  return joined_use({"cpu=" + whole_seconds(cpu_ms), row.gpus, "mem=" + usage_memory(row, bytes)});
}
std::string largest_of_both(const UsageRow& row) {
  const std::int64_t cpu_ms = std::ranges::max(row.tasks, {}, &LiveTask::cpu_ms).cpu_ms;
  return fmt::format("cpu={},mem={}", whole_seconds(cpu_ms),
                     usage_memory(row, largest_task(row).peak_bytes));
}

std::string usage_nodes(const UsageRow& row) {
  std::vector<std::string> nodes;
  for (const LiveTask& task : row.tasks) {
    if (std::ranges::find(nodes, task.node) == nodes.end()) nodes.push_back(task.node);
  }
  return fmt::format("{}", fmt::join(nodes, ","));
}
std::string pids_text(const UsageRow& row) {
  std::vector<std::int64_t> pids;
  for (const LiveTask& task : row.tasks)
    pids.insert(pids.end(), task.pids.begin(), task.pids.end());
  std::ranges::sort(pids);
  return fmt::format("{}", fmt::join(pids, ","));
}

// Returns the columns in the order of --helpformat.
std::vector<Field<UsageRow>> known_fields() {
  const auto average = [](const UsageRow& r) {
    return whole_seconds(all_cpu_ms(r) / std::ssize(r.tasks));
  };
  return {
      {0, "AveCPU", "AveCPU", average, 10},
      {0, "AveRSS", "AveRSS", [](const UsageRow& r) { return usage_memory(r, average_bytes(r)); },
       10},
      {0, "ConsumedEnergy", "ConsumedEnergy", [](const UsageRow& r) { return r.energy; }, 14},
      {0, "JobID", "JobID", [](const UsageRow& r) { return r.id; }, -12},
      {0, "MaxRSS", "MaxRSS",
       [](const UsageRow& r) { return usage_memory(r, largest_task(r).peak_bytes); }, 10},
      {0, "MaxRSSNode", "MaxRSSNode", [](const UsageRow& r) { return largest_task(r).node; }, 10},
      {0, "MaxRSSTask", "MaxRSSTask",
       [](const UsageRow& r) { return fmt::format("{}", largest_task(r).task); }, 10},
      {0, "MinCPU", "MinCPU",
       [](const UsageRow& r) { return whole_seconds(task_of_least_cpu(r).cpu_ms); }, 10},
      {0, "MinCPUNode", "MinCPUNode", [](const UsageRow& r) { return task_of_least_cpu(r).node; },
       10},
      {0, "MinCPUTask", "MinCPUTask",
       [](const UsageRow& r) { return fmt::format("{}", task_of_least_cpu(r).task); }, 10},
      {0, "Nodes", "Nodes", usage_nodes, 10},
      {0, "NTasks", "NTasks", [](const UsageRow& r) { return fmt::format("{}", r.tasks.size()); },
       8},
      {0, "Pids", "Pids", pids_text, 20},
      {0, "TRESUsageInAve", "TRESUsageInAve",
       [](const UsageRow& r) {
         return both(r, all_cpu_ms(r) / std::ssize(r.tasks), average_bytes(r));
       },
       14},
      {0, "TRESUsageInMax", "TRESUsageInMax", largest_of_both, 14},
      {0, "TRESUsageInTot", "TRESUsageInTot",
       [](const UsageRow& r) {
         return both(r, all_cpu_ms(r), average_bytes(r) * std::ssize(r.tasks));
       },
       14},
  };
}

// Those that the platform does not measure are empty.
const std::vector<Field<UsageRow>>& all_fields() {
  static const std::vector<Field<UsageRow>> kAll = [] {
    std::vector<Field<UsageRow>> fields = known_fields();
    for (const std::string& name : comma_separated(kUsualUsage)) {
      const auto is_known = [&](const Field<UsageRow>& field) { return field.name == name; };
      if (std::ranges::any_of(fields, is_known)) continue;
      const std::size_t at = kUsualUsage.find("," + name) + 1;
      const std::string_view kept = kUsualUsage.substr(at, name.size());
      const int width = std::max<int>(10, static_cast<int>(name.size()));
      fields.push_back({0, kept, kept, [](const UsageRow&) { return std::string(); }, width});
    }
    std::ranges::sort(fields, {},
                      [](const Field<UsageRow>& field) { return lower_case(field.name); });
    return fields;
  }();
  return kAll;
}

std::string help_text() {
  std::string text;
  std::size_t column = 0;
  for (const Field<UsageRow>& field : all_fields()) {
    if (column > 0) text += column % 4 == 0 ? "\n" : " ";
    text += fmt::format("{:<19}", field.name);
    ++column;
  }
  return text + "\n";
}

base::Result<std::vector<Bound<UsageRow>>> usage_columns(const Settings& settings) {
  std::string format(settings.has("pidformat") ? kProcessColumns : kUsualUsage);
  for (const char* option : {"fields", "format"}) {
    if (settings.has(option)) format = settings.value(option);
  }
  TRY_ASSIGN(const auto columns, named_columns(format, '%', 0));
  auto result = bound(columns, std::span<const Field<UsageRow>>(all_fields()));
  if (!result) {
    for (const ColumnSpec& column : columns) {
      const auto is_it = [&](const Field<UsageRow>& field) {
        return plain_name(field.name) == plain_name(column.name);
      };
      if (std::ranges::none_of(all_fields(), is_it))
        return base::invalid({}, fmt::format("Invalid field requested: \"{}\"", column.name));
    }
  }
  return result;
}

// The steps that were named: one, all with --allsteps, else the first that is not the batch script.
std::vector<UsageRow> rows_of(const v1::Job& job, const std::vector<JobProcess>& processes,
                              const std::string& wanted, const Settings& settings) {
  auto steps = tasks_by_step(processes);
  std::vector<UsageRow> rows;
  for (const StepView& step : steps_of(job)) {
    const auto live = steps.find(step.id);
    if (!step.runs() || live == steps.end() || live->second.empty()) continue;
    const bool is_chosen =
        wanted.empty() ? settings.has("allsteps") || step.id != "batch" : step.id == wanted;
    if (!is_chosen) continue;
    const Units units{settings.has("noconvert"), 0};
    UsageRow& row =
        rows.emplace_back(UsageRow{array_task_id(job) + "." + step.id, live->second, units});
    if (step.id == "batch") {
      row.gpus = gpu_use_of(job, units);
      row.energy = energy_of(job, false);
    }
    if (wanted.empty() && !settings.has("allsteps")) break;
  }
  return rows;
}

// False after a message.
bool add_usage(CommandCall& call, client::Client& client, const std::string& text,
               const Settings& settings, std::vector<UsageRow>& rows) {
  const StepName name = step_name_of(text);
  const auto jobs = get_jobs(client, name.job);
  if (!jobs) {
    call.fail(jobs.error());
    return false;
  }
  bool has_any = false;
  for (const v1::Job& job : *jobs) {
    if (state_of(job).code != "R" && state_of(job).code != "CG") continue;
    const auto processes = live_processes(call, client, job.id());
    if (!processes) {
      call.fail(processes.error());
      return false;
    }
    std::vector<UsageRow> own = rows_of(job, *processes, name.step, settings);
    has_any = has_any || !own.empty();
    std::ranges::move(own, std::back_inserter(rows));
  }
  if (!has_any) call.fail(fmt::format("no steps running for job {}", text));
  return has_any;
}

}  // namespace

std::span<const Option> sstat_options() {
  return kSstatOptions;
}

int sstat(CommandCall& call) {
  const auto given = call.given({kSstatOptions, kUsageSynopsis, true});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  if (settings.has("helpformat")) {
    call.console().out(help_text());
    return call.console().out_failed() ? 1 : 0;
  }
  const auto columns = usage_columns(settings);
  if (!columns) return call.fail(columns.error());
  std::vector<std::string> ids = comma_separated(settings.value("jobs"));
  ids.insert(ids.end(), given->words.begin(), given->words.end());
  if (ids.empty()) return call.fail("You didn't give me any jobs to stat.");
  auto client = call.client();
  if (!client) return 1;
  std::vector<UsageRow> rows;
  bool is_complete = true;
  for (const std::string& id : ids)
    is_complete = add_usage(call, *client, id, settings, rows) && is_complete;
  const bool is_parsable = settings.has("parsable") || settings.has("parsable2");
  const bool has_header = !settings.has("noheader");
  call.console().out(is_parsable
                         ? parsable(*columns, rows, has_header, {"|", settings.has("parsable")})
                         : accounted(*columns, rows, has_header));
  return is_complete && !call.console().out_failed() ? 0 : 1;
}

}  // namespace gpu_platform::shims
