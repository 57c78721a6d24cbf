#include "shims/views/scontrol_pages.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/text.h"
#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/command_call.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/record_text.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_gres.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

std::string or_null(std::string text) {
  return text.empty() ? "(null)" : text;
}

std::string yes_no(bool value) {
  return value ? "YES" : "NO";
}

std::string long_limit(const std::optional<base::Duration>& limit, std::string_view none) {
  return limit ? long_elapsed(*limit) : std::string(none);
}

std::string scheduler_of(const v1::Job& job) {
  const v1::Attempt* attempt = latest_attempt(job);
  return attempt != nullptr && attempt->why() == v1::START_REASON_BACKFILL ? "Backfill" : "Main";
}

void add_identity(const QueueEntry& entry, RecordText& record) {
  const v1::Job& job = entry.job;
  const v1::JobSpec& spec = job.spec();
  const std::string& user = spec.user();
  const std::string& array = job.array_id();
  const std::string id = array_task_id(job, entry.members);
  const bool is_joined = id.ends_with(']');
  record.add("JobId", is_joined ? array : job.id());
  if (!array.empty()) {
    const std::size_t begin = id.find('_') + (is_joined ? 2 : 1);
    record.add("ArrayJobId", array);
    record.add("ArrayTaskId", id.substr(begin, id.size() - begin - (is_joined ? 1 : 0)));
    if (const auto throttle = array_throttle(job); !throttle.empty())
      record.add("ArrayTaskThrottle", throttle);
  }
  record.add("JobName", spec.name()).end_line();
  record.add("UserId", fmt::format("{}({})", user, user_number(user)));
  record.add("GroupId", fmt::format("{}({})", group_name(user), group_number(user)));
  record.add("MCS_label", "N/A").end_line();
  record.add("Priority", priority_of(job)).add("Nice", "0");
  record.add("Account", or_null(spec.team())).add("QOS", qos_of(job)).end_line();
  record.add("JobState", state_of(job).name).add("Reason", reason_of(job));
  record.add("Dependency", dependency_of(job)).end_line();
  record.add("Requeue", "1").add("Restarts", restarts_of(job));
  record.add("BatchFlag", is_batch(job) ? "1" : "0").add("Reboot", "0");
  record.add("ExitCode", exit_and_signal(job)).end_line();
}

// What -d adds, below the records of which it is; empty without -d.
struct Details {
  std::string derived_exit;
  std::vector<JobPart> parts;
};

void add_details(const Details& details, RecordText& record) {
  if (details.parts.empty()) return;
  record.add("JOB_GRES", gres_of_job(details.parts)).end_line();
  for (const GresLine& line : gres_lines(details.parts)) {
    record.indent().add("Nodes", line.nodes).add("CPU_IDs", line.cpus).add("Mem", line.memory_mib);
    record.add("GRES", line.gres).end_line();
  }
}

void add_times(const v1::Job& job, base::Instant now, RecordText& record) {
  const auto started = client::time_of(job.started_at());
  const auto ended = client::time_of(job.ended_at());
  const auto start = expected_start(job);
  const auto end = ended || !start ? ended : std::optional(*start + time_limit(job));
  const std::string eligible = slurm_time(client::time_of(job.eligible_at()), "Unknown");
  record.add("RunTime", long_elapsed(run_time(job, now)));
  record.add("TimeLimit", long_elapsed(time_limit(job))).add("TimeMin", "N/A").end_line();
  record.add("SubmitTime", slurm_time(client::time_of(job.submitted_at()), "Unknown"));
  record.add("EligibleTime", eligible).end_line();
  record.add("AccrueTime", eligible).end_line();
  record.add("StartTime", slurm_time(start, "Unknown")).add("EndTime", slurm_time(end, "Unknown"));
  record.add("Deadline", slurm_time(client::time_of(job.spec().deadline()), "N/A")).end_line();
  record.add("SuspendTime", "None").add("SecsPreSuspend", "0");
  record.add("LastSchedEval", slurm_time(started, "Unknown"));
  record.add("Scheduler", scheduler_of(job)).end_line();
}

