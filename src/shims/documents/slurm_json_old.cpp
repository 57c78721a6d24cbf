#include "shims/documents/slurm_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/shared_gres.h"
#include "shims/text/slurm_times.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"
#include "shims/views/step_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

std::string old_empty_if_null(std::string text) {
  return text == "(null)" ? std::string() : text;
}

std::int64_t old_unix_seconds(const std::optional<base::Instant>& at) {
  return at ? at->unix_ns() / 1'000'000'000 : 0;
}

std::int64_t old_unix_seconds(const google::protobuf::Timestamp& at) {
  return old_unix_seconds(client::time_of(at));
}

std::int64_t old_number_of(const std::string& text) {
  try {
    return text.empty() ? 0 : std::stoll(text);
  } catch (const std::exception&) {
    return 0;
  }
}

Json old_node_entry(const NodeView& node, const Site& site) {
  Json partitions = Json::array();
  for (const Partition& partition : site.partitions) {
    if (is_in(node, partition)) partitions.push_back(partition.name);
  }
  Json flags = Json::array();
  if (node.is_draining) flags.push_back("DRAIN");
  if (node.is_maintained) flags.push_back("MAINTENANCE");
  if (node.is_reserved) flags.push_back("RESERVED");
  if (node.is_completing) flags.push_back("COMPLETING");
  if (node.is_silent) flags.push_back("NOT_RESPONDING");
  const std::string features = old_empty_if_null(features_of(node));
  const std::string gres = old_empty_if_null(gres_of(node));
  return {{"architecture", "x86_64"},
          {"boards", 1},
          {"boot_time", 0},
          {"comment", ""},
          {"cores", node.cpus / std::max<std::int64_t>(1, node.sockets)},
          {"cpu_binding", 0},
          {"cpu_load", 0},
          {"extra", ""},
          {"free_memory", node.memory_mib - node.memory_used_mib},
          {"cpus", node.cpus},
          {"last_busy", 0},
          {"features", features},
          {"active_features", features},
          {"gres", gres},
          {"gres_drained", "N/A"},
          {"gres_used", old_empty_if_null(gres_used_of(node))},
          {"mcs_label", ""},
          {"name", node.name},
          {"next_state_after_reboot", "invalid"},
          {"address", node.name},
          {"hostname", node.name},
          {"state", node.base_state},
          {"state_flags", flags},
          {"next_state_after_reboot_flags", Json::array()},
          {"operating_system", "Linux"},
          {"owner", nullptr},
          {"partitions", partitions},
          {"port", 0},
          {"real_memory", node.memory_mib},
          {"reason", node.reason},
          {"reason_changed_at", old_unix_seconds(node.reason_at)},
          {"reason_set_by_user", node.reason_user.empty() ? Json(nullptr) : Json(node.reason_user)},
          {"slurmd_start_time", 0},
          {"sockets", node.sockets},
          {"threads", 1},
          {"temporary_disk", 0},
          {"weight", 1},
          {"tres", trackable_of(node)},
          {"slurmd_version", GP_VERSION},
          {"alloc_memory", node.memory_used_mib},
          {"alloc_cpus", node.cpus_used},
          {"idle_cpus", node.cpus - node.cpus_used},
          {"tres_used", trackable_used_of(node)},
          {"tres_weighted", static_cast<double>(node.cpus_used)}};
}

Json old_gres_detail(const v1::Job& job) {
  Json detail = Json::array();
  if (const std::string part = shared_gres_of(job.spec()); !part.empty()) {
    if (!job.gpus().empty()) detail.push_back(fmt::format("{}(IDX:{})", part, job.gpus(0).index()));
    return detail;
  }
  std::string node;
  std::vector<std::int64_t> indices;
  const auto flush = [&] {
    if (!node.empty())
      detail.push_back(fmt::format("gpu:{}(IDX:{})", indices.size(), cli::ranges_of(indices)));
    indices.clear();
  };
  for (const v1::GpuUse& gpu : job.gpus()) {
    if (gpu.node() != node) flush();
    node = gpu.node();
    indices.push_back(gpu.index());
  }
  flush();
  return detail;
}

std::int64_t old_end_seconds(const v1::Job& job) {
  const auto ended = client::time_of(job.ended_at());
  const auto started = client::time_of(job.started_at());
  if (ended || !started) return old_unix_seconds(ended);
  return old_unix_seconds(*started + time_limit(job));
}

