#include "shims/views/scontrol_pages.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/job_text.h"
#include "cli/text.h"
#include "shims/command_call.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/record_text.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_gres.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

std::string or_null(std::string text) {
  return text.empty() ? "(null)" : text;
}

std::string yes_no(bool value) {
  return value ? "YES" : "NO";
}

std::string long_limit(const std::optional<base::Duration>& limit, std::string_view none) {
  return limit ? long_elapsed(*limit) : std::string(none);
}

std::string scheduler_of(const Json& job) {
  const Json& attempts = cli::list_at(job, "attempts");
  const bool is_backfilled = !attempts.empty() && text_at(attempts.back(), "why") == "BACKFILL";
  return is_backfilled ? "Backfill" : "Main";
}

void add_identity(const Json& job, Page& page) {
  const Json& spec = cli::spec_of(job);
  const std::string user = text_at(spec, "user");
  const std::string array = text_at(job, "array_id");
  const std::string id = array_task_id(job);
  const bool is_joined = id.ends_with(']');
  page.add("JobId", is_joined ? array : text_at(job, "id"));
  if (!array.empty()) {
    const std::size_t begin = id.find('_') + (is_joined ? 2 : 1);
    page.add("ArrayJobId", array);
    page.add("ArrayTaskId", id.substr(begin, id.size() - begin - (is_joined ? 1 : 0)));
    if (const auto throttle = array_throttle(job); !throttle.empty())
      page.add("ArrayTaskThrottle", throttle);
  }
  page.add("JobName", text_at(spec, "name")).end_line();
  page.add("UserId", fmt::format("{}({})", user, user_number(user)));
  page.add("GroupId", fmt::format("{}({})", group_name(user), group_number(user)));
  page.add("MCS_label", "N/A").end_line();
  page.add("Priority", priority_of(job)).add("Nice", "0");
  page.add("Account", or_null(text_at(spec, "team"))).add("QOS", qos_of(job)).end_line();
  page.add("JobState", state_of(job).name).add("Reason", reason_of(job));
  page.add("Dependency", dependency_of(job)).end_line();
  page.add("Requeue", "1").add("Restarts", restarts_of(job));
  page.add("BatchFlag", is_batch(job) ? "1" : "0").add("Reboot", "0");
  page.add("ExitCode", exit_and_signal(job)).end_line();
}

// What -d adds, below the records of which it is; empty without -d.
struct Details {
  std::string derived_exit;
  std::vector<JobPart> parts;
};

void add_details(const Details& details, Page& page) {
  if (details.parts.empty()) return;
  page.add("JOB_GRES", gres_of_job(details.parts)).end_line();
  for (const GresLine& line : gres_lines(details.parts)) {
    page.indent().add("Nodes", line.nodes).add("CPU_IDs", line.cpus).add("Mem", line.memory_mib);
    page.add("GRES", line.gres).end_line();
  }
}

void add_times(const Json& job, base::Instant now, Page& page) {
  const auto started = cli::time_at(job, "started_at");
  const auto ended = cli::time_at(job, "ended_at");
  const auto start = expected_start(job);
  const auto end = ended || !start ? ended : std::optional(*start + time_limit(job));
  const std::string eligible = slurm_time(cli::time_at(job, "eligible_at"), "Unknown");
  page.add("RunTime", long_elapsed(run_time(job, now)));
  page.add("TimeLimit", long_elapsed(time_limit(job))).add("TimeMin", "N/A").end_line();
  page.add("SubmitTime", slurm_time(cli::time_at(job, "submitted_at"), "Unknown"));
  page.add("EligibleTime", eligible).end_line();
  page.add("AccrueTime", eligible).end_line();
  page.add("StartTime", slurm_time(start, "Unknown")).add("EndTime", slurm_time(end, "Unknown"));
  page.add("Deadline", slurm_time(cli::time_at(cli::spec_of(job), "deadline"), "N/A")).end_line();
  page.add("SuspendTime", "None").add("SecsPreSuspend", "0");
  page.add("LastSchedEval", slurm_time(started, "Unknown"));
  page.add("Scheduler", scheduler_of(job)).end_line();
}