void add_resources(const v1::Job& job, const BillingWeights& weights, const Details& details,
                   RecordText& record) {
  const std::int64_t nodes = node_count(job);
  const std::int64_t cpus = cpus_of(job).value_or(1);
  const auto memory = memory_share_of(job);
  record.add("Partition", partition_of(job)).add("AllocNode:Sid", "localhost:0").end_line();
  record.add("ReqNodeList", or_null(required_nodes_of(job)));
  record.add("ExcNodeList", or_null(excluded_nodes_of(job))).end_line();
  record.add("NodeList", node_of(job)).end_line();
  if (const std::string first = first_node_of(job); !first.empty())
    record.add("BatchHost", first).end_line();
  const std::int64_t tasks = task_count(job);
  record.add("NumNodes", nodes).add("NumCPUs", cpus).add("NumTasks", tasks);
  record.add("CPUs/Task", std::max<std::int64_t>(1, cpus / tasks));
  record.add("ReqB:S:C:T", "0:0:*:*").end_line();
  record.add("ReqTRES", requested_tres(job, weights)).end_line();
  record.add("AllocTRES", node_of(job).empty() ? "(null)" : held_tres(job, weights)).end_line();
  record.add("Socks/Node", "*").add("NtasksPerN:B:S:C", "0:0:*:*").add("CoreSpec", "*").end_line();
  add_details(details, record);
  record.add("MinCPUsNode", cpus_of_each_node(job));
  record.add(memory && memory->is_of_each_cpu ? "MinMemoryCPU" : "MinMemoryNode",
             memory ? slurm_memory(memory->bytes) : "0");
  record.add("MinTmpDiskNode", "0").end_line();
  record.add("Features", types_of(job)).add("DelayBoot", "00:00:00").end_line();
  if (const std::string name = job.spec().reservation(); !name.empty())
    record.add("Reservation", name).end_line();
  record.add("OverSubscribe", "OK").add("Contiguous", "0");
  record.add("Licenses", "(null)").add("Network", "(null)").end_line();
}

void add_files(const v1::Job& job, RecordText& record) {
  record.add("Command", command_of(job)).end_line();
  record.add("WorkDir", job.spec().workdir()).end_line();
  if (const std::string comment = comment_of(job); !comment.empty())
    record.add("Comment", comment).end_line();
  record.add("StdErr", error_file_of(job)).end_line();
  record.add("StdIn", "/dev/null").end_line();
  record.add("StdOut", output_file_of(job)).end_line();
  for (const auto& [key, per] :
       {std::pair{"TresPerJob", GpusPer::kJob}, std::pair{"TresPerNode", GpusPer::kNode},
        std::pair{"TresPerSocket", GpusPer::kSocket}, std::pair{"TresPerTask", GpusPer::kTask}}) {
    if (const std::string gpus = gpus_asked(job, per); !gpus.empty())
      record.add(key, "gres/" + gpus).end_line();
  }
}

// "MAINT,WEEKDAY,SPEC_NODES"
std::string flags_of_reservation(const v1::Reservation& reservation) {
  std::string flags = reservation.maintenance() ? "MAINT," : "";
  constexpr std::pair<v1::ReservationRepeat, std::string_view> kRepeats[] = {
      {v1::RESERVATION_REPEAT_HOURLY, "HOURLY,"},
      {v1::RESERVATION_REPEAT_DAILY, "DAILY,"},
      {v1::RESERVATION_REPEAT_WEEKDAYS, "WEEKDAY,"},
      {v1::RESERVATION_REPEAT_WEEKENDS, "WEEKEND,"},
      {v1::RESERVATION_REPEAT_WEEKLY, "WEEKLY,"}};
  for (const auto& [repeat, flag] : kRepeats) {
    if (reservation.repeat() == repeat) flags += flag;
  }
  return flags + "SPEC_NODES";
}

std::string page_of_job(const QueueEntry& entry, const BillingWeights& weights,
                        const Details& details, bool is_one_line, base::Instant now) {
  RecordText record(is_one_line);
  const v1::Job& job = entry.job;
  add_identity(entry, record);
  if (!details.derived_exit.empty()) record.add("DerivedExitCode", details.derived_exit).end_line();
  add_times(job, now, record);
  add_resources(job, weights, details, record);
  add_files(job, record);
  return std::move(record).text();
}

}  // namespace

std::string job_page(const QueueEntry& entry, const BillingWeights& weights, bool is_one_line,
                     base::Instant now) {
  return page_of_job(entry, weights, {}, is_one_line, now);
}

std::string detailed_job_page(const QueueEntry& entry, const BillingWeights& weights,
                              const std::vector<NodeView>& nodes, bool is_one_line,
                              base::Instant now) {
  return page_of_job(entry, weights, {derived_exit_of(entry.job), parts_of(entry.job, nodes)},
                     is_one_line, now);
}

