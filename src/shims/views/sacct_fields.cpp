#include "shims/views/sacct_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using CellText = std::function<std::string(const RecordRow&)>;

bool is_step(const RecordRow& row) {
  return row.step.has_value();
}

CellText empty() {
  return [](const RecordRow&) { return std::string(); };
}

CellText of_recorded_job(std::string (*text)(const v1::Job&)) {
  return [text](const RecordRow& row) { return is_step(row) ? std::string() : text(row.job); };
}

CellText of_both(std::string (*text)(const v1::Job&)) {
  return [text](const RecordRow& row) { return text(row.job); };
}

CellText of_step(std::string (*text)(const StepView&)) {
  return [text](const RecordRow& row) { return is_step(row) ? text(*row.step) : std::string(); };
}

// What a job has, and a step of it.
CellText of_each(std::string (*of_recorded_job)(const v1::Job&),
                 std::string (*of_step)(const StepView&)) {
  return [=](const RecordRow& row) {
    return is_step(row) ? of_step(*row.step) : of_recorded_job(row.job);
  };
}

CellText of_recorded_spec(const std::string& (v1::JobSpec::*text)() const) {
  return [text](const RecordRow& row) {
    return is_step(row) ? std::string() : (row.job.spec().*text)();
  };
}

// Makes the text of memory that a step used.
CellText memory_of_step(std::optional<std::int64_t> StepView::* bytes) {
  return [bytes](const RecordRow& row) {
    const auto used = is_step(row) ? *row.step.*bytes : std::optional<std::int64_t>();
    return used ? kibibytes_text(*used / 1024, row.units) : std::string();
  };
}

// CPU time that a step used.
CellText cpu_of_step(std::optional<std::int64_t> StepView::* milliseconds) {
  return [milliseconds](const RecordRow& row) {
    const auto used = is_step(row) ? *row.step.*milliseconds : std::optional<std::int64_t>();
    return used ? cpu_time_text(*used) : std::string();
  };
}

CellText eligible() {
  return [](const RecordRow& row) {
    return slurm_time(client::time_of(row.job.eligible_at()), "Unknown");
  };
}

CellText started() {
  return [](const RecordRow& row) {
    return slurm_time(is_step(row) ? row.step->started_at : client::time_of(row.job.started_at()),
                      "Unknown");
  };
}

CellText ended() {
  return [](const RecordRow& row) {
    return slurm_time(is_step(row) ? row.step->ended_at : client::time_of(row.job.ended_at()),
                      "Unknown");
  };
}

std::int64_t seconds(base::Duration duration) {
  return std::max<std::int64_t>(0, base::whole_milliseconds(duration) / 1000);
}

base::Duration elapsed(const RecordRow& row) {
  return is_step(row) ? run_time(*row.step, row.now) : run_time(row.job, row.now);
}

std::string with_step(const RecordRow& row, const std::string& id) {
  return is_step(row) ? id + "." + row.step->id : id;
}

// "CANCELLED by 1000": the uid is part of that state.
std::string state_text(const RecordRow& row) {
  if (is_step(row)) return std::string(row.step->state.name);
  const StateName state = recorded_state_of(row.job);
  const std::string by = row.job.ended_by();
  if (state.code != "CA" || by.empty()) return std::string(state.name);
  return fmt::format("{} by {}", state.name, user_number(by));
}

std::string record_cpus(const v1::Job& job) {
  return fmt::format("{}", cpus_of(job).value_or(0));
}

std::string cpus_of_step(const StepView& step) {
  return fmt::format("{}", step.cpus);
}

std::string nodes_of_step(const StepView& step) {
  return fmt::format("{}", step.nodes.size());
}

std::string allocated_cpus(const v1::Job& job) {
  return node_of(job).empty() ? "0" : record_cpus(job);
}

std::int64_t cpu_seconds(const RecordRow& row) {
  return seconds(elapsed(row)) * (is_step(row) ? row.step->cpus : cpus_of(row.job).value_or(0));
}