void add_resources(const Json& job, const Details& details, Page& page) {
  const std::int64_t nodes = node_count(job);
  const std::int64_t cpus = cpus_of(job).value_or(1);
  const auto memory = memory_share_of(job);
  page.add("Partition", partition_of(job)).add("AllocNode:Sid", "localhost:0").end_line();
  page.add("ReqNodeList", or_null(required_nodes_of(job)));
  page.add("ExcNodeList", or_null(excluded_nodes_of(job))).end_line();
  page.add("NodeList", node_of(job)).end_line();
  if (const std::string first = first_node_of(job); !first.empty())
    page.add("BatchHost", first).end_line();
  const std::int64_t tasks = task_count(job);
  page.add("NumNodes", nodes).add("NumCPUs", cpus).add("NumTasks", tasks);
  page.add("CPUs/Task", std::max<std::int64_t>(1, cpus / tasks));
  page.add("ReqB:S:C:T", "0:0:*:*").end_line();
  page.add("ReqTRES", trackable(job)).end_line();
  page.add("AllocTRES", node_of(job).empty() ? "(null)" : trackable(job)).end_line();
  page.add("Socks/Node", "*").add("NtasksPerN:B:S:C", "0:0:*:*").add("CoreSpec", "*").end_line();
  add_details(details, page);
  page.add("MinCPUsNode", cpus_of_each_node(job));
  page.add(memory && memory->is_of_each_cpu ? "MinMemoryCPU" : "MinMemoryNode",
           memory ? slurm_memory(memory->bytes) : "0");
  page.add("MinTmpDiskNode", "0").end_line();
  page.add("Features", types_of(job)).add("DelayBoot", "00:00:00").end_line();
  if (const std::string name = text_at(cli::spec_of(job), "reservation"); !name.empty())
    page.add("Reservation", name).end_line();
  page.add("OverSubscribe", "OK").add("Contiguous", "0");
  page.add("Licenses", "(null)").add("Network", "(null)").end_line();
}

void add_files(const Json& job, Page& page) {
  const std::string output = cli::file_of(job, "output");
  const std::string error = cli::file_of(job, "error");
  page.add("Command", command_of(job)).end_line();
  page.add("WorkDir", text_at(cli::spec_of(job), "workdir")).end_line();
  if (const std::string comment = comment_of(job); !comment.empty())
    page.add("Comment", comment).end_line();
  page.add("StdErr", error.empty() ? output : error).end_line();
  page.add("StdIn", "/dev/null").end_line();
  page.add("StdOut", output).end_line();
  for (const auto& [key, per] :
       {std::pair{"TresPerJob", GpusPer::kJob}, std::pair{"TresPerNode", GpusPer::kNode},
        std::pair{"TresPerSocket", GpusPer::kSocket}, std::pair{"TresPerTask", GpusPer::kTask}}) {
    if (const std::string gpus = gpus_asked(job, per); !gpus.empty())
      page.add(key, "gres/" + gpus).end_line();
  }
}

std::string partition_nodes(const std::vector<NodeView>& nodes, const Partition& partition) {
  std::vector<std::string> names;
  for (const NodeView& node : nodes) {
    if (is_in(node, partition)) names.push_back(node.name);
  }
  return host_list(std::move(names));
}

// "MAINT,WEEKDAY,SPEC_NODES"
std::string flags_of_reservation(const Json& reservation) {
  std::string flags = cli::flag_at(reservation, "maintenance") ? "MAINT," : "";
  std::string repeat = text_at(reservation, "repeat");
  if (repeat.ends_with('S')) repeat.pop_back();  // WEEKDAYS, WEEKENDS
  if (!repeat.empty() && repeat != "NEVER") flags += repeat + ",";
  return flags + "SPEC_NODES";
}

std::string page_of_job(const Json& job, const Details& details, bool is_one_line,
                        base::Instant now) {
  Page page(is_one_line);
  add_identity(job, page);
  if (!details.derived_exit.empty()) page.add("DerivedExitCode", details.derived_exit).end_line();
  add_times(job, now, page);
  add_resources(job, details, page);
  add_files(job, page);
  return std::move(page).text();
}

}  // namespace

std::string job_page(const Json& job, bool is_one_line, base::Instant now) {
  return page_of_job(job, {}, is_one_line, now);
}