std::string node_page(const NodeView& node, const Site& site, bool is_one_line) {
  RecordText record(is_one_line);
  std::vector<std::string> partitions;
  for (const Partition& partition : site.partitions) {
    if (is_in(node, partition)) partitions.push_back(partition.name);
  }
  const std::int64_t sockets = std::max<std::int64_t>(1, node.sockets);
  record.add("NodeName", node.name).add("Arch", "x86_64");
  record.add("CoresPerSocket", node.cpus / sockets).end_line();
  record.add("CPUAlloc", node.cpus_used).add("CPUEfctv", node.cpus).add("CPUTot", node.cpus);
  record.add("CPULoad", "0.00").end_line();
  record.add("AvailableFeatures", features_of(node)).end_line();
  record.add("ActiveFeatures", features_of(node)).end_line();
  record.add("Gres", gres_of(node)).end_line();
  record.add("GresUsed", gres_used_of(node)).end_line();
  record.add("NodeAddr", node.name).add("NodeHostName", node.name);
  record.add("Version", kSlurmVersion).end_line();
  record.add("OS", "Linux").end_line();
  record.add("RealMemory", node.memory_mib).add("AllocMem", node.memory_used_mib);
  record.add("FreeMem", node.memory_mib - node.memory_used_mib);
  record.add("Sockets", sockets).add("Boards", "1").end_line();
  record.add("State", full_state(node)).add("ThreadsPerCore", "1").add("TmpDisk", "0");
  record.add("Weight", "1").add("Owner", "N/A").add("MCS_label", "N/A").end_line();
  record.add("Partitions", cli::joined(partitions, ",")).end_line();
  record.add("BootTime", "Unknown").add("SlurmdStartTime", "Unknown").end_line();
  record.add("LastBusyTime", "Unknown").add("ResumeAfterTime", "None").end_line();
  record.add("CfgTRES", trackable_of(node)).end_line();
  record.add("AllocTRES", trackable_used_of(node)).end_line();
  record.add("CurrentWatts", "0").add("AveWatts", "0");
  if (!node.reason.empty()) {
    const std::string by =
        node.reason_at
            ? fmt::format(" [{}@{}]", node.reason_user.empty() ? "root" : node.reason_user,
                          slurm_time(node.reason_at, "Unknown"))
            : "";
    record.end_line().add("Reason", node.reason + by);
  }
  return std::move(record).text();
}

std::string partition_page(const Partition& partition, const BillingWeights& weights,
                           const std::vector<NodeView>& nodes, bool is_one_line) {
  const PartitionTres tres = tres_of_partition(partition, weights, nodes);
  RecordText record(is_one_line);
  record.add("PartitionName", partition.name).end_line();
  record.add("AllowGroups", "ALL").add("AllowAccounts", "ALL").add("AllowQos", "ALL").end_line();
  record.add("AllocNodes", "ALL").add("Default", yes_no(partition.is_default)).add("QoS", "N/A");
  record.end_line();
  record.add("DefaultTime", long_limit(partition.default_time, "NONE"))
      .add("DisableRootJobs", "NO");
  record.add("ExclusiveUser", "NO")
      .add("ExclusiveTopo", "NO")
      .add("GraceTime", "0")
      .add("Hidden", "NO")
      .end_line();
  record.add("MaxNodes",
             partition.max_nodes ? fmt::format("{}", *partition.max_nodes) : "UNLIMITED");
  record.add("MaxTime", long_limit(partition.shown_max_time(), "UNLIMITED")).add("MinNodes", "0");
  record.add("LLN", "NO").add("MaxCPUsPerNode", "UNLIMITED");
  record.add("MaxCPUsPerSocket", "UNLIMITED").end_line();
  record.add("Nodes", host_list(tres.names)).end_line();
  record.add("PriorityJobFactor", "1").add("PriorityTier", "1").add("RootOnly", "NO");
  record.add("ReqResv", "NO").add("OverSubscribe", "NO").end_line();
  record.add("OverTimeLimit", "NONE").add("PreemptMode", "REQUEUE").end_line();
  record.add("State", "UP").add("TotalCPUs", tres.cpus).add("TotalNodes", tres.nodes());
  record.add("SelectTypeParameters", "NONE").end_line();
  record.add("JobDefaults", "(null)").end_line();
  record.add("DefMemPerNode", "UNLIMITED").add("MaxMemPerNode", "UNLIMITED").end_line();
  record.add("TRES", tres.text);
  if (!tres.weights.empty()) record.end_line().add("TRESBillingWeights", tres.weights);
  return std::move(record).text();
}