// A job's is that of all its processes.
std::string total_cpu(const RecordRow& row) {
  if (is_step(row)) return cpu_time_text(row.step->cpu_ms.value_or(0));
  const v1::Attempt* attempt = latest_attempt(row.job);
  const double used = attempt != nullptr ? attempt->cpu_time_seconds() : 0;
  return cpu_time_text(static_cast<std::int64_t>(used * 1000));
}

std::string average_cpu(const StepView& step) {
  return step.cpu_ms ? cpu_time_text(*step.cpu_ms / 1000 / step.tasks * 1000) : std::string();
}

std::string least_cpu_text(const StepView& step) {
  return step.least_cpu_ms ? cpu_time_text(*step.least_cpu_ms / 1000 * 1000) : std::string();
}

std::string all_cpu(const StepView& step) {
  return step.cpu_ms ? cpu_time_text(*step.cpu_ms / 1000 * 1000) : std::string();
}

std::string number_or_nothing(const std::optional<std::int64_t>& number) {
  return number ? fmt::format("{}", *number) : std::string();
}

// Which GPUs a step used is not known: all of the job's count with its batch script.
std::string gpus_of_step(const RecordRow& row) {
  return row.step->id == "batch" ? gpu_use_of(row.job, row.units) : std::string();
}

// "cpu=00:00:05,mem=12K": a time and an amount of memory, and between them what GPUs did.
CellText usage(std::string (*cpu)(const StepView&), std::optional<std::int64_t> StepView::* bytes,
               std::string (*gpus)(const RecordRow&) = nullptr) {
  return [=](const RecordRow& row) {
    if (!is_step(row)) return std::string();
    const std::string time = cpu(*row.step);
    const auto memory = *row.step.*bytes;
    return joined_use(
        {time.empty() ? time : "cpu=" + time, gpus != nullptr ? gpus(row) : std::string(),
         memory ? "mem=" + kibibytes_text(*memory / 1024, row.units) : std::string()});
  };
}

CellText energy(bool is_raw) {
  return [=](const RecordRow& row) {
    return is_step(row) && row.step->id != "batch" ? std::string() : energy_of(row.job, is_raw);
  };
}

std::string memory_asked(const RecordRow& row) {
  if (is_step(row)) return {};
  const auto bytes = memory_of(row.job);
  if (!bytes) return {};
  if (row.units.is_plain) return fmt::format("{}M", *bytes / base::kMiB.value());
  return row.units.unit != 0 ? kibibytes_text(*bytes / 1024, row.units) : slurm_memory(*bytes);
}

// How long it waited, or has.
std::int64_t planned_seconds(const RecordRow& row) {
  const auto from = client::time_of(row.job.eligible_at());
  if (!from) return 0;
  const auto until = client::time_of(row.job.started_at());
  const auto ended = client::time_of(row.job.ended_at());
  return seconds(until.value_or(ended.value_or(row.now)) - *from);
}

std::string node_or_none(const v1::Job& job) {
  const std::string node = node_of(job);
  return node.empty() ? "None assigned" : node;
}

std::string allocated(const RecordRow& row) {
  if (is_step(row)) return trackable(*row.step);
  return node_of(row.job).empty() ? std::string() : held_tres(row.job, row.weights);
}

std::string requested_text(const RecordRow& row) {
  return is_step(row) ? std::string() : requested_tres(row.job, row.weights);
}

std::string flags_of(const v1::Job& job) {
  const v1::Attempt* attempt = latest_attempt(job);
  if (attempt == nullptr) return {};
  return attempt->why() == v1::START_REASON_BACKFILL ? "SchedBackfill" : "SchedMain";
}

std::string recorded_user(const v1::Job& job) {
  return job.spec().user();
}

