#include "shims/views/job_view.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/job_text.h"
#include "cli/text.h"
#include "client/follow.h"
#include "client/members.h"
#include "http/http.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr StateName kOutOfMemory{"OOM", "OUT_OF_MEMORY"};
constexpr StateName kNodeFail{"NF", "NODE_FAIL"};
constexpr StateName kDeadline{"DL", "DEADLINE"};

struct StateRow {
  std::string_view platform;
  StateName slurm;
};
constexpr StateRow kStates[] = {
    {"HELD", {"PD", "PENDING"}},        {"PENDING", {"PD", "PENDING"}},
    {"QUEUED", {"PD", "PENDING"}},      {"STARTING", {"CF", "CONFIGURING"}},
    {"RUNNING", {"R", "RUNNING"}},      {"STOPPING", {"CG", "COMPLETING"}},
    {"SUSPENDED", {"S", "SUSPENDED"}},  {"PREEMPTED", {"PR", "PREEMPTED"}},
    {"COMPLETED", {"CD", "COMPLETED"}}, {"FAILED", {"F", "FAILED"}},
    {"CANCELLED", {"CA", "CANCELLED"}}, {"TIMED_OUT", {"TO", "TIMEOUT"}},
    {"FAILED", kOutOfMemory},           {"FAILED", kNodeFail},
    {"CANCELLED", kDeadline},
};

// States of Slurm that no job here ever has: filters may name them and find nothing.
constexpr StateName kNever[] = {
    {"BF", "BOOT_FAIL"}, {"RD", "RESV_DEL_HOLD"}, {"RF", "REQUEUE_FED"}, {"RH", "REQUEUE_HOLD"},
    {"RQ", "REQUEUED"},  {"RS", "RESIZING"},      {"RV", "REVOKED"},     {"SE", "SPECIAL_EXIT"},
    {"SI", "SIGNALING"}, {"SO", "STAGE_OUT"},     {"ST", "STOPPED"},
};

// Of an entry that stands for several members: their indices.
constexpr std::string_view kMembers = "slurm_members";

std::string label_of(const Json& job, std::string_view name) {
  return text_at(cli::object_at(cli::spec_of(job), "labels"), name);
}

// The request is that of one node.
std::optional<std::int64_t> on_all_nodes(const Json& job, std::string_view field) {
  const auto held = cli::integer_at(job, field);
  const auto each = cli::integer_at(cli::spec_of(job), field);
  return held || !each ? held : std::optional(*each * node_count(job));
}

const Json* latest_attempt(const Json& job) {
  const Json& attempts = cli::list_at(job, "attempts");
  return attempts.empty() ? nullptr : &attempts.back();
}

}  // namespace

StateName state_of(const Json& job) {
  const std::string state = text_at(job, "state");
  if (state == "FAILED") {
    if (text_at(job, "reason") == "OUT_OF_MEMORY") return kOutOfMemory;
    if (!text_at(job, "lost").empty()) return kNodeFail;
  }
  if (state == "CANCELLED" && text_at(job, "reason") == "DEADLINE") return kDeadline;
  const auto row = std::ranges::find(kStates, std::string_view(state), &StateRow::platform);
  return row == std::end(kStates) ? StateName{"?", "UNKNOWN"} : row->slurm;
}

std::string array_task_id(const Json& job) {
  const std::string members = text_at(job, kMembers);
  if (members.empty()) return cli::shown_id(job);
  return fmt::format("{}_[{}]", text_at(job, "array_id"), members);
}

StateName recorded_state_of(const Json& job) {
  const StateName state = state_of(job);
  if (state.code == "CF") return {"PD", "PENDING"};
  if (state.code == "CG") return {"R", "RUNNING"};
  return state;
}

