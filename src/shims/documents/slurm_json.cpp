#include "shims/documents/slurm_json.h"

#include <fmt/format.h>

#include "cli/job_text.h"
#include "cli/text.h"
#include "shims/documents/slurm_json_parts.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/views/job_gres.h"
#include "shims/views/job_view.h"
#include "shims/views/step_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

bool is_since(const DocumentFacts& facts, DocumentForm form) {
  return facts.form >= form;
}

// Base states and flags in one list.
Json states_of(const StateName& state) {
  if (state.code == "CF" || state.code == "CG") return Json::array({"RUNNING", state.name});
  return Json::array({state.name});
}

std::int64_t end_in_document(const Json& job) {
  const auto ended = cli::time_at(job, "ended_at");
  const auto started = cli::time_at(job, "started_at");
  if (ended || !started) return seconds_of_document(ended);
  return seconds_of_document(*started + time_limit(job));
}

Json gres_detail_of(const std::vector<JobPart>& parts) {
  Json detail = Json::array();
  for (const JobPart& part : parts) {
    if (!part.gpus.empty()) detail.push_back(gres_of(part));
  }
  return detail;
}

// Which cores a job has is not known: they are counted.
Json resources_of(const DocumentFacts& facts, const Json& job, const std::vector<JobPart>& parts) {
  const bool is_old = !is_since(facts, DocumentForm::k41);
  if (parts.empty()) return is_old ? Json::object() : Json(nullptr);
  const std::int64_t cpus = cpus_of(job).value_or(0);
  Json list = Json::array();
  for (const JobPart& part : parts) {
    if (is_old) {
      list.push_back({{"sockets", Json::object()},
                      {"nodename", part.node},
                      {"cpus_used", part.cpus},
                      {"memory_used", part.memory_mib},
                      {"memory_allocated", part.memory_mib}});
      continue;
    }
    list.push_back({{"index", list.size()},
                    {"name", part.node},
                    {"cpus", {{"count", part.cpus}, {"used", part.cpus}}},
                    {"memory", {{"used", part.memory_mib}, {"allocated", part.memory_mib}}},
                    {"sockets", Json::array()}});
  }
  if (is_old) {
    return {{"nodes", node_of(job)},
            {"allocated_cores", cpus},
            {"allocated_cpus", cpus},
            {"allocated_hosts", parts.size()},
            {"allocated_nodes", list}};
  }
  return {{"select_type", Json::array({"CPU"})},
          {"nodes",
           {{"count", parts.size()},
            {"select_type", Json::array({"AVAILABLE"})},
            {"list", node_of(job)},
            {"whole", false},
            {"allocation", list}}},
          {"cpus", cpus},
          {"threads_per_core", unset_number()}};
}

// Who has the job, and of which array it is.
void add_identity(const Json& job, Json& entry) {
  const Json& spec = cli::spec_of(job);
  const std::string array = text_at(job, "array_id");
  const std::string id = array_task_id(job);
  const bool is_joined = id.ends_with(']');
  const std::size_t begin = is_joined ? id.find('[') + 1 : 0;
  entry["account"] = text_at(spec, "team");
  entry["accrue_time"] = set_number(seconds_of_document(cli::time_at(job, "eligible_at")));
  entry["admin_comment"] = "";
  entry["allocating_node"] = "localhost";
  entry["array_job_id"] = set_number(number_of_document(array));
  entry["array_task_id"] = array.empty() || is_joined
                               ? unset_number()
                               : set_number(number_of_document(text_at(job, "array_index")));
  entry["array_max_tasks"] = set_number(number_of_document(array_throttle(job)));
  entry["array_task_string"] = is_joined ? id.substr(begin, id.size() - begin - 1) : "";
  entry["association_id"] = 0;
  entry["batch_features"] = "";
  entry["batch_flag"] = is_batch(job);
  entry["batch_host"] = first_node_of(job);
  entry["flags"] = Json::array();
  entry["burst_buffer"] = "";
  entry["burst_buffer_state"] = "";
  entry["cluster"] = kCluster;
  entry["cluster_features"] = "";
  entry["command"] = text_of_document(command_of(job));
  entry["comment"] = comment_of(job);
  entry["container"] = "";
  entry["container_id"] = "";
  entry["contiguous"] = false;
  entry["core_spec"] = 0;
  entry["thread_spec"] = 32766;  // as Slurm has it for none
  entry["cores_per_socket"] = unset_number();
}