std::string detailed_job_page(const Json& job, const std::vector<NodeView>& nodes, bool is_one_line,
                              base::Instant now) {
  return page_of_job(job, {derived_exit_of(job), parts_of(job, nodes)}, is_one_line, now);
}

std::string node_page(const NodeView& node, const Site& site, bool is_one_line) {
  Page page(is_one_line);
  std::vector<std::string> partitions;
  for (const Partition& partition : site.partitions) {
    if (is_in(node, partition)) partitions.push_back(partition.name);
  }
  const std::int64_t sockets = std::max<std::int64_t>(1, node.sockets);
  page.add("NodeName", node.name).add("Arch", "x86_64");
  page.add("CoresPerSocket", node.cpus / sockets).end_line();
  page.add("CPUAlloc", node.cpus_used).add("CPUEfctv", node.cpus).add("CPUTot", node.cpus);
  page.add("CPULoad", "0.00").end_line();
  page.add("AvailableFeatures", features_of(node)).end_line();
  page.add("ActiveFeatures", features_of(node)).end_line();
  page.add("Gres", gres_of(node)).end_line();
  page.add("GresUsed", gres_used_of(node)).end_line();
  page.add("NodeAddr", node.name).add("NodeHostName", node.name);
  page.add("Version", kSlurmVersion).end_line();
  page.add("OS", "Linux").end_line();
  page.add("RealMemory", node.memory_mib).add("AllocMem", node.memory_used_mib);
  page.add("FreeMem", node.memory_mib - node.memory_used_mib);
  page.add("Sockets", sockets).add("Boards", "1").end_line();
  page.add("State", full_state(node)).add("ThreadsPerCore", "1").add("TmpDisk", "0");
  page.add("Weight", "1").add("Owner", "N/A").add("MCS_label", "N/A").end_line();
  page.add("Partitions", cli::joined(partitions, ",")).end_line();
  page.add("BootTime", "Unknown").add("SlurmdStartTime", "Unknown").end_line();
  page.add("LastBusyTime", "Unknown").add("ResumeAfterTime", "None").end_line();
  page.add("CfgTRES", trackable_of(node)).end_line();
  page.add("AllocTRES", trackable_used_of(node)).end_line();
  page.add("CurrentWatts", "0").add("AveWatts", "0");
  if (!node.reason.empty()) {
    const std::string by =
        node.reason_at
            ? fmt::format(" [{}@{}]", node.reason_user.empty() ? "root" : node.reason_user,
                          slurm_time(node.reason_at, "Unknown"))
            : "";
    page.end_line().add("Reason", node.reason + by);
  }
  return std::move(page).text();
}

std::string partition_page(const Partition& partition, const std::vector<NodeView>& nodes,
                           bool is_one_line) {
  std::int64_t cpus = 0;
  std::int64_t count = 0;
  std::int64_t memory = 0;
  std::int64_t gpus = 0;
  for (const NodeView& node : nodes) {
    if (!is_in(node, partition)) continue;
    ++count;
    cpus += node.cpus;
    memory += node.memory_mib;
    for (const NodeGpus& of_type : node.gpus) gpus += of_type.total;
  }
  Page page(is_one_line);
  page.add("PartitionName", partition.name).end_line();
  page.add("AllowGroups", "ALL").add("AllowAccounts", "ALL").add("AllowQos", "ALL").end_line();
  page.add("AllocNodes", "ALL").add("Default", yes_no(partition.is_default)).add("QoS", "N/A");
  page.end_line();
  page.add("DefaultTime", long_limit(partition.default_time, "NONE")).add("DisableRootJobs", "NO");
  page.add("ExclusiveUser", "NO")
      .add("ExclusiveTopo", "NO")
      .add("GraceTime", "0")
      .add("Hidden", "NO")
      .end_line();
  page.add("MaxNodes", partition.max_nodes ? fmt::format("{}", *partition.max_nodes) : "UNLIMITED");
  page.add("MaxTime", long_limit(partition.max_time, "UNLIMITED")).add("MinNodes", "0");
  page.add("LLN", "NO").add("MaxCPUsPerNode", "UNLIMITED");
  page.add("MaxCPUsPerSocket", "UNLIMITED").end_line();
  page.add("Nodes", partition_nodes(nodes, partition)).end_line();
  page.add("PriorityJobFactor", "1").add("PriorityTier", "1").add("RootOnly", "NO");
  page.add("ReqResv", "NO").add("OverSubscribe", "NO").end_line();
  page.add("OverTimeLimit", "NONE").add("PreemptMode", "REQUEUE").end_line();
  page.add("State", "UP").add("TotalCPUs", cpus).add("TotalNodes", count);
  page.add("SelectTypeParameters", "NONE").end_line();
  page.add("JobDefaults", "(null)").end_line();
  page.add("DefMemPerNode", "UNLIMITED").add("MaxMemPerNode", "UNLIMITED").end_line();
  page.add("TRES", fmt::format("cpu={},mem={},node={},billing={}{}", cpus,
                               slurm_memory(memory * base::kMiB.value()), count, cpus,
                               gpus > 0 ? fmt::format(",gres/gpu={}", gpus) : ""));
  return std::move(page).text();
}