std::optional<std::vector<std::string>> platform_states(std::string_view name) {
  const std::string wanted = upper_case(name);
  std::vector<std::string> states;
  for (const StateRow& row : kStates) {
    if (row.slurm.code == wanted || row.slurm.name == wanted) states.emplace_back(row.platform);
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

bool has_ended(const Json& job) {
  return cli::is_ended_state(text_at(job, "state"));
}

std::string reason_of(const Json& job) {
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
  if (const std::string code = text_at(cli::object_at(job, "wait_reason"), "code"); !code.empty()) {
    const auto row = std::ranges::find(kWaiting, std::string_view(code),
                                       &std::pair<std::string_view, std::string_view>::first);
    return row == std::end(kWaiting) ? code : std::string(row->second);
  }
  const StateName state = state_of(job);
  if (state.code == "DL") return "DeadLine";
  if (text_at(job, "reason") == "DEPENDENCY_FAILED") return "DependencyNeverSatisfied";
  if (state.code == "TO") return "TimeLimit";
  if (state.code == "OOM") return "OutOfMemory";
  if (state.code == "NF") return "NodeDown";
  if (text_at(job, "reason") == "LAUNCH_FAILED") return "JobLaunchFailure";
  if (state.code == "F") return "NonZeroExitCode";
  return "None";
}

const Json& attempt_or_job(const Json& job) {
  const Json* attempt = latest_attempt(job);
  return attempt == nullptr ? job : *attempt;
}

std::vector<std::string> node_names(const Json& job) {
  const Json* attempt = latest_attempt(job);
  const std::string_view code = state_of(job).code;
  if (attempt == nullptr || code == "PD" || code == "PR") return {};
  return cli::texts_at(*attempt, "nodes");
}

bool is_on_any(const Json& job, const std::string& list) {
  const auto wanted = host_names(list);
  return std::ranges::any_of(node_names(job), [&](const std::string& name) {
    return std::ranges::find(wanted, name) != wanted.end();
  });
}

std::string printed_to(const Json& job, std::string_view key) {
  const std::string file = cli::file_of(job, key);
  return file.empty() && key == "error" ? cli::file_of(job, "output") : file;
}

std::string node_of(const Json& job) {
  return host_list(node_names(job));
}

std::string first_node_of(const Json& job) {
  const auto nodes = node_names(job);
  return nodes.empty() ? std::string() : nodes[host_order(nodes).front()];
}

std::int64_t node_count(const Json& job) {
  const auto nodes = std::ssize(node_names(job));
  if (nodes > 0) return nodes;
  return std::max<std::int64_t>(1, cli::integer_at(cli::spec_of(job), "nodes").value_or(1));
}

std::int64_t task_count(const Json& job) {
  const auto tasks = base::parse_count(label_of(job, "slurm.tasks"), 1, UINT32_MAX);
  return tasks ? static_cast<std::int64_t>(*tasks) : node_count(job);
}

std::string required_nodes_of(const Json& job) {
  return cli::joined(cli::texts_at(cli::spec_of(job), "nodelist"), ",");
}

std::string excluded_nodes_of(const Json& job) {
  return cli::joined(cli::texts_at(cli::spec_of(job), "exclude"), ",");
}

std::string types_of(const Json& job) {
  const auto types = cli::texts_at(cli::spec_of(job), "gpu_types");
  return types.empty() ? "(null)" : cli::joined(types, "|");
}

std::string partition_of(const Json& job) {
  const std::string label = label_of(job, "slurm.partition");
  return label.empty() ? std::string(kPartition) : label;
}

std::string qos_of(const Json& job) {
  const std::string label = label_of(job, "slurm.qos");
  if (!label.empty()) return label;
  const std::string priority = text_at(cli::spec_of(job), "priority");
  if (priority.empty() || priority == "MEDIUM") return "normal";
  return lower_case(priority);
}

std::string dependency_of(const Json& job) {
  const std::string unmet = text_at(job, "dependency_unmet");
  if (unmet.empty() || state_of(job).code != "PD") return "(null)";
  std::string text;
  for (const char c : unmet) {
    if (c == ',' || c == '?') text += "(unfulfilled)";
    text.push_back(c);
  }
  return text + "(unfulfilled)";
}

bool is_batch(const Json& job) {
  const auto command = cli::texts_at(cli::spec_of(job), "command");
  const bool is_step =
      command.size() > 1 && command[0].ends_with("gpu-platform-slurm") && command[1] == "job-step";
  return !is_step;
}

std::string command_of(const Json& job) {
  const auto command = cli::texts_at(cli::spec_of(job), "command");
  const bool is_ours = command.size() > 1 && command[0].ends_with("gpu-platform-slurm");
  if (!is_ours) return command.empty() ? "(null)" : cli::shell_quoted(command);
  const std::string script = label_of(job, "slurm.command");
  std::vector<std::string> words(command.begin() + 2, command.end());
  if (command[1] == "batch-step") {
    if (script.empty()) return "(null)";
    if (words.empty()) return script;
    words.front() = script;
  }
  return words.empty() ? "(null)" : cli::joined(words, " ");
}

std::string priority_of(const Json& job) {
  if (text_at(job, "state") == "HELD") return "0";
  constexpr std::string_view kClasses[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};
  const Json& spec = cli::spec_of(job);
  const auto rank =
      std::ranges::find(kClasses, std::string_view(text_at(spec, "priority"))) - kClasses;
  return fmt::format(
      "{}", (rank % 4 + 1) * 1000 + cli::integer_at(spec, "priority_number").value_or(0) * 100);
}

std::string array_throttle(const Json& job) {
  const std::string array = text_at(cli::spec_of(job), "array");
  const std::size_t percent = array.find('%');
  return percent == std::string::npos ? std::string() : array.substr(percent + 1);
}

std::int64_t restarts_of(const Json& job) {
  return std::max<std::int64_t>(1, cli::integer_at(job, "attempt").value_or(1)) - 1;
}

std::optional<base::Instant> expected_start(const Json& job) {
  const auto started = cli::time_at(job, "started_at");
  return started ? started : cli::time_at(job, "estimated_start");
}

std::int64_t exit_status_of(const Json& job) {
  const auto signal = api::signal_number(text_at(job, "signal"));
  return cli::integer_at(job, "exit_code").value_or(0) * 256 + signal.value_or(0);
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

std::vector<Json> with_joined_members(std::vector<Json> jobs) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> waiting;
  const auto key_of = [](const Json& job) {
    return std::pair(text_at(job, "array_id"), reason_of(job));
  };
  const auto is_joined = [](const Json& job) {
    return !text_at(job, "array_id").empty() && state_of(job).code == "PD" && restarts_of(job) == 0;
  };
  for (const Json& job : jobs) {
    if (is_joined(job))
      waiting[key_of(job)].push_back(cli::integer_at(job, "array_index").value_or(0));
  }
  std::vector<Json> result;
  for (Json& job : jobs) {
    const auto members = is_joined(job) ? waiting.find(key_of(job)) : waiting.end();
    if (members == waiting.end()) {
      if (!is_joined(job)) result.push_back(std::move(job));
      continue;
    }
    const std::string throttle = array_throttle(job);
    std::ranges::sort(members->second);
    job[std::string(kMembers)] =
        cli::ranges_of(members->second) + (throttle.empty() ? "" : "%" + throttle);
    waiting.erase(members);
    result.push_back(std::move(job));
  }
  return result;
}

std::string comment_of(const Json& job) {
  return text_at(cli::spec_of(job), "comment");
}

std::string gpus_asked(const Json& job, GpusPer per) {
  constexpr std::string_view kNames[] = {"job", "node", "task", "socket"};
  const auto total = static_cast<std::int64_t>(cli::total_gpus(cli::spec_of(job)));
  if (total == 0) return {};
  std::string label = label_of(job, "slurm.gpus_per");
  if (label.empty()) label = "node";
  for (const std::string& item : comma_separated(label)) {
    const std::size_t dot = item.find('.');
    if (item.substr(0, dot) != kNames[static_cast<std::size_t>(per)]) continue;
    std::string count = dot == std::string::npos ? std::string() : item.substr(dot + 1);
    if (count.empty())
      count = fmt::format("{}", per == GpusPer::kJob ? total : total / node_count(job));
    const auto types = cli::texts_at(cli::spec_of(job), "gpu_types");
    return types.size() == 1 ? fmt::format("gpu:{}:{}", types.front(), count)
                             : fmt::format("gpu:{}", count);
  }
  return {};
}

std::optional<std::int64_t> cpus_of(const Json& job) {
  return on_all_nodes(job, "cpus");
}

std::optional<std::int64_t> memory_of(const Json& job) {
  return on_all_nodes(job, "memory_bytes");
}

std::int64_t cpus_of_each_node(const Json& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / node_count(job));
}

std::int64_t cpus_of_each_task(const Json& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / task_count(job));
}