// Returns the columns in the order of --helpformat.
std::vector<Field<RecordRow>> fields_to_l() {
  return {
      {0, "Account", "Account", of_both([](const v1::Job& j) { return j.spec().team(); }), 10},
      {0, "AdminComment", "AdminComment", empty(), 15},
      {0, "AllocCPUS", "AllocCPUS", of_each(allocated_cpus, cpus_of_step), 10},
      {0, "AllocNodes", "AllocNodes",
       of_each(
           [](const v1::Job& j) {
             return fmt::format("{}", node_of(j).empty() ? 0 : node_count(j));
           },
           nodes_of_step),
       10},
      {0, "AllocTRES", "AllocTRES", allocated, 10},
      {0, "AssocID", "AssocID", empty(), 7},
      {0, "AveCPU", "AveCPU", of_step(average_cpu), 10},
      {0, "AveCPUFreq", "AveCPUFreq", empty(), 10},
      {0, "AveDiskRead", "AveDiskRead", empty(), 14},
      {0, "AveDiskWrite", "AveDiskWrite", empty(), 14},
      {0, "AvePages", "AvePages", empty(), 10},
      {0, "AveRSS", "AveRSS", memory_of_step(&StepView::average_bytes), 10},
      {0, "AveVMSize", "AveVMSize", empty(), 10},
      {0, "BlockID", "BlockID", empty(), 16},
      {0, "Cluster", "Cluster", [](const RecordRow&) { return std::string(kCluster); }, 10},
      {0, "Comment", "Comment", of_recorded_job(comment_of), 14},
      {0, "Constraints", "Constraints", of_recorded_job([](const v1::Job& j) {
         const std::string types = types_of(j);
         return types == "(null)" ? std::string() : types;
       }),
       19},
      {0, "ConsumedEnergy", "ConsumedEnergy", energy(false), 14},
      {0, "ConsumedEnergyRaw", "ConsumedEnergyRaw", energy(true), 17},
      {0, "Container", "Container", empty(), 19},
      {0, "CPUTime", "CPUTime",
       [](const RecordRow& r) { return long_elapsed(base::seconds(cpu_seconds(r))); }, 10},
      {0, "CPUTimeRAW", "CPUTimeRAW",
       [](const RecordRow& r) { return fmt::format("{}", cpu_seconds(r)); }, 10},
      {0, "DBIndex", "DBIndex", empty(), -21},
      {0, "DerivedExitCode", "DerivedExitCode", of_recorded_job(derived_exit_of), 15},
      {0, "Elapsed", "Elapsed", [](const RecordRow& r) { return long_elapsed(elapsed(r)); }, 10},
      {0, "ElapsedRaw", "ElapsedRaw",
       [](const RecordRow& r) { return fmt::format("{}", seconds(elapsed(r))); }, 10},
      {0, "Eligible", "Eligible", eligible(), 19},
      {0, "End", "End", ended(), 19},
      {0, "ExitCode", "ExitCode",
       of_each(recorded_exit_of, [](const StepView& step) { return step.exit; }), 8},
      {0, "Extra", "Extra", empty(), 14},
      {0, "FailedNode", "FailedNode", empty(), 8},
      {0, "Flags", "Flags", of_recorded_job(flags_of), 19},
      {0, "GID", "GID", of_recorded_job([](const v1::Job& j) {
         return fmt::format("{}", group_number(recorded_user(j)));
       }),
       6},
      {0, "Group", "Group",
       of_recorded_job([](const v1::Job& j) { return group_name(recorded_user(j)); }), 9},
      {0, "JobID", "JobID", [](const RecordRow& r) { return with_step(r, array_task_id(r.job)); },
       -12},
      {0, "JobIDRaw", "JobIDRaw", [](const RecordRow& r) { return with_step(r, r.job.id()); }, -12},
      {0, "JobName", "JobName",
       of_each([](const v1::Job& j) { return j.spec().name(); },
               [](const StepView& step) { return step.name; }),
       10},
      {0, "Layout", "Layout", empty(), 9},
      {0, "Licenses", "Licenses", empty(), 10},
  };
}

