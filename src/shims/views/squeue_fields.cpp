#include "shims/views/squeue_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/steps/step_variables.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

std::string none_if_empty(std::string text, std::string_view none) {
  return text.empty() ? std::string(none) : text;
}

std::function<std::string(const QueueRow&)> always_in_queue(std::string text) {
  return [text = std::move(text)](const QueueRow&) { return text; };
}

// Makes the column of a text that depends on the job alone.
std::function<std::string(const QueueRow&)> of_queued_job(std::string (*text)(const v1::Job&),
                                                          std::string none = "") {
  return [text, none](const QueueRow& row) { return none_if_empty(text(row.job), none); };
}

std::function<std::string(const QueueRow&)> of_spec(const std::string& (v1::JobSpec::*text)() const,
                                                    std::string none = "") {
  return
      [text, none](const QueueRow& row) { return none_if_empty((row.job.spec().*text)(), none); };
}

using Time = google::protobuf::Timestamp;

std::function<std::string(const QueueRow&)> time_in_queue(const Time& (v1::Job::*time)() const) {
  return
      [time](const QueueRow& row) { return slurm_time(client::time_of((row.job.*time)()), "N/A"); };
}

std::string node_or_reason(const QueueRow& row) {
  const std::string node = node_of(row.job);
  return node.empty() || has_ended(row.job) ? fmt::format("({})", reason_of(row.job)) : node;
}

std::optional<base::Instant> end_of(const v1::Job& job) {
  const auto ended = client::time_of(job.ended_at());
  const auto started = client::time_of(job.started_at());
  return ended || !started ? ended : std::optional(*started + time_limit(job));
}

template <GpusPer per>
std::string gpus_text(const v1::Job& job) {
  const std::string gpus = gpus_asked(job, per);
  return gpus.empty() ? "N/A" : "gres/" + gpus;
}

std::function<std::string(const QueueRow&)> count_of(std::int64_t (*count)(const v1::Job&)) {
  return [count](const QueueRow& row) { return fmt::format("{}", count(row.job)); };
}

std::string queue_cpus(const QueueRow& row) {
  return fmt::format("{}", cpus_of(row.job).value_or(1));
}

std::string queue_memory(const v1::Job& job) {
  const auto memory = memory_share_of(job);
  return memory ? slurm_memory(memory->bytes) : "0";
}

// Part of the largest number that a priority may be, as %p has it.
std::string priority_part(const v1::Job& job) {
  constexpr double kMost = 4294967296.0;
  return fmt::format("{:.14f}", std::strtod(priority_of(job).c_str(), nullptr) / kMost);
}

// The text between the brackets of several members that wait.
std::string array_index(const QueueRow& row) {
  const std::string id = array_task_id(row.job, row.members);
  const std::size_t bar = id.find('_');
  if (bar == std::string::npos) return "N/A";
  return id[bar + 1] == '[' ? id.substr(bar + 2, id.size() - bar - 3) : id.substr(bar + 1);
}

std::string queued_tres(const QueueRow& row) {
  return held_tres(row.job, row.weights != nullptr ? *row.weights : BillingWeights());
}