std::optional<MemoryShare> memory_share_of(const Json& job) {
  const auto bytes = memory_of(job);
  if (!bytes) return std::nullopt;
  const auto cpus = cpus_of(job);
  if (cpus && label_of(job, "slurm.memory_per") == "cpu") return MemoryShare{*bytes / *cpus, true};
  return MemoryShare{*bytes / node_count(job), false};
}

std::string trackable(const Json& job) {
  std::string text;
  if (const auto cpus = cpus_of(job)) text += fmt::format("cpu={},", *cpus);
  if (const auto memory = memory_of(job)) text += fmt::format("mem={},", slurm_memory(*memory));
  text += fmt::format("node={},billing={}", node_count(job), cpus_of(job).value_or(1));
  if (const auto gpus = cli::total_gpus(cli::spec_of(job)); gpus > 0)
    text += fmt::format(",gres/gpu={}", gpus);
  return text;
}

base::Duration run_time(const Json& job, base::Instant now) {
  const auto started = cli::time_at(job, "started_at");
  if (!started) return {};
  return cli::time_at(job, "ended_at").value_or(now) - *started;
}

base::Duration time_limit(const Json& job) {
  return base::milliseconds(static_cast<std::int64_t>(
      cli::number_at(cli::spec_of(job), "time_limit_seconds").value_or(0) * 1000));
}