std::vector<Field<RecordRow>> fields_to_q() {
  return {
      {0, "MaxDiskRead", "MaxDiskRead", empty(), 12},
      {0, "MaxDiskReadNode", "MaxDiskReadNode", empty(), 15},
      {0, "MaxDiskReadTask", "MaxDiskReadTask", empty(), 15},
      {0, "MaxDiskWrite", "MaxDiskWrite", empty(), 12},
      {0, "MaxDiskWriteNode", "MaxDiskWriteNode", empty(), 16},
      {0, "MaxDiskWriteTask", "MaxDiskWriteTask", empty(), 16},
      {0, "MaxPages", "MaxPages", empty(), 8},
      {0, "MaxPagesNode", "MaxPagesNode", empty(), 12},
      {0, "MaxPagesTask", "MaxPagesTask", empty(), 14},
      {0, "MaxRSS", "MaxRSS", memory_of_step(&StepView::peak_bytes), 10},
      {0, "MaxRSSNode", "MaxRSSNode",
       of_step([](const StepView& step) { return node_of_task(step, step.peak_task); }), 10},
      {0, "MaxRSSTask", "MaxRSSTask",
       of_step([](const StepView& step) { return number_or_nothing(step.peak_task); }), 10},
      {0, "MaxVMSize", "MaxVMSize", empty(), 10},
      {0, "MaxVMSizeNode", "MaxVMSizeNode", empty(), 14},
      {0, "MaxVMSizeTask", "MaxVMSizeTask", empty(), 14},
      {0, "McsLabel", "McsLabel", empty(), 12},
      {0, "MinCPU", "MinCPU", of_step(least_cpu_text), 10},
      {0, "MinCPUNode", "MinCPUNode",
       of_step([](const StepView& step) { return node_of_task(step, step.least_task); }), 10},
      {0, "MinCPUTask", "MinCPUTask",
       of_step([](const StepView& step) { return number_or_nothing(step.least_task); }), 10},
      {0, "NCPUS", "NCPUS", of_each(allocated_cpus, cpus_of_step), 10},
      {0, "NNodes", "NNodes",
       of_each([](const v1::Job& j) { return fmt::format("{}", node_count(j)); }, nodes_of_step),
       8},
      {0, "NodeList", "NodeList",
       of_each(node_or_none, [](const StepView& step) { return host_list(step.nodes); }), 15},
      {0, "NTasks", "NTasks",
       of_step([](const StepView& step) { return fmt::format("{}", step.tasks); }), 8},
      {0, "Partition", "Partition", of_recorded_job(partition_of), 10},
      {0, "Planned", "Planned",
       [](const RecordRow& r) {
         return is_step(r) ? std::string() : long_elapsed(base::seconds(planned_seconds(r)));
       },
       10},
      {0, "PlannedCPU", "PlannedCPU",
       [](const RecordRow& r) {
         return is_step(r)
                    ? std::string()
                    : long_elapsed(base::seconds(planned_seconds(r) * cpus_of(r.job).value_or(1)));
       },
       10},
      {0, "PlannedCPURAW", "PlannedCPURAW",
       [](const RecordRow& r) {
         return is_step(r) ? std::string()
                           : fmt::format("{}", planned_seconds(r) * cpus_of(r.job).value_or(1));
       },
       13},
      {0, "Priority", "Priority", of_recorded_job(priority_of), 10},
      {0, "QOS", "QOS", of_recorded_job(qos_of), 10},
      {0, "QOSRAW", "QOSRAW", empty(), 6},
      {0, "QOSREQ", "QOSREQ", empty(), 10},
  };
}

