#include "shims/views/job_view.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/text.h"
#include "client/answer.h"
#include "http/http.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr StateName kOutOfMemory{"OOM", "OUT_OF_MEMORY"};
constexpr StateName kNodeFail{"NF", "NODE_FAIL"};
constexpr StateName kDeadline{"DL", "DEADLINE"};

struct StateRow {
  v1::JobState platform;
  StateName slurm;
};
constexpr StateRow kStates[] = {
    {v1::JOB_STATE_HELD, {"PD", "PENDING"}},        {v1::JOB_STATE_PENDING, {"PD", "PENDING"}},
    {v1::JOB_STATE_QUEUED, {"PD", "PENDING"}},      {v1::JOB_STATE_STARTING, {"CF", "CONFIGURING"}},
    {v1::JOB_STATE_RUNNING, {"R", "RUNNING"}},      {v1::JOB_STATE_STOPPING, {"CG", "COMPLETING"}},
    {v1::JOB_STATE_SUSPENDED, {"S", "SUSPENDED"}},  {v1::JOB_STATE_PREEMPTED, {"PR", "PREEMPTED"}},
    {v1::JOB_STATE_COMPLETED, {"CD", "COMPLETED"}}, {v1::JOB_STATE_FAILED, {"F", "FAILED"}},
    {v1::JOB_STATE_CANCELLED, {"CA", "CANCELLED"}}, {v1::JOB_STATE_TIMED_OUT, {"TO", "TIMEOUT"}},
    {v1::JOB_STATE_FAILED, kOutOfMemory},           {v1::JOB_STATE_FAILED, kNodeFail},
    {v1::JOB_STATE_CANCELLED, kDeadline},
};

// States of Slurm that no job here ever has: filters may name them and find nothing.
constexpr StateName kNever[] = {
    {"BF", "BOOT_FAIL"}, {"RD", "RESV_DEL_HOLD"}, {"RF", "REQUEUE_FED"}, {"RH", "REQUEUE_HOLD"},
    {"RQ", "REQUEUED"},  {"RS", "RESIZING"},      {"RV", "REVOKED"},     {"SE", "SPECIAL_EXIT"},
    {"SI", "SIGNALING"}, {"SO", "STAGE_OUT"},     {"ST", "STOPPED"},
};

std::string label_of(const v1::Job& job, const std::string& name) {
  const auto label = job.spec().labels().find(name);
  return label == job.spec().labels().end() ? std::string() : label->second;
}

// "JOB_STATE_HELD" as queries of the daemon have it.
std::string name_of_state(v1::JobState state) {
  constexpr std::string_view kOfEnum = "JOB_STATE_";
  return v1::JobState_Name(state).substr(kOfEnum.size());
}

std::string exit_text(std::uint32_t code, const std::string& signal_name) {
  return fmt::format("{}:{}", code, api::signal_number(signal_name).value_or(0));
}

// What the job has on all its nodes, else what it asks for: the request is that of one node.
template <class Amount>
std::optional<std::int64_t> on_all_nodes(const v1::Job& job, Amount held, Amount each) {
  if (held) return static_cast<std::int64_t>(*held);
  if (!each) return std::nullopt;
  return static_cast<std::int64_t>(*each) * node_count(job);
}

template <class Message>
client::Called<Message> told(client::Client& client, const std::string& target,
                             std::string_view what) {
  const auto body = client.get(target);
  if (!body) return std::unexpected(body.error());
  auto message = client::message_of<Message>(*body);
  if (message) return *std::move(message);
  return std::unexpected(client::Failure{
      client::Failure::Kind::kBadAnswer, fmt::format("{} is not a JSON object", what), {}, {}});
}

}  // namespace

StateName state_of(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_FAILED) {
    if (job.reason() == v1::END_REASON_OUT_OF_MEMORY) return kOutOfMemory;
    if (job.lost() != v1::LOST_UNSPECIFIED) return kNodeFail;
  }
  if (job.state() == v1::JOB_STATE_CANCELLED && job.reason() == v1::END_REASON_DEADLINE)
    return kDeadline;
  const auto row = std::ranges::find(kStates, job.state(), &StateRow::platform);
  return row == std::end(kStates) ? StateName{"?", "UNKNOWN"} : row->slurm;
}