void add_course(const Json& job, Json& entry) {
  const bool has_started = !node_of(job).empty();
  const auto cpus = static_cast<double>(cpus_of(job).value_or(0));
  entry["billable_tres"] = {
      {"set", has_started}, {"infinite", false}, {"number", has_started ? cpus : 0.0}};
  entry["cpus_per_task"] = set_number(cpus_of_each_task(job));
  for (const char* key :
       {"cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor"})
    entry[key] = unset_number();
  entry["cpus_per_tres"] = "";
  entry["cron"] = "";
  entry["deadline"] = set_number(seconds_of_document(cli::time_at(cli::spec_of(job), "deadline")));
  entry["delay_boot"] = set_number(0);
  entry["dependency"] = text_of_document(dependency_of(job));
  entry["derived_exit_code"] = exit_of_document(derived_exit_of(job));
  entry["eligible_time"] = set_number(seconds_of_document(cli::time_at(job, "eligible_at")));
  entry["end_time"] = set_number(end_in_document(job));
  entry["excluded_nodes"] = excluded_nodes_of(job);
  entry["exit_code"] = exit_of_document(exit_and_signal(job));
  entry["extra"] = "";
  entry["failed_node"] = "";
  entry["features"] = text_of_document(types_of(job));
  for (const char* key :
       {"federation_origin", "federation_siblings_active", "federation_siblings_viable"})
    entry[key] = "";
}

void add_held(const DocumentFacts& facts, const Json& job, Json& entry) {
  const std::vector<JobPart> parts = parts_of(job, facts.nodes);
  const std::string user = text_at(cli::spec_of(job), "user");
  entry["gres_detail"] = gres_detail_of(parts);
  entry["group_id"] = group_number(user);
  entry["group_name"] = group_name(user);
  entry["het_job_id"] = set_number(0);
  entry["het_job_id_set"] = "";
  entry["het_job_offset"] = set_number(0);
  const bool is_joined = array_task_id(job).ends_with(']');
  entry["job_id"] = number_of_document(text_at(job, is_joined ? "array_id" : "id"));
  entry["job_resources"] = resources_of(facts, job, parts);
  entry["job_size_str"] = Json::array();
  entry["job_state"] = states_of(state_of(job));
  entry["last_sched_evaluation"] = set_number(seconds_of_document(cli::time_at(job, "started_at")));
  entry["licenses"] = "";
  entry["mail_type"] = Json::array();
  entry["mail_user"] = user;
  entry["max_cpus"] = set_number(0);
  entry["max_nodes"] = set_number(0);
  entry["mcs_label"] = "";
  entry["memory_per_tres"] = "";
  entry["name"] = text_at(cli::spec_of(job), "name");
  entry["network"] = "";
  entry["nodes"] = node_of(job);
  entry["nice"] = 0;
}

void add_wanted(const DocumentFacts& facts, const Json& job, Json& entry) {
  const auto memory = memory_share_of(job);
  const auto megabytes = [&](bool is_of_each_cpu) {
    const bool is_told = memory && memory->is_of_each_cpu == is_of_each_cpu;
    return is_told ? set_number(memory->bytes / base::kMiB.value()) : unset_number();
  };
  entry["tasks_per_core"] = infinite_number();
  entry["tasks_per_tres"] = set_number(0);
  entry["tasks_per_node"] = set_number(0);
  entry["tasks_per_socket"] = infinite_number();
  entry["tasks_per_board"] = set_number(0);
  entry["cpus"] = set_number(cpus_of(job).value_or(1));
  entry["node_count"] = set_number(node_count(job));
  entry["tasks"] = set_number(task_count(job));
  entry["partition"] = partition_of(job);
  entry["prefer"] = "";
  entry["memory_per_cpu"] = megabytes(true);
  entry["memory_per_node"] = megabytes(false);
  entry["minimum_cpus_per_node"] = set_number(cpus_of_each_node(job));
  entry["minimum_tmp_disk_per_node"] = set_number(0);
  entry["power"] = {{"flags", Json::array()}};
  for (const char* key : {"preempt_time", "preemptable_time", "pre_sus_time"})
    entry[key] = set_number(0);
  entry["hold"] = text_at(job, "state") == "HELD";
  entry["priority"] = set_number(number_of_document(priority_of(job)));
  if (is_since(facts, DocumentForm::k42)) entry["priority_by_partition"] = Json::array();
  entry["profile"] = Json::array({"NOT_SET"});
  entry["qos"] = qos_of(job);
  entry["reboot"] = false;
  entry["required_nodes"] = required_nodes_of(job);
  const bool is_newest = is_since(facts, DocumentForm::k42);
  entry[is_newest ? "required_switches" : "minimum_switches"] = 0;
  entry["requeue"] = true;
  entry["resize_time"] = set_number(0);
  entry["restart_cnt"] = restarts_of(job);
  entry["resv_name"] = text_at(cli::spec_of(job), "reservation");
  entry["scheduled_nodes"] = "";
  entry["selinux_context"] = "";
  entry["shared"] = Json::array();
  if (is_newest) return;
  entry["exclusive"] = Json::array();
  entry["oversubscribe"] = true;
  entry["show_flags"] = Json::array();
}