std::vector<Field<RecordRow>> fields_to_z() {
  return {
      {0, "Reason", "Reason", of_recorded_job(reason_of), 22},
      {0, "ReqCPUFreq", "ReqCPUFreq", empty(), 10},
      {0, "ReqCPUFreqGov", "ReqCPUFreqGov", empty(), 13},
      {0, "ReqCPUFreqMax", "ReqCPUFreqMax", empty(), 13},
      {0, "ReqCPUFreqMin", "ReqCPUFreqMin", empty(), 13},
      {0, "ReqCPUS", "ReqCPUS", of_each(record_cpus, cpus_of_step), 8},
      {0, "ReqMem", "ReqMem", memory_asked, 10},
      {0, "ReqNodes", "ReqNodes",
       of_each([](const v1::Job& j) { return fmt::format("{}", node_count(j)); }, nodes_of_step),
       8},
      {0, "ReqTRES", "ReqTRES", requested_text, 10},
      {0, "Reservation", "Reservation", of_recorded_spec(&v1::JobSpec::reservation), 20},
      {0, "ReservationId", "ReservationId", empty(), 8},
      {0, "Reserved", "Reserved",
       [](const RecordRow& r) {
         return is_step(r) ? std::string() : long_elapsed(base::seconds(planned_seconds(r)));
       },
       10},
      {0, "Restarts", "Restarts",
       of_recorded_job([](const v1::Job& j) { return fmt::format("{}", restarts_of(j)); }), 8},
      {0, "Start", "Start", started(), 19},
      {0, "State", "State", state_text, 10},
      {0, "StdErr", "StdErr", of_recorded_job([](const v1::Job& j) { return error_file_of(j); }),
       20},
      {0, "StdIn", "StdIn",
       of_recorded_job([](const v1::Job&) { return std::string("/dev/null"); }), 20},
      {0, "StdOut", "StdOut", of_recorded_job([](const v1::Job& j) { return output_file_of(j); }),
       20},
      {0, "Submit", "Submit",
       [](const RecordRow& r) {
         return slurm_time(is_step(r) ? r.step->started_at : client::time_of(r.job.submitted_at()),
                           "Unknown");
       },
       19},
      {0, "SubmitLine", "SubmitLine", empty(), 20},
      {0, "Suspended", "Suspended", [](const RecordRow&) { return std::string("00:00:00"); }, 10},
      {0, "SystemCPU", "SystemCPU", cpu_of_step(&StepView::system_cpu_ms), 10},
      {0, "SystemComment", "SystemComment", empty(), 15},
      {0, "Timelimit", "Timelimit",
       of_recorded_job([](const v1::Job& j) { return long_elapsed(time_limit(j)); }), 10},
      {0, "TimelimitRaw", "TimelimitRaw", of_recorded_job([](const v1::Job& j) {
         return fmt::format("{}", seconds(time_limit(j)) / 60);
       }),
       10},
      {0, "TotalCPU", "TotalCPU", total_cpu, 10},
      {0, "TRESUsageInAve", "TRESUsageInAve",
       usage(average_cpu, &StepView::average_bytes, gpus_of_step), 14},
      {0, "TRESUsageInMax", "TRESUsageInMax", usage(average_cpu, &StepView::peak_bytes), 14},
      {0, "TRESUsageInMaxNode", "TRESUsageInMaxNode", empty(), 18},
      {0, "TRESUsageInMaxTask", "TRESUsageInMaxTask", empty(), 18},
      {0, "TRESUsageInMin", "TRESUsageInMin", usage(least_cpu_text, &StepView::average_bytes), 14},
      {0, "TRESUsageInMinNode", "TRESUsageInMinNode", empty(), 18},
      {0, "TRESUsageInMinTask", "TRESUsageInMinTask", empty(), 18},
      {0, "TRESUsageInTot", "TRESUsageInTot", usage(all_cpu, &StepView::all_bytes, gpus_of_step),
       14},
      {0, "TRESUsageOutAve", "TRESUsageOutAve", empty(), 15},
      {0, "TRESUsageOutMax", "TRESUsageOutMax", empty(), 15},
      {0, "TRESUsageOutMaxNode", "TRESUsageOutMaxNode", empty(), 19},
      {0, "TRESUsageOutMaxTask", "TRESUsageOutMaxTask", empty(), 19},
      {0, "TRESUsageOutMin", "TRESUsageOutMin", empty(), 15},
      {0, "TRESUsageOutMinNode", "TRESUsageOutMinNode", empty(), 19},
      {0, "TRESUsageOutMinTask", "TRESUsageOutMinTask", empty(), 19},
      {0, "TRESUsageOutTot", "TRESUsageOutTot", empty(), 15},
      {0, "UID", "UID",
       of_recorded_job([](const v1::Job& j) { return user_number(recorded_user(j)); }), 6},
      {0, "User", "User", of_recorded_job(recorded_user), 9},
      {0, "UserCPU", "UserCPU", cpu_of_step(&StepView::user_cpu_ms), 10},
      {0, "WCKey", "WCKey", empty(), 10},
      {0, "WCKeyID", "WCKeyID", empty(), 10},
      {0, "WorkDir", "WorkDir", of_recorded_spec(&v1::JobSpec::workdir), 20},
  };
}

}  // namespace