std::string array_task_id(const v1::Job& job, std::string_view members) {
  if (!members.empty()) return fmt::format("{}_[{}]", job.array_id(), members);
  if (job.array_id().empty()) return job.id();
  return fmt::format("{}_{}", job.array_id(), array_index_of(job));
}

std::string array_index_of(const v1::Job& job) {
  return job.has_array_index() ? fmt::format("{}", job.array_index()) : std::string();
}

StateName recorded_state_of(const v1::Job& job) {
  const StateName state = state_of(job);
  if (state.code == "CF") return {"PD", "PENDING"};
  if (state.code == "CG") return {"R", "RUNNING"};
  return state;
}

std::optional<std::vector<std::string>> platform_states(std::string_view name) {
  const std::string wanted = upper_case(name);
  std::vector<std::string> states;
  for (const StateRow& row : kStates) {
    if (row.slurm.code == wanted || row.slurm.name == wanted)
      states.push_back(name_of_state(row.platform));
  }
  const bool is_known = !states.empty() || std::ranges::any_of(kNever, [&](const StateName& state) {
    return state.code == wanted || state.name == wanted;
  });
  return is_known ? std::optional(states) : std::nullopt;
}

bool is_in_state(const StateName& state, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::string wanted = upper_case(name);
    return wanted == state.code || wanted == state.name;
  });
}

bool has_ended(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_COMPLETED || job.state() == v1::JOB_STATE_FAILED ||
         job.state() == v1::JOB_STATE_CANCELLED || job.state() == v1::JOB_STATE_TIMED_OUT;
}

std::string reason_of(const v1::Job& job) {
  constexpr std::pair<std::string_view, std::string_view> kWaiting[] = {
      {"NO_CAPACITY", "Resources"},
      {"PRIORITY", "Priority"},
      {"BACKOFF", "BeginTime"},
      {"HELD", "JobHeldUser"},
      {"HELD_BY_USER", "JobHeldUser"},
      {"HELD_BY_ADMINISTRATOR", "JobHeldAdmin"},
      {"NO_NODE", "ReqNodeNotAvail"},
      {"NOT_EVALUATED", "None"},
      {"HELD_BY_PLATFORM", "JobHeldAdmin"},
      {"PREEMPTING", "Resources"},
      {"BEGIN_TIME", "BeginTime"},
      {"DEPENDENCY", "Dependency"},
      {"ARRAY_LIMIT", "JobArrayTaskLimit"}};
  if (const std::string code = job.wait_reason().code(); !code.empty()) {
    const auto row = std::ranges::find(kWaiting, std::string_view(code),
                                       &std::pair<std::string_view, std::string_view>::first);
    return row == std::end(kWaiting) ? code : std::string(row->second);
  }
  const StateName state = state_of(job);
  if (state.code == "DL") return "DeadLine";
  if (job.reason() == v1::END_REASON_DEPENDENCY_FAILED) return "DependencyNeverSatisfied";
  if (state.code == "TO") return "TimeLimit";
  if (state.code == "OOM") return "OutOfMemory";
  if (state.code == "NF") return "NodeDown";
  if (job.reason() == v1::END_REASON_LAUNCH_FAILED) return "JobLaunchFailure";
  if (state.code == "F") return "NonZeroExitCode";
  return "None";
}

const v1::Attempt* latest_attempt(const v1::Job& job) {
  return job.attempts().empty() ? nullptr : &*job.attempts().rbegin();
}

std::vector<std::string> node_names(const v1::Job& job) {
  const v1::Attempt* attempt = latest_attempt(job);
  const std::string_view code = state_of(job).code;
  if (attempt == nullptr || code == "PD" || code == "PR") return {};
  return {attempt->nodes().begin(), attempt->nodes().end()};
}

bool is_on_any(const v1::Job& job, const std::string& list) {
  const auto wanted = host_names(list);
  return std::ranges::any_of(node_names(job), [&](const std::string& name) {
    return std::ranges::find(wanted, name) != wanted.end();
  });
}