void add_end(const Json& job, Json& entry) {
  const Json& spec = cli::spec_of(job);
  const std::string user = text_at(spec, "user");
  entry["sockets_per_board"] = 0;
  entry["sockets_per_node"] = unset_number();
  entry["start_time"] = set_number(seconds_of_document(expected_start(job)));
  entry["state_description"] = text_at(cli::object_at(job, "wait_reason"), "text");
  entry["state_reason"] = reason_of(job);
  entry["standard_error"] = printed_to(job, "error");
  entry["standard_input"] = "/dev/null";
  entry["standard_output"] = printed_to(job, "output");
  entry["submit_time"] = set_number(seconds_of_document(cli::time_at(job, "submitted_at")));
  entry["suspend_time"] = set_number(0);
  entry["system_comment"] = "";
  entry["time_limit"] = set_number(base::whole_milliseconds(time_limit(job)) / 60'000);
  entry["time_minimum"] = set_number(0);
  entry["threads_per_core"] = unset_number();
  entry["tres_bind"] = "";
  entry["tres_freq"] = "";
  for (const auto& [key, per] :
       {std::pair{"tres_per_job", GpusPer::kJob}, std::pair{"tres_per_node", GpusPer::kNode},
        std::pair{"tres_per_socket", GpusPer::kSocket},
        std::pair{"tres_per_task", GpusPer::kTask}}) {
    const std::string gpus = gpus_asked(job, per);
    entry[key] = gpus.empty() ? "" : "gres/" + gpus;
  }
  entry["tres_req_str"] = trackable(job);
  entry["tres_alloc_str"] = node_of(job).empty() ? "" : trackable(job);
  entry["user_id"] = number_of_document(user_number(user));
  entry["user_name"] = user;
  entry["maximum_switch_wait_time"] = 0;
  entry["wckey"] = "";
  entry["current_working_directory"] = text_at(spec, "workdir");
}

Json array_entry(const Json& job) {
  const std::string array = text_at(job, "array_id");
  return {
      {"job_id", number_of_document(array)},
      {"limits", {{"max", {{"running", {{"tasks", number_of_document(array_throttle(job))}}}}}}},
      {"task_id", array.empty() ? unset_number()
                                : set_number(number_of_document(text_at(job, "array_index")))},
      {"task", ""}};
}

Json cpu_time_entry(const std::optional<std::int64_t>& milliseconds) {
  const std::int64_t ms = milliseconds.value_or(0);
  return {{"seconds", ms / 1000}, {"microseconds", ms % 1000 * 1000}};
}

Json accounted_step(const Json& job, const StepView& step, base::Instant now) {
  const Json none = {{"set", false}, {"infinite", false}, {"number", 0}};
  return {
      {"time",
       {{"elapsed", base::whole_milliseconds(run_time(step, now)) / 1000},
        {"end", set_number(seconds_of_document(step.ended_at))},
        {"start", set_number(seconds_of_document(step.started_at))},
        {"suspended", 0},
        {"system", cpu_time_entry(step.system_cpu_ms)},
        {"total", cpu_time_entry(step.cpu_ms)},
        {"user", cpu_time_entry(step.user_cpu_ms)}}},
      {"exit_code", exit_of_document(step.exit)},
      {"nodes",
       {{"count", std::ssize(step.nodes)}, {"range", host_list(step.nodes)}, {"list", step.nodes}}},
      {"tasks", {{"count", step.tasks}}},
      {"pid", ""},
      {"CPU", {{"requested_frequency", {{"min", none}, {"max", none}}}, {"governor", "0"}}},
      {"kill_request_user", ""},
      {"state", states_of(step.state)},
      {"statistics",
       {{"CPU", {{"actual_frequency", 0}}}, {"energy", {{"consumed", unset_number()}}}}},
      {"step", {{"id", text_at(job, "id") + "." + step.id}, {"name", step.name}}},
      {"task", {{"distribution", "Unknown"}}},
      {"tres",
       {{"requested", no_tres()},
        {"consumed", no_tres()},
        {"allocated", tres_of_document(trackable(step))}}}};
}

Json accounted_time(const DocumentFacts& facts, const Json& job) {
  const auto submitted = cli::time_at(job, "submitted_at");
  const auto started = cli::time_at(job, "started_at");
  const auto cpu = cli::number_at(attempt_or_job(job), "cpu_time_seconds");
  Json time = {{"elapsed", base::whole_milliseconds(run_time(job, facts.now)) / 1000},
               {"eligible", seconds_of_document(cli::time_at(job, "eligible_at"))},
               {"end", seconds_of_document(cli::time_at(job, "ended_at"))}};
  if (is_since(facts, DocumentForm::k41)) {
    time["planned"] = started && submitted
                          ? set_number(base::whole_milliseconds(*started - *submitted) / 1000)
                          : unset_number();
  }
  time["start"] = seconds_of_document(started);
  time["submission"] = seconds_of_document(submitted);
  time["suspended"] = 0;
  time["system"] = cpu_time_entry(std::nullopt);
  time["limit"] = set_number(base::whole_milliseconds(time_limit(job)) / 60'000);
  time["total"] =
      cpu_time_entry(cpu ? std::optional(static_cast<std::int64_t>(*cpu * 1000)) : std::nullopt);
  time["user"] = cpu_time_entry(std::nullopt);
  return time;
}

void add_accounted_end(const DocumentFacts& facts, const Json& job, Json& entry) {
  const Json& spec = cli::spec_of(job);
  const auto memory = memory_share_of(job);
  const auto megabytes = [&](bool is_of_each_cpu) {
    const bool is_told = memory && memory->is_of_each_cpu == is_of_each_cpu;
    return is_told ? set_number(memory->bytes / base::kMiB.value()) : unset_number();
  };
  entry["required"] = {{"CPUs", cpus_of(job).value_or(0)},
                       {"memory_per_cpu", megabytes(true)},
                       {"memory_per_node", megabytes(false)}};
  entry["kill_request_user"] = text_at(job, "ended_by");
  if (is_since(facts, DocumentForm::k42)) entry["restart_cnt"] = restarts_of(job);
  entry["reservation"] = {{"id", 0}, {"name", text_at(spec, "reservation")}};
  entry["script"] = "";
  if (is_since(facts, DocumentForm::k41)) {
    entry["stdin_expanded"] = "/dev/null";
    entry["stdout_expanded"] = printed_to(job, "output");
    entry["stderr_expanded"] = printed_to(job, "error");
    entry["stdout"] = printed_to(job, "output");
    entry["stderr"] = printed_to(job, "error");
    entry["stdin"] = "/dev/null";
  }
  entry["state"] = {{"current", states_of(recorded_state_of(job))}, {"reason", reason_of(job)}};
  entry["steps"] = Json::array();
  for (const StepView& step : steps_of(job))
    entry["steps"].push_back(accounted_step(job, step, facts.now));
  entry["submit_line"] = "";
  const bool has_started = cli::time_at(job, "started_at").has_value();
  entry["tres"] = {{"allocated", has_started ? tres_of_document(trackable(job)) : Json::array()},
                   {"requested", tres_of_document(trackable(job))}};
  entry["used_gres"] = "";
  entry["user"] = text_at(spec, "user");
  entry["wckey"] = {{"wckey", ""}, {"flags", Json::array()}};
  entry["working_directory"] = text_at(spec, "workdir");
}

Json accounted_job(const DocumentFacts& facts, const Json& job) {
  const Json& spec = cli::spec_of(job);
  const std::string user = text_at(spec, "user");
  const bool has_nodes = !node_of(job).empty();
  Json entry = {{"account", text_at(spec, "team")},
                {"comment", {{"administrator", ""}, {"job", comment_of(job)}, {"system", ""}}},
                {"allocation_nodes", has_nodes ? node_count(job) : 0},
                {"array", array_entry(job)},
                {"association",
                 {{"account", text_at(spec, "team")},
                  {"cluster", kCluster},
                  {"partition", ""},
                  {"user", user},
                  {"id", 0}}},
                {"block", ""},
                {"cluster", kCluster},
                {"constraints", text_of_document(types_of(job))},
                {"container", ""},
                {"derived_exit_code", exit_of_document(derived_exit_of(job))},
                {"time", accounted_time(facts, job)},
                {"exit_code", exit_of_document(recorded_exit_of(job))},
                {"extra", ""},
                {"failed_node", ""},
                {"flags", Json::array()},
                {"group", group_name(user)},
                {"het", {{"job_id", 0}, {"job_offset", unset_number()}}},
                {"job_id", number_of_document(text_at(job, "id"))},
                {"name", text_at(spec, "name")},
                {"licenses", ""},
                {"mcs", {{"label", ""}}},
                {"nodes", has_nodes ? node_of(job) : "None assigned"},
                {"partition", partition_of(job)},
                {"hold", text_at(job, "state") == "HELD"},
                {"priority", set_number(number_of_document(priority_of(job)))},
                {"qos", qos_of(job)}};
  if (is_since(facts, DocumentForm::k42)) entry["qosreq"] = "";
  add_accounted_end(facts, job, entry);
  return entry;
}

Json running_step(const Json& job, const StepView& step, base::Instant now) {
  const Json frequency = set_number(0);
  const std::string array = text_at(job, "array_id");
  constexpr std::int64_t kNoTask = 4294967294;  // as Slurm has it for none
  const std::int64_t task =
      array.empty() ? kNoTask : number_of_document(text_at(job, "array_index"));
  return {
      {"array", {{"job_id", number_of_document(array)}, {"task_id", task}}},
      {"cluster", kCluster},
      {"container", ""},
      {"container_id", ""},
      {"cpu", {{"frequency", {{"min", frequency}, {"max", frequency}, {"governor", frequency}}}}},
      {"tres",
       {{"per",
         {{"cpu", ""}, {"memory", ""}, {"step", ""}, {"node", ""}, {"socket", ""}, {"task", ""}}},
        {"allocation", trackable(step)},
        {"binding", ""},
        {"frequency", ""}}},
      {"name", step.name},
      {"network", ""},
      {"nodes", host_list(step.nodes)},
      {"number_cpus", step.cpus},
      {"number_tasks", step.tasks},
      {"partition", partition_of(job)},
      {"reserved_ports", ""},
      {"time",
       {{"running", set_number(base::whole_milliseconds(run_time(step, now)) / 1000)},
        {"start", set_number(seconds_of_document(step.started_at))},
        {"limit", infinite_number()}}},
      {"srun", {{"host", ""}, {"pid", 0}}},
      {"state", states_of(step.state)},
      {"id", text_at(job, "id") + "." + step.id},
      {"submit_line", ""},
      {"task", {{"distribution", "Unknown"}}},
      {"user", text_at(cli::spec_of(job), "user")}};
}

}  // namespace

Json jobs_document(const DocumentFacts& facts, std::span<const Json> jobs) {
  if (facts.form == DocumentForm::k38) return old_jobs_document(jobs);
  Json document{{"jobs", Json::array()}};
  for (const Json& job : jobs) {
    Json entry;
    add_identity(job, entry);
    add_course(job, entry);
    add_held(facts, job, entry);
    add_wanted(facts, job, entry);
    add_end(job, entry);
    document["jobs"].push_back(std::move(entry));
  }
  document["last_backfill"] = set_number(seconds_of_document(facts.now));
  document["last_update"] = set_number(seconds_of_document(facts.now));
  return document;
}

Json steps_document(const DocumentFacts& facts, std::span<const QueueStepRow> steps) {
  Json document{{"steps", Json::array()}};
  for (const QueueStepRow& row : steps)
    document["steps"].push_back(running_step(row.job, row.step, facts.now));
  document["last_update"] = set_number(seconds_of_document(facts.now));
  return document;
}

Json accounting_document(const DocumentFacts& facts, std::span<const Json> jobs) {
  if (facts.form == DocumentForm::k38) return old_accounting_document(jobs, facts.now);
  Json document{{"jobs", Json::array()}};
  for (const Json& job : jobs) document["jobs"].push_back(accounted_job(facts, job));
  return document;
}

}  // namespace gpu_platform::shims