std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none) {
  if (!at) return std::string(none);
  // The form belongs to the whole process, as its time zone does.
  const char* form = std::getenv("SLURM_TIME_FORMAT");
  const base::Instant now(std::int64_t{std::time(nullptr)} * 1'000'000'000);
  return time_in_form(*at, now, form == nullptr ? "" : form);
}

std::string exit_and_signal(const Json& job) {
  const auto signal = api::signal_number(text_at(job, "signal"));
  return fmt::format("{}:{}", cli::integer_at(job, "exit_code").value_or(0), signal.value_or(0));
}

std::string recorded_exit_of(const Json& job) {
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

client::Called<std::vector<Json>> list_jobs(client::Client& client, const std::string& query) {
  std::vector<Json> jobs;
  std::string token;
  do {
    std::string page = query;
    http::append_query(page, "limit", "10000");
    if (!token.empty()) http::append_query(page, "page_token", token);
    const auto body = client.get("/v1/jobs?" + page);
    if (!body) return std::unexpected(body.error());
    const auto document = cli::parse_object(*body);
    if (!document)
      return std::unexpected(client::Failure{
          client::Failure::Kind::kBadAnswer, "a list is not a JSON object", {}, {}});
    for (const Json& job : cli::list_at(*document, "jobs")) jobs.push_back(job);
    token = text_at(*document, "next_page");
  } while (!token.empty());
  std::ranges::reverse(jobs);
  return jobs;
}

client::Called<std::vector<Json>> get_jobs(client::Client& client, const std::string& id) {
  const auto members = client::members_of(client, id);
  if (!members) return std::unexpected(members.error());
  std::vector<Json> jobs;
  for (const std::string& member : *members) {
    auto job = get_job(client, member);
    if (!job) return std::unexpected(job.error());
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

client::Called<Json> get_job(client::Client& client, const std::string& id) {
  const auto body = client.get("/v1/jobs/" + base::percent_encoded(id));
  if (!body) return std::unexpected(body.error());
  auto job = cli::parse_object(*body);
  if (!job)
    return std::unexpected(
        client::Failure{client::Failure::Kind::kBadAnswer, "a job is not a JSON object", {}, {}});
  return std::move(*job);
}

std::string own_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace gpu_platform::shims