std::string output_file_of(const v1::Job& job) {
  return job.output().empty() ? job.spec().output() : job.output();
}

std::string error_file_of(const v1::Job& job) {
  const std::string& own = job.error().empty() ? job.spec().error() : job.error();
  return own.empty() ? output_file_of(job) : own;
}

std::string node_of(const v1::Job& job) {
  return host_list(node_names(job));
}

std::string first_node_of(const v1::Job& job) {
  const auto nodes = node_names(job);
  return nodes.empty() ? std::string() : nodes[host_order(nodes).front()];
}

std::int64_t node_count(const v1::Job& job) {
  const auto nodes = std::ssize(node_names(job));
  if (nodes > 0) return nodes;
  return std::max<std::int64_t>(1, job.spec().has_nodes() ? job.spec().nodes() : 1);
}

std::int64_t task_count(const v1::Job& job) {
  const auto tasks = base::parse_count(label_of(job, "slurm.tasks"), 1, UINT32_MAX);
  return tasks ? static_cast<std::int64_t>(*tasks) : node_count(job);
}

std::string required_nodes_of(const v1::Job& job) {
  return fmt::format("{}", fmt::join(job.spec().nodelist(), ","));
}

std::string excluded_nodes_of(const v1::Job& job) {
  return fmt::format("{}", fmt::join(job.spec().exclude(), ","));
}

std::string types_of(const v1::Job& job) {
  const auto& types = job.spec().gpu_types();
  return types.empty() ? "(null)" : fmt::format("{}", fmt::join(types, "|"));
}

std::string partition_of(const v1::Job& job) {
  const std::string label = label_of(job, "slurm.partition");
  return label.empty() ? std::string(kPartition) : label;
}

std::string qos_of(const v1::Job& job) {
  const std::string label = label_of(job, "slurm.qos");
  if (!label.empty()) return label;
  const std::string priority = job.spec().priority();
  if (priority.empty() || priority == "MEDIUM") return "normal";
  return lower_case(priority);
}

std::string dependency_of(const v1::Job& job) {
  const std::string unmet = job.dependency_unmet();
  if (unmet.empty() || state_of(job).code != "PD") return "(null)";
  std::string text;
  for (const char c : unmet) {
    if (c == ',' || c == '?') text += "(unfulfilled)";
    text.push_back(c);
  }
  return text + "(unfulfilled)";
}

bool is_batch(const v1::Job& job) {
  const auto& command = job.spec().command();
  const bool is_step =
      command.size() > 1 && command[0].ends_with("gpu-platform-slurm") && command[1] == "job-step";
  return !is_step;
}

std::string command_of(const v1::Job& job) {
  const std::vector<std::string> command(job.spec().command().begin(), job.spec().command().end());
  const bool is_ours = command.size() > 1 && command[0].ends_with("gpu-platform-slurm");
  if (!is_ours) {
    return command.empty() ? "(null)" : cli::shell_quoted(cli::without_script_text(command));
  }
  const std::string script = label_of(job, "slurm.command");
  std::vector<std::string> words(command.begin() + 2, command.end());
  if (command[1] == "batch-step") {
    if (script.empty()) return "(null)";
    if (words.empty()) return script;
    words.front() = script;
  }
  return words.empty() ? "(null)" : cli::joined(words, " ");
}

std::string priority_of(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_HELD) return "0";
  constexpr std::string_view kClasses[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};
  const v1::JobSpec& spec = job.spec();
  const auto rank = std::ranges::find(kClasses, std::string_view(spec.priority())) - kClasses;
  return fmt::format("{}", (rank % 4 + 1) * 1000 + std::int64_t{spec.priority_number()} * 100);
}

std::string array_throttle(const v1::Job& job) {
  const std::string array = job.spec().array();
  const std::size_t percent = array.find('%');
  return percent == std::string::npos ? std::string() : array.substr(percent + 1);
}

std::int64_t restarts_of(const v1::Job& job) {
  return std::max<std::int64_t>(1, job.attempt()) - 1;
}

std::optional<base::Instant> expected_start(const v1::Job& job) {
  const auto started = client::time_of(job.started_at());
  return started ? started : client::time_of(job.estimated_start());
}