Json old_job_entry(const v1::Job& job, const BillingWeights& weights) {
  const v1::JobSpec& spec = job.spec();
  const std::string user = spec.user();
  const std::string array = job.array_id();
  const auto memory = memory_share_of(job);
  const auto megabytes = [&](bool is_of_each_cpu) {
    const bool is_told = memory && memory->is_of_each_cpu == is_of_each_cpu;
    return is_told ? Json(memory->bytes / base::kMiB.value()) : Json(0);
  };
  const Json null = nullptr;
  const auto gpus = [&](GpusPer per) {
    const std::string asked = gpus_asked(job, per);
    return asked.empty() ? asked : "gres:" + asked;
  };
  return {
      {"account", spec.team()},
      {"accrue_time", old_unix_seconds(job.eligible_at())},
      {"admin_comment", ""},
      {"array_job_id", old_number_of(array)},
      {"array_task_id", array.empty() ? null : Json(old_number_of(array_index_of(job)))},
      {"array_max_tasks", old_number_of(array_throttle(job))},
      {"array_task_string", ""},
      {"association_id", 0},
      {"batch_features", ""},
      {"batch_flag", is_batch(job)},
      {"batch_host", first_node_of(job)},
      {"flags", Json::array()},
      {"burst_buffer", ""},
      {"burst_buffer_state", ""},
      {"cluster", kCluster},
      {"cluster_features", ""},
      {"command", old_empty_if_null(command_of(job))},
      {"comment", comment_of(job)},
      {"container", ""},
      {"contiguous", false},
      {"billable_tres", static_cast<double>(cpus_of(job).value_or(0))},
      {"cpus_per_task", cpus_of_each_task(job)},
      {"deadline", old_unix_seconds(spec.deadline())},
      {"delay_boot", 0},
      {"dependency", old_empty_if_null(dependency_of(job))},
      {"derived_exit_code", exit_status_of(job)},
      {"eligible_time", old_unix_seconds(job.eligible_at())},
      {"end_time", old_end_seconds(job)},
      {"excluded_nodes", excluded_nodes_of(job)},
      {"exit_code", exit_status_of(job)},
      {"features", old_empty_if_null(types_of(job))},
      {"gres_detail", old_gres_detail(job)},
      {"group_id", group_number(user)},
      {"group_name", group_name(user)},
      {"job_id", old_number_of(job.id())},
      {"job_resources", node_of(job).empty() ? Json::object()
                                             : Json{{"nodes", node_of(job)},
                                                    {"allocated_cpus", cpus_of(job).value_or(0)},
                                                    {"allocated_hosts", node_count(job)}}},
      {"job_state", state_of(job).name},
      {"last_sched_evaluation", 0},
      {"licenses", ""},
      {"max_cpus", 0},
      {"max_nodes", 0},
      {"name", spec.name()},
      {"nodes", node_of(job)},
      {"nice", 0},
      {"cpus", cpus_of(job).value_or(1)},
      {"node_count", node_count(job)},
      {"tasks", task_count(job)},
      {"partition", partition_of(job)},
      {"memory_per_node", megabytes(false)},
      {"memory_per_cpu", megabytes(true)},
      {"minimum_cpus_per_node", cpus_of_each_node(job)},
      {"minimum_tmp_disk_per_node", 0},
      {"priority", old_number_of(priority_of(job))},
      {"qos", qos_of(job)},
      {"reboot", false},
      {"required_nodes", required_nodes_of(job)},
      {"requeue", true},
      {"restart_cnt", restarts_of(job)},
      {"resv_name", spec.reservation()},
      {"start_time", old_unix_seconds(expected_start(job))},
      {"state_description", job.wait_reason().text()},
      {"state_reason", reason_of(job)},
      {"standard_error", error_file_of(job)},
      {"standard_input", "/dev/null"},
      {"standard_output", output_file_of(job)},
      {"submit_time", old_unix_seconds(job.submitted_at())},
      {"suspend_time", 0},
      {"system_comment", ""},
      {"time_limit", base::whole_milliseconds(time_limit(job)) / 60'000},
      {"time_minimum", 0},
      {"tres_per_job", gpus(GpusPer::kJob)},
      {"tres_per_node", gpus(GpusPer::kNode)},
      {"tres_per_task", gpus(GpusPer::kTask)},
      {"tres_req_str", requested_tres(job, weights)},
      {"tres_alloc_str", node_of(job).empty() ? "" : held_tres(job, weights)},
      {"user_id", old_number_of(user_number(user))},
      {"user_name", user},
      {"wckey", ""},
      {"current_working_directory", spec.workdir()}};
}

// "cpu=8,gres/gpu=2" as Slurm's list of counted things.
Json old_tres_list(const std::string& text) {
  Json list = Json::array();
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = item.substr(std::min(key.size() + 1, item.size()));
    const bool is_gres = key.starts_with("gres/");
    list.push_back({{"type", is_gres ? "gres" : key},
                    {"name", is_gres ? key.substr(5) : ""},
                    {"count", std::string(value)}});
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
  }
  return list;
}

// Counts are numbers; memory is in MiB.
Json old_counted_tres(const v1::Job& job, const std::string& text) {
  Json list = old_tres_list(text);
  for (Json& entry : list) {
    const bool is_memory = entry["type"] == "mem";
    entry["count"] = is_memory ? memory_of(job).value_or(0) / base::kMiB.value()
                               : old_number_of(entry["count"].get<std::string>());
  }
  return list;
}