std::string reservation_page(const v1::Reservation& reservation, const std::vector<NodeView>& nodes,
                             bool is_one_line) {
  const auto begin = client::time_of(reservation.begin());
  const auto end = client::time_of(reservation.end());
  std::int64_t cores = 0;
  for (const v1::ReservedNode& part : reservation.nodes()) {
    const auto node = std::ranges::find(nodes, part.node(), &NodeView::name);
    if (node != nodes.end() && part.whole_node()) cores += node->cpus;
  }
  RecordText record(is_one_line);
  record.add("ReservationName", reservation.name());
  record.add("StartTime", slurm_time(begin, "Unknown")).add("EndTime", slurm_time(end, "Unknown"));
  record.add("Duration", begin && end ? long_elapsed(*end - *begin) : "UNLIMITED").end_line();
  record.add("Nodes", nodes_of_reservation(reservation));
  record.add("NodeCnt", reservation.nodes().size()).add("CoreCnt", cores);
  record.add("Features", "(null)").add("PartitionName", "(null)");
  record.add("Flags", flags_of_reservation(reservation));
  record.end_line();
  record.add("TRES", fmt::format("cpu={},gres/gpu={}", cores, reservation.gpu_count()));
  record.end_line();
  record.add("Users", or_null(fmt::format("{}", fmt::join(reservation.users(), ","))));
  record.add("Groups", "(null)");
  record.add("Accounts", or_null(fmt::format("{}", fmt::join(reservation.teams(), ","))));
  record.add("Licenses", "(null)");
  record.add("State", reservation.active() ? "ACTIVE" : "INACTIVE");
  record.add("BurstBuffer", "(null)").end_line();
  record.add("MaxStartDelay", "(null)");
  return std::move(record).text();
}

std::string step_page(const v1::Job& job, const StepView& step, bool is_one_line) {
  RecordText record(is_one_line);
  record.add("StepId", array_task_id(job) + "." + step.id);
  record.add("UserId", user_number(job.spec().user()));
  record.add("StartTime", slurm_time(step.started_at, "Unknown"));
  record.add("TimeLimit", "UNLIMITED").end_line();
  record.add("State", step.state.name).add("Partition", partition_of(job));
  record.add("NodeList", host_list(step.nodes)).end_line();
  record.add("Nodes", std::ssize(step.nodes)).add("CPUs", step.cpus);
  record.add("Tasks", step.tasks).add("Name", step.name).add("Network", "(null)").end_line();
  record.add("TRES", trackable(step)).end_line();
  record.add("ResvPorts", "(null)").end_line();
  record.add("CPUFreqReq", "Default").end_line();
  record.add("SrunHost:Pid", "(null):0");
  return std::move(record).text();
}

std::string config_page(base::Instant now, const std::string& host) {
  const std::pair<std::string_view, std::string> values[] = {
      {"AccountingStorageEnforce", "none"},
      {"AccountingStorageTRES",
       "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu,gres/mps,gres/shard"},
      {"AccountingStorageType", "accounting_storage/gpu-platform"},
      {"AuthType", "auth/peer-credentials"},
      {"ClusterName", std::string(kCluster)},
      {"GresTypes", "gpu,mps,shard"},
      {"JobRequeue", "1"},
      {"KillOnBadExit", "0"},
      {"LaunchParameters", "(null)"},
      {"MinJobAge", "300 sec"},
      {"MpiDefault", "none"},
      {"PreemptMode", "REQUEUE"},
      {"ProctrackType", "proctrack/cgroup"},
      {"SchedulerType", "sched/backfill"},
      {"SelectType", "select/cons_tres"},
      {"SelectTypeParameters", "CR_CPU_MEMORY"},
      {"SLURM_VERSION", std::string(kSlurmVersion)},
      {"SlurmctldHost[0]", host},
      {"TaskPlugin", "task/cgroup"},
      {"TopologyPlugin", "topology/none"},
  };
  std::string text = fmt::format("Configuration data as of {}\n", slurm_time(now, "Unknown"));
  for (const auto& [key, value] : values) text += fmt::format("{:<23} = {}\n", key, value);
  return text + fmt::format("\nSlurmctld(primary) at {} is UP\n", host);
}

}  // namespace gpu_platform::shims