std::span<const Field<RecordRow>> sacct_fields() {
  static const std::vector<Field<RecordRow>> kFields = [] {
    std::vector<Field<RecordRow>> all = fields_to_l();
    std::ranges::move(fields_to_q(), std::back_inserter(all));
    std::ranges::move(fields_to_z(), std::back_inserter(all));
    return all;
  }();
  return kFields;
}

std::string cpu_time_text(std::int64_t milliseconds) {
  const std::int64_t all = std::max<std::int64_t>(0, milliseconds) / 1000;
  const std::int64_t rest = std::max<std::int64_t>(0, milliseconds) % 1000;
  if (all >= 3600 || rest == 0) return long_elapsed(base::seconds(all));
  return fmt::format("{:02}:{:02}.{:03}", all / 60, all % 60, rest);
}

std::string kibibytes_text(std::int64_t kibibytes, const Units& units) {
  constexpr std::string_view kUnits = "KMGTP";
  if (units.is_plain) return fmt::format("{}", kibibytes * 1024);
  if (units.unit != 0) {
    auto value = static_cast<double>(kibibytes);
    for (std::size_t i = kUnits.find(units.unit); i > 0; --i) value /= 1024;
    const bool is_whole = value == static_cast<double>(static_cast<std::int64_t>(value));
    return is_whole ? fmt::format("{:.0f}{}", value, units.unit)
                    : fmt::format("{:.2f}{}", value, units.unit);
  }
  const std::int64_t mebi = kibibytes / 1024;
  if (kibibytes >= 1024 && kibibytes % 1024 == 0) return slurm_memory(mebi * base::kMiB.value());
  return kibibytes >= 1024 && kibibytes % 512 == 0
             ? fmt::format("{:.2f}M", static_cast<double>(kibibytes) / 1024)
             : fmt::format("{}K", kibibytes);
}

std::string help_of_format() {
  std::string text;
  std::size_t column = 0;
  for (const Field<RecordRow>& field : sacct_fields()) {
    if (column > 0) text += column % 4 == 0 ? "\n" : " ";
    text += fmt::format("{:<19}", field.name);
    ++column;
  }
  return text + "\n";
}

std::string joined_use(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : ",") + part;
  }
  return text;
}

std::string gpu_use_of(const v1::Job& job, const Units& units) {
  const v1::JobGpuUse& use = job.gpu_use();
  const auto kibibytes = static_cast<std::int64_t>(use.memory_bytes() / 1024);
  return joined_use(
      {use.has_memory_bytes() ? "gres/gpumem=" + kibibytes_text(kibibytes, units) : std::string(),
       use.has_utilization_percent() ? fmt::format("gres/gpuutil={:.0f}", use.utilization_percent())
                                     : std::string()});
}

std::string energy_of(const v1::Job& job, bool is_raw) {
  if (!job.gpu_use().has_energy_joules()) return {};
  double joules = job.gpu_use().energy_joules();
  if (is_raw || joules < 1000) return fmt::format("{:.0f}", joules);
  constexpr std::string_view kUnits = "KMGT";
  std::size_t unit = 0;
  for (joules /= 1000; joules >= 1000 && unit + 1 < kUnits.size(); ++unit) joules /= 1000;
  return fmt::format("{:.2f}{}", joules, kUnits[unit]);
}

}  // namespace gpu_platform::shims