std::vector<Field<QueueRow>> fields_of_requests() {
  return {
      {'C', "NumCPUs", "CPUS", queue_cpus},
      {'c', "MinCpus", "MIN_CPUS", count_of(cpus_of_each_node)},
      {0, "MaxCPUs", "MAX_CPUS", queue_cpus},
      {0, "cpus-per-task", "CPUS_PER_TASK", count_of(cpus_of_each_task)},
      {0, "cpus-per-tres", "CPUS_PER_TRES", always_in_queue("N/A")},
      {0, "NumTasks", "TASKS", count_of(task_count)},
      {'D', "NumNodes", "NODES", count_of(node_count)},
      {0, "MaxNodes", "MAX_NODES", count_of(node_count)},
      {'m', "MinMemory", "MIN_MEMORY", of_queued_job(queue_memory)},
      {0, "mem-per-tres", "MEM_PER_TRES", always_in_queue("N/A")},
      {'d', "MinTmpDisk", "MIN_TMP_DISK", always_in_queue("0")},
      {0, "MinTime", "TIME_MIN", always_in_queue("0:00")},
      {'b', "tres-per-node", "TRES_PER_NODE", of_queued_job(gpus_text<GpusPer::kNode>)},
      {0, "gres", "TRES_PER_NODE", of_queued_job(gpus_text<GpusPer::kNode>)},
      {0, "tres-per-job", "TRES_PER_JOB", of_queued_job(gpus_text<GpusPer::kJob>)},
      {0, "tres-per-task", "TRES_PER_TASK", of_queued_job(gpus_text<GpusPer::kTask>)},
      {0, "tres-per-socket", "TRES_PER_SOCKET", of_queued_job(gpus_text<GpusPer::kSocket>)},
      {0, "tres-bind", "TRES_BIND", always_in_queue("N/A")},
      {0, "tres-freq", "TRES_FREQ", always_in_queue("N/A")},
      {0, "tres-alloc", "TRES_ALLOC", queued_tres},
      {'f', "Feature", "FEATURES", of_queued_job(types_of)},
      {0, "ClusterFeature", "CLUSTER_FEATURES", always_in_queue("(null)")},
      {0, "Prefer", "PREFER", always_in_queue("(null)")},
      {'n', "ReqNodes", "REQ_NODES", of_queued_job(required_nodes_of)},
      {'x', "exc_nodes", "EXC_NODES", of_queued_job(excluded_nodes_of)},
      {'h', "OverSubscribe", "OVER_SUBSCRIBE", always_in_queue("OK")},
      {'O', "Contiguous", "CONTIGUOUS", always_in_queue("0")},
      {'W', "Licenses", "LICENSES", always_in_queue("(null)")},
      {'w', "WCKey", "WCKEY", always_in_queue("(null)")},
      {'X', "CoreSpec", "CORE_SPEC", always_in_queue("N/A")},
      {'z', "SCT", "S:C:T", always_in_queue("*:*:*")},
      {'H', "Sockets", "SOCKETS_PER_NODE", always_in_queue("*")},
      {'I', "Cores", "CORES_PER_SOCKET", always_in_queue("*")},
      {'J', "Threads", "THREADS_PER_CORE", always_in_queue("*")},
      {0, "BoardsPerNode", "BOARDS_PER_NODE", always_in_queue("0")},
      {0, "SPerBoard", "SOCKETS_PER_BOARD", always_in_queue("0")},
      {0, "NTPerBoard", "NTASKS_PER_BOARD", always_in_queue("0")},
      {0, "NTPerCore", "NTASKS_PER_CORE", always_in_queue("N/A")},
      {0, "NTPerNode", "NTASKS_PER_NODE", always_in_queue("0")},
      {0, "NTPerSocket", "NTASKS_PER_SOCKET", always_in_queue("N/A")},
      {0, "ReqSwitch", "REQ_SWITCH", always_in_queue("0")},
      {0, "Wait4Switch", "WAIT4SWITCH", always_in_queue("0:00")},
      {0, "DelayBoot", "DELAY_BOOT", always_in_queue("0:00")},
      {0, "Network", "NETWORK", always_in_queue("(null)")},
      {0, "Profile", "PROFILE", always_in_queue("NotSet")},
      {0, "BurstBuffer", "BURST_BUFFER", always_in_queue("(null)")},
      {0, "BurstBufferState", "BURST_BUFFER_STATE", always_in_queue("(null)")},
      {0, "Container", "CONTAINER", always_in_queue("(null)")},
      {0, "MCSLabel", "MCSLABEL", always_in_queue("(null)")},
  };
}