// "0:9"
Json old_exit_code_entry(const std::string& both) {
  const std::string signal = both.substr(both.find(':') + 1);
  Json entry = {{"return_code", old_number_of(both)}};
  entry["status"] = signal == "0" ? "SUCCESS" : "SIGNALED";
  if (signal == "0" && old_number_of(both) != 0) entry["status"] = "ERROR";
  if (signal != "0") entry["signal"] = {{"signal_id", old_number_of(signal)}};
  return entry;
}

std::int64_t old_elapsed_seconds(const v1::Job& job, base::Instant now) {
  return base::whole_milliseconds(run_time(job, now)) / 1000;
}

Json old_step_entry(const v1::Job& job, const StepView& step, base::Instant now) {
  const std::string id = job.id() + "." + step.id;
  const auto old_unix_seconds = [](const std::optional<base::Instant>& at) {
    return at ? at->unix_ns() / 1'000'000'000 : 0;
  };
  return {{"step", {{"job_id", old_number_of(job.id())}, {"id", id}, {"name", step.name}}},
          {"state", step.state.name},
          {"exit_code", old_exit_code_entry(step.exit)},
          {"nodes", {{"count", std::ssize(step.nodes)}, {"range", host_list(step.nodes)}}},
          {"tasks", {{"count", step.tasks}}},
          {"time",
           {{"elapsed", base::whole_milliseconds(run_time(step, now)) / 1000},
            {"start", old_unix_seconds(step.started_at)},
            {"end", old_unix_seconds(step.ended_at)}}}};
}

Json old_accounting_entry(const v1::Job& job, const BillingWeights& weights, base::Instant now) {
  const v1::JobSpec& spec = job.spec();
  const std::string user = spec.user();
  const bool has_started = client::time_of(job.started_at()).has_value();
  Json steps = Json::array();
  for (const StepView& step : steps_of(job)) steps.push_back(old_step_entry(job, step, now));
  return {
      {"account", spec.team()},
      {"comment", {{"administrator", nullptr}, {"job", comment_of(job)}, {"system", nullptr}}},
      {"allocation_nodes", node_of(job).empty() ? 0 : node_count(job)},
      {"array",
       {{"job_id", old_number_of(job.array_id())},
        {"limits", {{"max", {{"running", {{"tasks", old_number_of(array_throttle(job))}}}}}}},
        {"task", nullptr},
        {"task_id",
         job.array_id().empty() ? Json(nullptr) : Json(old_number_of(array_index_of(job)))}}},
      {"association",
       {{"account", spec.team()}, {"cluster", kCluster}, {"partition", nullptr}, {"user", user}}},
      {"cluster", kCluster},
      {"constraints", old_empty_if_null(types_of(job))},
      {"derived_exit_code", old_exit_code_entry(exit_and_signal(job))},
      {"time",
       {{"elapsed", old_elapsed_seconds(job, now)},
        {"eligible", old_unix_seconds(job.eligible_at())},
        {"end", old_unix_seconds(job.ended_at())},
        {"start", old_unix_seconds(job.started_at())},
        {"submission", old_unix_seconds(job.submitted_at())},
        {"suspended", 0},
        {"limit", base::whole_milliseconds(time_limit(job)) / 60'000}}},
      {"exit_code", old_exit_code_entry(exit_and_signal(job))},
      {"flags", Json::array()},
      {"group", group_name(user)},
      {"job_id", old_number_of(job.id())},
      {"name", spec.name()},
      {"nodes", node_of(job).empty() ? "None assigned" : node_of(job)},
      {"partition", partition_of(job)},
      {"priority", old_number_of(priority_of(job))},
      {"qos", qos_of(job)},
      {"required",
       {{"CPUs", cpus_of(job).value_or(0)},
        {"memory", memory_of(job).value_or(0) / base::kMiB.value()}}},
      {"reservation", {{"id", 0}, {"name", spec.reservation()}}},
      {"state", {{"current", recorded_state_of(job).name}, {"reason", reason_of(job)}}},
      {"steps", steps},
      {"tres",
       {{"allocated", has_started ? old_counted_tres(job, held_tres(job, weights)) : Json::array()},
        {"requested", old_counted_tres(job, requested_tres(job, weights))}}},
      {"user", user},
      {"wckey", {{"wckey", ""}, {"flags", Json::array()}}},
      {"working_directory", spec.workdir()}};
}

}  // namespace

Json old_nodes_document(const std::vector<NodeView>& nodes, const Site& site) {
  Json document{{"nodes", Json::array()}};
  for (const NodeView& node : nodes) document["nodes"].push_back(old_node_entry(node, site));
  return document;
}

Json old_jobs_document(std::span<const QueueEntry> entries, const BillingWeights& weights) {
  Json document{{"jobs", Json::array()}};
  for (const QueueEntry& entry : entries)
    document["jobs"].push_back(old_job_entry(entry.job, weights));
  return document;
}

Json old_accounting_document(std::span<const v1::Job> jobs, const BillingWeights& weights,
                             base::Instant now) {
  Json document{{"jobs", Json::array()}};
  for (const v1::Job& job : jobs)
    document["jobs"].push_back(old_accounting_entry(job, weights, now));
  return document;
}

}  // namespace gpu_platform::shims