std::int64_t exit_status_of(const v1::Job& job) {
  const auto signal = api::signal_number(job.signal());
  return std::int64_t{job.exit_code()} * 256 + signal.value_or(0);
}

std::int64_t group_number(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  return entry == nullptr ? 0 : static_cast<std::int64_t>(entry->pw_gid);
}

std::string group_name(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  const group* found = entry == nullptr ? nullptr : ::getgrgid(entry->pw_gid);
  return found == nullptr ? user : found->gr_name;
}

std::vector<QueueEntry> with_joined_members(std::vector<v1::Job> jobs) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> waiting;
  const auto key_of = [](const v1::Job& job) { return std::pair(job.array_id(), reason_of(job)); };
  const auto is_joined = [](const v1::Job& job) {
    return !job.array_id().empty() && state_of(job).code == "PD" && restarts_of(job) == 0;
  };
  for (const v1::Job& job : jobs) {
    if (is_joined(job)) waiting[key_of(job)].push_back(job.array_index());
  }
  std::vector<QueueEntry> result;
  for (v1::Job& job : jobs) {
    const auto members = is_joined(job) ? waiting.find(key_of(job)) : waiting.end();
    if (members == waiting.end()) {
      if (!is_joined(job)) result.push_back({std::move(job), {}});
      continue;
    }
    const std::string throttle = array_throttle(job);
    std::ranges::sort(members->second);
    std::string indices =
        cli::ranges_of(members->second) + (throttle.empty() ? "" : "%" + throttle);
    waiting.erase(members);
    result.push_back({std::move(job), std::move(indices)});
  }
  return result;
}

std::vector<QueueEntry> single_entries(std::vector<v1::Job> jobs) {
  std::vector<QueueEntry> result;
  for (v1::Job& job : jobs) result.push_back({std::move(job), {}});
  return result;
}

std::string comment_of(const v1::Job& job) {
  return job.spec().comment();
}

std::string gpus_asked(const v1::Job& job, GpusPer per) {
  constexpr std::string_view kNames[] = {"job", "node", "task", "socket"};
  const std::int64_t total = gpus_of_request(job);
  if (total == 0) return {};
  std::string label = label_of(job, "slurm.gpus_per");
  if (label.empty()) label = "node";
  for (const std::string& item : comma_separated(label)) {
    const std::size_t dot = item.find('.');
    if (item.substr(0, dot) != kNames[static_cast<std::size_t>(per)]) continue;
    std::string count = dot == std::string::npos ? std::string() : item.substr(dot + 1);
    if (count.empty())
      count = fmt::format("{}", per == GpusPer::kJob ? total : total / node_count(job));
    const auto& types = job.spec().gpu_types();
    return types.size() == 1 ? fmt::format("gpu:{}:{}", types[0], count)
                             : fmt::format("gpu:{}", count);
  }
  return {};
}

std::int64_t gpus_of_request(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  return std::int64_t{spec.gpus()} * (spec.has_nodes() ? spec.nodes() : 1);
}

std::optional<std::int64_t> cpus_of(const v1::Job& job) {
  return on_all_nodes(job, job.has_cpus() ? std::optional(job.cpus()) : std::nullopt,
                      job.spec().has_cpus() ? std::optional(job.spec().cpus()) : std::nullopt);
}

std::optional<std::int64_t> memory_of(const v1::Job& job) {
  return on_all_nodes(
      job, job.has_memory_bytes() ? std::optional(job.memory_bytes()) : std::nullopt,
      job.spec().has_memory_bytes() ? std::optional(job.spec().memory_bytes()) : std::nullopt);
}

std::int64_t cpus_of_each_node(const v1::Job& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / node_count(job));
}

std::int64_t cpus_of_each_task(const v1::Job& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / task_count(job));
}

std::optional<MemoryShare> memory_share_of(const v1::Job& job) {
  const auto bytes = memory_of(job);
  if (!bytes) return std::nullopt;
  const auto cpus = cpus_of(job);
  if (cpus && label_of(job, "slurm.memory_per") == "cpu") return MemoryShare{*bytes / *cpus, true};
  return MemoryShare{*bytes / node_count(job), false};
}