std::string reservation_page(const Json& reservation, const std::vector<NodeView>& nodes,
                             bool is_one_line) {
  const auto begin = cli::time_at(reservation, "begin");
  const auto end = cli::time_at(reservation, "end");
  const Json& reserved = cli::list_at(reservation, "nodes");
  std::int64_t cores = 0;
  for (const Json& part : reserved) {
    const auto node = std::ranges::find(nodes, text_at(part, "node"), &NodeView::name);
    if (node != nodes.end() && cli::flag_at(part, "whole_node")) cores += node->cpus;
  }
  Page page(is_one_line);
  page.add("ReservationName", text_at(reservation, "name"));
  page.add("StartTime", slurm_time(begin, "Unknown")).add("EndTime", slurm_time(end, "Unknown"));
  page.add("Duration", begin && end ? long_elapsed(*end - *begin) : "UNLIMITED").end_line();
  page.add("Nodes", nodes_of_reservation(reservation));
  page.add("NodeCnt", static_cast<std::int64_t>(reserved.size())).add("CoreCnt", cores);
  page.add("Features", "(null)").add("PartitionName", "(null)");
  page.add("Flags", flags_of_reservation(reservation));
  page.end_line();
  page.add("TRES", fmt::format("cpu={},gres/gpu={}", cores,
                               cli::integer_at(reservation, "gpu_count").value_or(0)));
  page.end_line();
  page.add("Users", or_null(cli::joined(cli::texts_at(reservation, "users"), ",")));
  page.add("Groups", "(null)");
  page.add("Accounts", or_null(cli::joined(cli::texts_at(reservation, "teams"), ",")));
  page.add("Licenses", "(null)");
  page.add("State", cli::flag_at(reservation, "active") ? "ACTIVE" : "INACTIVE");
  page.add("BurstBuffer", "(null)").end_line();
  page.add("MaxStartDelay", "(null)");
  return std::move(page).text();
}

std::string step_page(const Json& job, const StepView& step, bool is_one_line) {
  Page page(is_one_line);
  page.add("StepId", array_task_id(job) + "." + step.id);
  page.add("UserId", user_number(text_at(cli::spec_of(job), "user")));
  page.add("StartTime", slurm_time(step.started_at, "Unknown"));
  page.add("TimeLimit", "UNLIMITED").end_line();
  page.add("State", step.state.name).add("Partition", partition_of(job));
  page.add("NodeList", host_list(step.nodes)).end_line();
  page.add("Nodes", std::ssize(step.nodes)).add("CPUs", step.cpus);
  page.add("Tasks", step.tasks).add("Name", step.name).add("Network", "(null)").end_line();
  page.add("TRES", trackable(step)).end_line();
  page.add("ResvPorts", "(null)").end_line();
  page.add("CPUFreqReq", "Default").end_line();
  page.add("SrunHost:Pid", "(null):0");
  return std::move(page).text();
}

std::string config_page(base::Instant now, const std::string& host) {
  const std::pair<std::string_view, std::string> values[] = {
      {"AccountingStorageEnforce", "none"},
      {"AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu"},
      {"AccountingStorageType", "accounting_storage/gpu-platform"},
      {"AuthType", "auth/peer-credentials"},
      {"ClusterName", std::string(kCluster)},
      {"GresTypes", "gpu"},
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