std::vector<Field<QueueRow>> fields_of_times() {
  return {
      {'M', "TimeUsed", "TIME",
       [](const QueueRow& row) { return short_elapsed(run_time(row.job, row.now)); }},
      {'l', "TimeLimit", "TIME_LIMIT",
       [](const QueueRow& row) { return short_elapsed(time_limit(row.job)); }},
      {'L', "TimeLeft", "TIME_LEFT",
       [](const QueueRow& row) {
         return short_elapsed(time_limit(row.job) - run_time(row.job, row.now));
       }},
      {'V', "SubmitTime", "SUBMIT_TIME", time_in_queue(&v1::Job::submitted_at)},
      {0, "EligibleTime", "ELIGIBLE_TIME", time_in_queue(&v1::Job::eligible_at)},
      {0, "AccrueTime", "ACCRUE_TIME", time_in_queue(&v1::Job::eligible_at)},
      {'S', "StartTime", "START_TIME",
       [](const QueueRow& row) { return slurm_time(expected_start(row.job), "N/A"); }},
      {'e', "EndTime", "END_TIME",
       [](const QueueRow& row) { return slurm_time(end_of(row.job), "N/A"); }},
      {0, "Deadline", "DEADLINE",
       [](const QueueRow& row) {
         return slurm_time(client::time_of(row.job.spec().deadline()), "N/A");
       }},
      {0, "PendingTime", "PENDING_TIME",
       [](const QueueRow& row) {
         const auto from = client::time_of(row.job.submitted_at()).value_or(row.now);
         const auto until = client::time_of(row.job.started_at()).value_or(row.now);
         return fmt::format(
             "{}", std::max<std::int64_t>(0, base::whole_milliseconds(until - from) / 1000));
       }},
      {0, "PreemptTime", "PREEMPT_TIME", always_in_queue("N/A")},
      {0, "ResizeTime", "RESIZE_TIME", always_in_queue("N/A")},
      {0, "SuspendTime", "SUSPEND_TIME", always_in_queue("N/A")},
      {0, "LastSchedEval", "LAST_SCHED_EVAL", always_in_queue("N/A")},
  };
}

std::vector<Field<QueueRow>> fields_of_identity() {
  return {
      {'i', "JobArrayID", "JOBID",
       [](const QueueRow& row) { return array_task_id(row.job, row.members); }},
      {'A', "JobID", "JOBID", [](const QueueRow& row) { return row.job.id(); }},
      {'F', "ArrayJobID", "ARRAY_JOB_ID",
       [](const QueueRow& row) { return none_if_empty(row.job.array_id(), row.job.id()); }},
      {'K', "ArrayTaskID", "ARRAY_TASK_ID", array_index},
      {'P', "Partition", "PARTITION", of_queued_job(partition_of)},
      {'j', "Name", "NAME", of_spec(&v1::JobSpec::name)},
      {'u', "UserName", "USER", of_spec(&v1::JobSpec::user)},
      {'U', "UserID", "UID",
       [](const QueueRow& row) { return user_number(row.job.spec().user()); }},
      {'g', "GroupName", "GROUP",
       [](const QueueRow& row) { return group_name(row.job.spec().user()); }},
      {'G', "GroupID", "GROUP",
       [](const QueueRow& row) { return fmt::format("{}", group_number(row.job.spec().user())); }},
      {'a', "Account", "ACCOUNT", of_spec(&v1::JobSpec::team, "(null)")},
      {'q', "QOS", "QOS", of_queued_job(qos_of)},
      {'t', "StateCompact", "ST",
       [](const QueueRow& row) { return std::string(state_of(row.job).code); }},
      {'T', "State", "STATE",
       [](const QueueRow& row) { return std::string(state_of(row.job).name); }},
      {'R', "ReasonList", "NODELIST(REASON)", node_or_reason},
      {'r', "Reason", "REASON", of_queued_job(reason_of)},
      {'N', "NodeList", "NODELIST", of_queued_job(node_of)},
      {'B', "BatchHost", "EXEC_HOST", of_queued_job(first_node_of, "n/a")},
      {'Y', "SchedNodes", "SCHEDNODES", always_in_queue("(null)")},
      {'Q', "PriorityLong", "PRIORITY", of_queued_job(priority_of)},
      {'p', "Priority", "PRIORITY", of_queued_job(priority_part)},
      {'y', "Nice", "NICE", always_in_queue("0")},
      {'k', "Comment", "COMMENT", of_queued_job(comment_of, "(null)")},
      {0, "system_comment", "SYSTEM_COMMENT", always_in_queue("(null)")},
      {0, "admin_comment", "ADMIN_COMMENT", always_in_queue("(null)")},
      {'o', "Command", "COMMAND", of_queued_job(command_of)},
      {'Z', "WorkDir", "WORK_DIR", of_spec(&v1::JobSpec::workdir)},
      {0, "STDOUT", "STDOUT", [](const QueueRow& row) { return output_file_of(row.job); }},
      {0, "STDERR", "STDERR", [](const QueueRow& row) { return error_file_of(row.job); }},
      {0, "STDIN", "STDIN", always_in_queue("/dev/null")},
      {'E', "Dependency", "DEPENDENCY", of_queued_job(dependency_of)},
      {'v', "Reservation", "RESERVATION", of_spec(&v1::JobSpec::reservation, "(null)")},
      {0, "exit_code", "EXIT_CODE", of_queued_job(exit_and_signal)},
      {0, "DerivedEC", "DERIVED_EC", always_in_queue("0")},
      {0, "RestartCnt", "RESTART_COUNT",
       [](const QueueRow& row) { return fmt::format("{}", restarts_of(row.job)); }},
      {0, "Requeue", "REQUEUE", always_in_queue("1")},
      {0, "Reboot", "REBOOT", always_in_queue("0")},
      {0, "BatchFlag", "BATCH_FLAG",
       [](const QueueRow& row) { return std::string(is_batch(row.job) ? "1" : "0"); }},
      {0, "Cluster", "CLUSTER", always_in_queue(std::string(kCluster))},
      {0, "AllocNodes", "ALLOC_NODES", always_in_queue("(null)")},
      {0, "AllocSID", "ALLOC_SID", always_in_queue("0")},
      {0, "AssocID", "ASSOC_ID", always_in_queue("0")},
      {0, "HetJobID", "HET_JOB_ID", always_in_queue("N/A")},
      {0, "HetJobIDSet", "HET_JOB_ID_SET", always_in_queue("N/A")},
      {0, "HetJobOffset", "HET_JOB_OFFSET", always_in_queue("N/A")},
      {0, "Origin", "ORIGIN", always_in_queue("NA")},
      {0, "OriginRaw", "ORIGIN_RAW", always_in_queue("NA")},
      {0, "SiblingsActive", "ACTIVE_SIBLINGS", always_in_queue("NA")},
      {0, "SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", always_in_queue("NA")},
      {0, "SiblingsViable", "VIABLE_SIBLINGS", always_in_queue("NA")},
      {0, "SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", always_in_queue("NA")},
  };
}

}  // namespace