std::string trackable(const v1::Job& job) {
  std::string text;
  if (const auto cpus = cpus_of(job)) text += fmt::format("cpu={},", *cpus);
  if (const auto memory = memory_of(job)) text += fmt::format("mem={},", slurm_memory(*memory));
  text += fmt::format("node={},billing={}", node_count(job), cpus_of(job).value_or(1));
  if (const auto gpus = gpus_of_request(job); gpus > 0) text += fmt::format(",gres/gpu={}", gpus);
  return text;
}

base::Duration run_time(const v1::Job& job, base::Instant now) {
  const auto started = client::time_of(job.started_at());
  if (!started) return {};
  return client::time_of(job.ended_at()).value_or(now) - *started;
}

base::Duration time_limit(const v1::Job& job) {
  return base::milliseconds(static_cast<std::int64_t>(job.spec().time_limit_seconds() * 1000));
}

std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none) {
  if (!at) return std::string(none);
  // The form belongs to the whole process, as its time zone does.
  const char* form = std::getenv("SLURM_TIME_FORMAT");
  const base::Instant now(std::int64_t{std::time(nullptr)} * 1'000'000'000);
  return time_in_form(*at, now, form == nullptr ? "" : form);
}

std::string exit_and_signal(const v1::Job& job) {
  return exit_text(job.exit_code(), job.signal());
}

std::string exit_and_signal(const v1::JobStep& step) {
  return exit_text(step.exit_code(), step.signal());
}

std::string recorded_exit_of(const v1::Job& job) {
  const std::string_view code = state_of(job).code;
  return code == "TO" || code == "CA" ? "0:0" : exit_and_signal(job);
}

std::string slurm_memory(std::int64_t bytes) {
  constexpr std::string_view kUnits = "MGTPE";
  auto count = static_cast<double>(bytes / base::kMiB.value());
  std::int64_t whole = bytes / base::kMiB.value();
  std::size_t unit = 0;
  // A larger unit where the number has at most one half in it.
  while (whole >= 1024 && whole % 512 == 0 && unit + 1 < kUnits.size()) {
    count /= 1024;
    ++unit;
    if (whole % 1024 != 0) break;
    whole /= 1024;
  }
  const bool is_whole = count == static_cast<double>(static_cast<std::int64_t>(count));
  return is_whole ? fmt::format("{:.0f}{}", count, kUnits[unit])
                  : fmt::format("{:.2f}{}", count, kUnits[unit]);
}

client::Called<std::vector<v1::Job>> list_jobs(client::Client& client, const std::string& query) {
  std::vector<v1::Job> jobs;
  std::string token;
  do {
    std::string page = query;
    http::append_query(page, "limit", "10000");
    if (!token.empty()) http::append_query(page, "page_token", token);
    auto list = told<v1::ListJobsResponse>(client, "/v1/jobs?" + page, "a list");
    if (!list) return std::unexpected(list.error());
    std::ranges::move(*list->mutable_jobs(), std::back_inserter(jobs));
    token = list->next_page();
  } while (!token.empty());
  std::ranges::reverse(jobs);
  return jobs;
}

client::Called<std::vector<v1::Job>> get_jobs(client::Client& client, const std::string& id) {
  auto found = get_job(client, id);
  if (!found) return std::unexpected(found.error());
  const auto number = base::parse_count(id, 1, INT64_MAX);
  const bool is_array = number && found->array_id() == id;
  const std::uint64_t size = is_array && found->has_array_size() ? found->array_size() : 1;
  std::vector<v1::Job> jobs{std::move(*found)};
  // The ids of members follow each other.
  for (std::uint64_t position = 1; position < size; ++position) {
    auto job = get_job(client, fmt::format("{}", *number + position));
    if (!job) return std::unexpected(job.error());
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

client::Called<v1::Job> get_job(client::Client& client, const std::string& id) {
  return told<v1::Job>(client, "/v1/jobs/" + base::percent_encoded(id), "a job");
}

std::string own_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace gpu_platform::shims
