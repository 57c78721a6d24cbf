#include "shims/documents/slurm_json.h"

#include <fmt/format.h>

#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/documents/slurm_json_parts.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_gres.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"
#include "shims/views/step_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

bool is_since(const DocumentFacts& facts, DocumentForm form) {
  return facts.form >= form;
}

// Base states and flags in one list.
Json states_of(const StateName& state) {
  if (state.code == "CF" || state.code == "CG") return Json::array({"RUNNING", state.name});
  return Json::array({state.name});
}

std::int64_t end_in_document(const v1::Job& job) {
  const auto ended = client::time_of(job.ended_at());
  const auto started = client::time_of(job.started_at());
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
Json resources_of(const DocumentFacts& facts, const v1::Job& job,
                  const std::vector<JobPart>& parts) {
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

Json mail_types_of(const v1::JobSpec& spec) {
  Json types = Json::array();
  for (const int when : spec.notify()) {
    if (when == v1::NOTIFY_ON_START) types.push_back("BEGIN");
    if (when == v1::NOTIFY_ON_END) types.push_back("END");
    if (when == v1::NOTIFY_ON_FAIL) types.push_back("FAIL");
  }
  return types;
}

// Who has the job, and of which array it is.
void add_identity(const QueueEntry& shown, Json& entry) {
  const v1::Job& job = shown.job;
  const v1::JobSpec& spec = job.spec();
  const std::string array = job.array_id();
  const std::string id = array_task_id(job, shown.members);
  const bool is_joined = id.ends_with(']');
  const std::size_t begin = is_joined ? id.find('[') + 1 : 0;
  entry["account"] = spec.team();
  entry["accrue_time"] = set_number(seconds_of_document(client::time_of(job.eligible_at())));
  entry["admin_comment"] = "";
  entry["allocating_node"] = "localhost";
  entry["array_job_id"] = set_number(number_of_document(array));
  entry["array_task_id"] = array.empty() || is_joined
                               ? unset_number()
                               : set_number(number_of_document(array_index_of(job)));
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

void add_course(const v1::Job& job, Json& entry) {
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
  entry["deadline"] = set_number(seconds_of_document(client::time_of(job.spec().deadline())));
  entry["delay_boot"] = set_number(0);
  entry["dependency"] = text_of_document(dependency_of(job));
  entry["derived_exit_code"] = exit_of_document(derived_exit_of(job));
  entry["eligible_time"] = set_number(seconds_of_document(client::time_of(job.eligible_at())));
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

void add_held(const DocumentFacts& facts, const QueueEntry& shown, Json& entry) {
  const v1::Job& job = shown.job;
  const std::vector<JobPart> parts = parts_of(job, facts.nodes);
  const std::string user = job.spec().user();
  entry["gres_detail"] = gres_detail_of(parts);
  entry["group_id"] = group_number(user);
  entry["group_name"] = group_name(user);
  entry["het_job_id"] = set_number(0);
  entry["het_job_id_set"] = "";
  entry["het_job_offset"] = set_number(0);
  const bool is_joined = !shown.members.empty();
  entry["job_id"] = number_of_document(is_joined ? job.array_id() : job.id());
  entry["job_resources"] = resources_of(facts, job, parts);
  entry["job_size_str"] = Json::array();
  entry["job_state"] = states_of(state_of(job));
  entry["last_sched_evaluation"] =
      set_number(seconds_of_document(client::time_of(job.started_at())));
  entry["licenses"] = "";
  entry["mail_type"] = mail_types_of(job.spec());
  entry["mail_user"] = job.spec().has_notify_to() ? job.spec().notify_to() : user;
  entry["max_cpus"] = set_number(0);
  entry["max_nodes"] = set_number(0);
  entry["mcs_label"] = "";
  entry["memory_per_tres"] = "";
  entry["name"] = job.spec().name();
  entry["network"] = "";
  entry["nodes"] = node_of(job);
  entry["nice"] = 0;
}

void add_wanted(const DocumentFacts& facts, const v1::Job& job, Json& entry) {
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
  entry["hold"] = job.state() == v1::JOB_STATE_HELD;
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
  entry["resv_name"] = job.spec().reservation();
  entry["scheduled_nodes"] = "";
  entry["selinux_context"] = "";
  entry["shared"] = Json::array();
  if (is_newest) return;
  entry["exclusive"] = Json::array();
  entry["oversubscribe"] = true;
  entry["show_flags"] = Json::array();
}

void add_end(const DocumentFacts& facts, const v1::Job& job, Json& entry) {
  const v1::JobSpec& spec = job.spec();
  const std::string user = spec.user();
  entry["sockets_per_board"] = 0;
  entry["sockets_per_node"] = unset_number();
  entry["start_time"] = set_number(seconds_of_document(expected_start(job)));
  entry["state_description"] = job.wait_reason().text();
  entry["state_reason"] = reason_of(job);
  entry["standard_error"] = error_file_of(job);
  entry["standard_input"] = "/dev/null";
  entry["standard_output"] = output_file_of(job);
  entry["submit_time"] = set_number(seconds_of_document(client::time_of(job.submitted_at())));
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
  entry["tres_req_str"] = requested_tres(job, facts.site.weights);
  entry["tres_alloc_str"] = node_of(job).empty() ? "" : held_tres(job, facts.site.weights);
  entry["user_id"] = number_of_document(user_number(user));
  entry["user_name"] = user;
  entry["maximum_switch_wait_time"] = 0;
  entry["wckey"] = "";
  entry["current_working_directory"] = spec.workdir();
}

Json array_entry(const v1::Job& job) {
  const std::string array = job.array_id();
  return {
      {"job_id", number_of_document(array)},
      {"limits", {{"max", {{"running", {{"tasks", number_of_document(array_throttle(job))}}}}}}},
      {"task_id",
       array.empty() ? unset_number() : set_number(number_of_document(array_index_of(job)))},
      {"task", ""}};
}

Json cpu_time_entry(const std::optional<std::int64_t>& milliseconds) {
  const std::int64_t ms = milliseconds.value_or(0);
  return {{"seconds", ms / 1000}, {"microseconds", ms % 1000 * 1000}};
}

Json accounted_step(const v1::Job& job, const StepView& step, base::Instant now) {
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
      {"step", {{"id", job.id() + "." + step.id}, {"name", step.name}}},
      {"task", {{"distribution", "Unknown"}}},
      {"tres",
       {{"requested", no_tres()},
        {"consumed", no_tres()},
        {"allocated", tres_of_document(trackable(step))}}}};
}

Json accounted_time(const DocumentFacts& facts, const v1::Job& job) {
  const auto submitted = client::time_of(job.submitted_at());
  const auto started = client::time_of(job.started_at());
  const v1::Attempt* attempt = latest_attempt(job);
  Json time = {{"elapsed", base::whole_milliseconds(run_time(job, facts.now)) / 1000},
               {"eligible", seconds_of_document(client::time_of(job.eligible_at()))},
               {"end", seconds_of_document(client::time_of(job.ended_at()))}};
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
  const double cpu_seconds = attempt != nullptr ? attempt->cpu_time_seconds() : 0;
  time["total"] = cpu_time_entry(static_cast<std::int64_t>(cpu_seconds * 1000));
  time["user"] = cpu_time_entry(std::nullopt);
  return time;
}

void add_accounted_end(const DocumentFacts& facts, const v1::Job& job, Json& entry) {
  const v1::JobSpec& spec = job.spec();
  const auto memory = memory_share_of(job);
  const auto megabytes = [&](bool is_of_each_cpu) {
    const bool is_told = memory && memory->is_of_each_cpu == is_of_each_cpu;
    return is_told ? set_number(memory->bytes / base::kMiB.value()) : unset_number();
  };
  entry["required"] = {{"CPUs", cpus_of(job).value_or(0)},
                       {"memory_per_cpu", megabytes(true)},
                       {"memory_per_node", megabytes(false)}};
  entry["kill_request_user"] = job.ended_by();
  if (is_since(facts, DocumentForm::k42)) entry["restart_cnt"] = restarts_of(job);
  entry["reservation"] = {{"id", 0}, {"name", spec.reservation()}};
  entry["script"] = "";
  if (is_since(facts, DocumentForm::k41)) {
    entry["stdin_expanded"] = "/dev/null";
    entry["stdout_expanded"] = output_file_of(job);
    entry["stderr_expanded"] = error_file_of(job);
    entry["stdout"] = output_file_of(job);
    entry["stderr"] = error_file_of(job);
    entry["stdin"] = "/dev/null";
  }
  entry["state"] = {{"current", states_of(recorded_state_of(job))}, {"reason", reason_of(job)}};
  entry["steps"] = Json::array();
  for (const StepView& step : steps_of(job))
    entry["steps"].push_back(accounted_step(job, step, facts.now));
  entry["submit_line"] = "";
  const bool has_started = client::time_of(job.started_at()).has_value();
  const BillingWeights& weights = facts.site.weights;
  entry["tres"] = {
      {"allocated", has_started ? tres_of_document(held_tres(job, weights)) : Json::array()},
      {"requested", tres_of_document(requested_tres(job, weights))}};
  entry["used_gres"] = "";
  entry["user"] = spec.user();
  entry["wckey"] = {{"wckey", ""}, {"flags", Json::array()}};
  entry["working_directory"] = spec.workdir();
}

Json accounted_job(const DocumentFacts& facts, const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  const std::string user = spec.user();
  const bool has_nodes = !node_of(job).empty();
  Json entry = {{"account", spec.team()},
                {"comment", {{"administrator", ""}, {"job", comment_of(job)}, {"system", ""}}},
                {"allocation_nodes", has_nodes ? node_count(job) : 0},
                {"array", array_entry(job)},
                {"association",
                 {{"account", spec.team()},
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
                {"job_id", number_of_document(job.id())},
                {"name", spec.name()},
                {"licenses", ""},
                {"mcs", {{"label", ""}}},
                {"nodes", has_nodes ? node_of(job) : "None assigned"},
                {"partition", partition_of(job)},
                {"hold", job.state() == v1::JOB_STATE_HELD},
                {"priority", set_number(number_of_document(priority_of(job)))},
                {"qos", qos_of(job)}};
  if (is_since(facts, DocumentForm::k42)) entry["qosreq"] = "";
  add_accounted_end(facts, job, entry);
  return entry;
}

Json running_step(const v1::Job& job, const StepView& step, base::Instant now) {
  const Json frequency = set_number(0);
  const std::string array = job.array_id();
  constexpr std::int64_t kNoTask = 4294967294;  // as Slurm has it for none
  const std::int64_t task = array.empty() ? kNoTask : number_of_document(array_index_of(job));
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
      {"id", job.id() + "." + step.id},
      {"submit_line", ""},
      {"task", {{"distribution", "Unknown"}}},
      {"user", job.spec().user()}};
}

}  // namespace

Json jobs_document(const DocumentFacts& facts, std::span<const QueueEntry> entries) {
  if (facts.form == DocumentForm::k38) return old_jobs_document(entries, facts.site.weights);
  Json document{{"jobs", Json::array()}};
  for (const QueueEntry& shown : entries) {
    Json entry;
    add_identity(shown, entry);
    add_course(shown.job, entry);
    add_held(facts, shown, entry);
    add_wanted(facts, shown.job, entry);
    add_end(facts, shown.job, entry);
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

Json accounting_document(const DocumentFacts& facts, std::span<const v1::Job> jobs) {
  if (facts.form == DocumentForm::k38)
    return old_accounting_document(jobs, facts.site.weights, facts.now);
  Json document{{"jobs", Json::array()}};
  for (const v1::Job& job : jobs) document["jobs"].push_back(accounted_job(facts, job));
  return document;
}

}  // namespace gpu_platform::shims
