#include <algorithm>

#include <fmt/format.h>

#include "api/convert/text_forms.h"
#include "cli/http.h"
#include "cli/job_text.h"
#include "cli/text.h"
#include "shims/call.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kSynopsis = "[options] [-j ID,…]";
constexpr std::string_view kUsual = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
// How long ended jobs stay in sight where a filter names their states (MinJobAge).
constexpr base::Duration kEndedInSight = base::minutes(5);

constexpr Option kOptions[] = {
    {"jobs", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"user", 'u', Take::kValue, Rule::kHonoured, "", "SQUEUE_USERS"},
    {"me", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"states", 't', Take::kValue, Rule::kHonoured, "", "SQUEUE_STATES"},
    {"name", 'n', Take::kValue, Rule::kHonoured, "", "SQUEUE_NAMES"},
    {"account", 'A', Take::kValue, Rule::kHonoured, "", "SQUEUE_ACCOUNT"},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", "SQUEUE_PARTITION"},
    {"nodelist", 'w', Take::kValue, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", "SQUEUE_FORMAT"},
    {"Format", 'O', Take::kValue, Rule::kHonoured, "", "SQUEUE_FORMAT2"},
    {"noheader", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
    {"start", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"sort", 'S', Take::kValue, Rule::kHonoured, "", "SQUEUE_SORT"},
    {"help", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"array", 'r', Take::kNothing, Rule::kAccepted, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"clusters", 'M', Take::kValue, Rule::kIgnored, "there is one cluster", ""},
    {"iterate", 'i', Take::kValue, Rule::kRefused, "use watch squeue, or gpu-platform watch", ""},
    {"json", 0, Take::kMayHaveValue, Rule::kRefused,
     "Slurm's JSON is not supported: 'gpu-platform jobs list --json' has "
     "the platform's",
     ""},
    {"yaml", 0, Take::kMayHaveValue, Rule::kRefused, "use 'gpu-platform jobs list --json'", ""},
};

struct Row {
  const Json& job;
  base::Instant now;
};

std::string node_or_reason(const Row& row) {
  const std::string node = node_of(row.job);
  return node.empty() || has_ended(row.job) ? fmt::format("({})", reason_of(row.job)) : node;
}

std::optional<base::Instant> expected_start(const Json& job) {
  const auto started = cli::time_at(job, "started_at");
  return started ? started : cli::time_at(job, "estimated_start");
}

std::string memory_text(const Json& job) {
  const auto bytes = memory_of(job);
  return bytes ? slurm_memory(*bytes) : "0";
}

std::string end_text(const Json& job) {
  const auto ended = cli::time_at(job, "ended_at");
  const auto started = cli::time_at(job, "started_at");
  return slurm_time(ended || !started ? ended : std::optional(*started + time_limit(job)), "N/A");
}

std::string none_if_empty(std::string text, std::string_view none) {
  return text.empty() ? std::string(none) : text;
}

std::string id_of(const Row& row) {
  return text_at(row.job, "id");
}

std::span<const Field<Row>> fields() {
  static const std::vector<Field<Row>> kFields = {
      {'i', "JobArrayID", "JOBID", [](const Row& row) { return array_task_id(row.job); }},
      {'A', "JobID", "JOBID", id_of},
      {'F', "ArrayJobID", "ARRAY_JOB_ID",
       [](const Row& row) {
         return none_if_empty(text_at(row.job, "array_id"), text_at(row.job, "id"));
       }},
      {'K', "ArrayTaskID", "ARRAY_TASK_ID",
       [](const Row& row) { return none_if_empty(text_at(row.job, "array_index"), "N/A"); }},
      {'P', "Partition", "PARTITION", [](const Row& row) { return partition_of(row.job); }},
      {'j', "Name", "NAME", [](const Row& row) { return text_at(cli::spec_of(row.job), "name"); }},
      {'u', "UserName", "USER",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "user"); }},
      {'t', "StateCompact", "ST",
       [](const Row& row) { return std::string(state_of(row.job).code); }},
      {'T', "State", "STATE", [](const Row& row) { return std::string(state_of(row.job).name); }},
      {'M', "TimeUsed", "TIME",
       [](const Row& row) { return short_elapsed(run_time(row.job, row.now)); }},
      {'l', "TimeLimit", "TIME_LIMIT",
       [](const Row& row) { return short_elapsed(time_limit(row.job)); }},
      {'L', "TimeLeft", "TIME_LEFT",
       [](const Row& row) {
         return short_elapsed(time_limit(row.job) - run_time(row.job, row.now));
       }},
      {'D', "NumNodes", "NODES", [](const Row&) { return std::string("1"); }},
      {'C', "NumCPUs", "CPUS",
       [](const Row& row) { return fmt::format("{}", cpus_of(row.job).value_or(1)); }},
      {0, "NumTasks", "TASKS", [](const Row&) { return std::string("1"); }},
      {'m', "MinMemory", "MIN_MEMORY", [](const Row& row) { return memory_text(row.job); }},
      {'R', "ReasonList", "NODELIST(REASON)", node_or_reason},
      {'r', "Reason", "REASON", [](const Row& row) { return reason_of(row.job); }},
      {'N', "NodeList", "NODELIST", [](const Row& row) { return node_of(row.job); }},
      {'B', "BatchHost", "EXEC_HOST",
       [](const Row& row) { return none_if_empty(node_of(row.job), "n/a"); }},
      {'Y', "SchedNodes", "SCHEDNODES", [](const Row&) { return std::string("(null)"); }},
      {'b', "tres-per-node", "TRES_PER_NODE",
       [](const Row& row) { return none_if_empty(gpus_asked(row.job), "N/A"); }},
      {0, "gres", "GRES", [](const Row& row) { return none_if_empty(gpus_asked(row.job), "N/A"); }},
      {0, "tres-alloc", "TRES_ALLOC", [](const Row& row) { return trackable(row.job); }},
      {'a', "Account", "ACCOUNT",
       [](const Row& row) {
         return none_if_empty(text_at(cli::spec_of(row.job), "team"), "(null)");
       }},
      {'q', "QOS", "QOS", [](const Row&) { return std::string("normal"); }},
      {'V', "SubmitTime", "SUBMIT_TIME",
       [](const Row& row) { return slurm_time(cli::time_at(row.job, "submitted_at"), "N/A"); }},
      {'S', "StartTime", "START_TIME",
       [](const Row& row) { return slurm_time(expected_start(row.job), "N/A"); }},
      {'e', "EndTime", "END_TIME", [](const Row& row) { return end_text(row.job); }},
      {'Q', "PriorityLong", "PRIORITY",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "priority_number"); }},
      {'p', "Priority", "PRIORITY",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "priority_number"); }},
      {'k', "Comment", "COMMENT",
       [](const Row& row) { return none_if_empty(comment_of(row.job), "(null)"); }},
      {'o', "Command", "COMMAND",
       [](const Row& row) {
         return cli::shell_quoted(cli::texts_at(cli::spec_of(row.job), "command"));
       }},
      {'Z', "WorkDir", "WORK_DIR",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "workdir"); }},
      {0, "exit_code", "EXIT_CODE", [](const Row& row) { return exit_and_signal(row.job); }},
      {'f', "Feature", "FEATURES", [](const Row&) { return std::string("(null)"); }},
      {'E', "Dependency", "DEPENDENCY", [](const Row&) { return std::string("(null)"); }},
      {'v', "Reservation", "RESERVATION", [](const Row&) { return std::string("(null)"); }},
      {'y', "Nice", "NICE", [](const Row&) { return std::string("0"); }},
  };
  return kFields;
}