std::span<const Field<QueueRow>> squeue_fields() {
  static const std::vector<Field<QueueRow>> kFields = [] {
    std::vector<Field<QueueRow>> all = fields_of_identity();
    std::ranges::move(fields_of_requests(), std::back_inserter(all));
    std::ranges::move(fields_of_times(), std::back_inserter(all));
    return all;
  }();
  return kFields;
}

std::optional<SortKey> sort_key(char letter, const QueueRow& row) {
  const auto seconds = [](base::Duration duration) {
    return static_cast<double>(base::whole_milliseconds(duration)) / 1000;
  };
  if (letter == 'M') return SortKey{seconds(run_time(row.job, row.now)), {}};
  if (letter == 'l') return SortKey{seconds(time_limit(row.job)), {}};
  if (letter == 'L') return SortKey{seconds(time_limit(row.job) - run_time(row.job, row.now)), {}};
  if (letter == 'm') return SortKey{static_cast<double>(memory_of(row.job).value_or(0)), {}};
  const auto fields = squeue_fields();
  // Slurm sorts states by their numbers: those that wait come first.
  if (letter == 't' || letter == 'T') {
    constexpr std::string_view kOrder[] = {"PD", "R", "S", "CD", "CA", "F", "TO", "NF", "PR"};
    const auto at = std::ranges::find(kOrder, state_of(row.job).code) - std::begin(kOrder);
    return SortKey{static_cast<double>(at), {}};
  }
  const auto field = std::ranges::find(fields, letter, &Field<QueueRow>::letter);
  if (field == fields.end()) return std::nullopt;
  constexpr std::string_view kNumbers = "AFKiDCcQpUGd";
  std::string text = field->text(row);
  if (kNumbers.find(letter) == std::string_view::npos) return SortKey{0, std::move(text)};
  return SortKey{std::strtod(text.c_str(), nullptr), std::move(text)};
}

}  // namespace gpu_platform::shims