base::Result<std::vector<Bound<Row>>> columns_of(const Settings& settings) {
  constexpr std::size_t kNamedWidth = 20;
  if (settings.has("Format")) {
    TRY_ASSIGN(const auto columns, named_columns(settings.value("Format"), ':', kNamedWidth));
    return bound(columns, fields());
  }
  std::string_view format = kUsual;
  if (settings.has("format")) {
    format = settings.value("format");
  } else if (settings.has("start")) {
    format = kStart;
  } else if (settings.has("long")) {
    format = kLong;
  }
  TRY_ASSIGN(const auto columns, letter_columns(format));
  return bound(columns, fields());
}

// What the daemon does not filter.
bool is_wanted(const Json& job, const Settings& settings, const std::vector<std::string>& states) {
  if (!states.empty() && !is_in_state(state_of(job), states)) return false;
  const std::pair<std::string_view, std::string> filters[] = {
      {"name", text_at(cli::spec_of(job), "name")},
      {"account", text_at(cli::spec_of(job), "team")},
      {"partition", partition_of(job)},
      {"nodelist", node_of(job)},
      {"user", text_at(cli::spec_of(job), "user")}};
  for (const auto& [option, value] : filters) {
    if (settings.has(option) && !is_listed(value, settings.value(option))) return false;
  }
  return !settings.has("me") || text_at(cli::spec_of(job), "user") == own_user();
}

// The states asked for; empty: all. Ended jobs are shown only where they are asked for.
base::Result<std::vector<std::string>> states_of(const Settings& settings) {
  if (!settings.has("states")) {
    if (settings.has("start")) return std::vector<std::string>{"PD"};
    return std::vector<std::string>{"PD", "CF", "R", "CG", "S", "PR"};
  }
  const auto names = comma_separated(settings.value("states"));
  for (const std::string& name : names) {
    if (plain_name(name) == "all") return std::vector<std::string>();
    if (!platform_states(name))
      return base::invalid("--states", fmt::format("'{}' is no state of jobs", name));
  }
  return names;
}

std::string query_of(const std::vector<std::string>& states, base::Instant now) {
  std::string query = "all=true";
  std::string since;
  api::append_rfc3339(since, base::Instant(now.unix_ns() - kEndedInSight.value()));
  cli::append_query(query, "since", since);
  std::vector<std::string> asked;
  for (const std::string& name : states) {
    for (const std::string& state : platform_states(name).value_or(std::vector<std::string>())) {
      if (std::ranges::find(asked, state) == asked.end()) asked.push_back(state);
    }
  }
  for (const std::string& state : asked) cli::append_query(query, "state", state);
  return query;
}

// Jobs by id are asked for one by one: they may have ended long ago.
cli::Called<std::vector<Json>> jobs_of(cli::Client& client, const Settings& settings,
                                       const std::vector<std::string>& states, base::Instant now) {
  const auto ids = comma_separated(settings.value("jobs"));
  if (ids.empty()) return list_jobs(client, query_of(states, now));
  std::vector<Json> jobs;
  for (const std::string& id : ids) {
    auto members = get_jobs(client, id);
    const bool is_missing = !members && members.error().kind == cli::Failure::Kind::kProblem;
    if (!members && (!is_missing || ids.size() == 1)) {
      if (is_missing) members.error().message = "Invalid job id specified";
      return std::unexpected(members.error());
    }
    if (members) std::ranges::move(*members, std::back_inserter(jobs));
  }
  return jobs;
}

// Waiting jobs first, by priority, as squeue does; of equal ones the older.
void put_in_order(std::vector<Json>& jobs, std::string_view by) {
  if (by == "-i") std::ranges::reverse(jobs);
  if (by == "-i" || by == "i" || by == "+i") return;
  std::ranges::stable_sort(jobs, {}, [](const Json& job) {
    const bool waits = state_of(job).code == "PD";
    return std::pair(!waits,
                     waits ? cli::integer_at(cli::spec_of(job), "priority_number").value_or(0) : 0);
  });
}

}  // namespace

int squeue(Call& call) {
  const auto given = call.given({kOptions, kSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto columns = columns_of(settings);
  if (!columns) return call.fail(columns.error());
  const auto states = states_of(settings);
  if (!states) return call.fail(states.error());
  auto client = call.client();
  if (!client) return 1;
  const base::Instant now = call.around().now();
  auto jobs = jobs_of(*client, settings, *states, now);
  if (!jobs) return call.fail(jobs.error());
  std::erase_if(*jobs, [&](const Json& job) { return !is_wanted(job, settings, *states); });
  put_in_order(*jobs, settings.value("sort"));
  std::vector<Row> rows;
  for (const Json& job : *jobs) rows.push_back({job, now});
  call.console().out(rendered(*columns, rows, !settings.has("noheader")));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
