#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/text_forms.h"
#include "cli/http.h"
#include "cli/job_text.h"
#include "cli/text.h"
#include "shims/call.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/step_variables.h"
#include "shims/times.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kSynopsis = "[options] [-j ID,…]";
constexpr std::string_view kUsual =
    "JobID,JobName%10,Partition%10,Account%10,AllocCPUS%10,State%10,ExitCode%8";

constexpr Option kOptions[] = {
    {"jobs", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", "SACCT_FORMAT"},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"delimiter", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"starttime", 'S', Take::kValue, Rule::kHonoured, "", ""},
    {"endtime", 'E', Take::kValue, Rule::kHonoured, "", ""},
    {"user", 'u', Take::kValue, Rule::kHonoured, "", ""},
    {"uid", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"allusers", 'a', Take::kNothing, Rule::kHonoured, "", ""},
    {"name", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"state", 's', Take::kValue, Rule::kHonoured, "", ""},
    {"accounts", 'A', Take::kValue, Rule::kHonoured, "", ""},
    {"partition", 'r', Take::kValue, Rule::kHonoured, "", ""},
    {"units", 0, Take::kValue, Rule::kAccepted, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"allocations", 'X', Take::kNothing, Rule::kAccepted, "", ""},
    {"clusters", 'M', Take::kValue, Rule::kAccepted, "", ""},
    {"allclusters", 'L', Take::kNothing, Rule::kAccepted, "", ""},
    {"duplicates", 'D', Take::kNothing, Rule::kAccepted, "", ""},
    {"truncate", 'T', Take::kNothing, Rule::kAccepted, "", ""},
    {"brief", 'b', Take::kNothing, Rule::kHonoured, "", ""},
    {"json", 0, Take::kMayHaveValue, Rule::kRefused,
     "'gpu-platform jobs list --all --json' has the platform's", ""},
};

struct Row {
  const Json& job;
  base::Instant now;
};

// "CANCELLED by 1000": by whom is part of that state.
std::string state_text(const Row& row) {
  const StateName state = recorded_state_of(row.job);
  const std::string by = text_at(row.job, "ended_by");
  if (state.code != "CA" || by.empty()) return std::string(state.name);
  return fmt::format("{} by {}", state.name, user_number(by));
}

std::string none_if_empty(const std::string& text, std::string_view none) {
  return text.empty() ? std::string(none) : text;
}

const Json& latest(const Json& job) {
  const Json& attempts = cli::list_at(job, "attempts");
  return attempts.empty() ? job : attempts.back();
}

std::string peak_memory(const Row& row) {
  const auto peak = cli::integer_at(latest(row.job), "peak_memory_bytes");
  return peak ? fmt::format("{}K", *peak / 1024) : "";
}

base::Duration cpu_time(const Row& row) {
  return base::milliseconds(static_cast<std::int64_t>(
      cli::number_at(latest(row.job), "cpu_time_seconds").value_or(0) * 1000));
}

std::int64_t seconds(base::Duration duration) {
  return std::max<std::int64_t>(0, base::whole_milliseconds(duration) / 1000);
}

std::string cpus_of(const Row& row) {
  return fmt::format("{}", shims::cpus_of(row.job).value_or(0));
}
std::string id_of(const Row& row) {
  return text_at(row.job, "id");
}
std::string memory_of(const Row& row) {
  const auto bytes = shims::memory_of(row.job);
  return bytes ? slurm_memory(*bytes) : "";
}
std::int64_t cpu_seconds(const Row& row) {
  return seconds(run_time(row.job, row.now)) * shims::cpus_of(row.job).value_or(0);
}
std::string time_at(const Row& row, std::string_view key) {
  return slurm_time(cli::time_at(row.job, key), "Unknown");
}

std::span<const Field<Row>> fields() {
  static const std::vector<Field<Row>> kFields = {
      {0, "JobID", "JobID", [](const Row& row) { return array_task_id(row.job); }},
      {0, "JobIDRaw", "JobIDRaw", id_of},
      {0, "JobName", "JobName",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "name"); }},
      {0, "Partition", "Partition", [](const Row& row) { return partition_of(row.job); }},
      {0, "Account", "Account",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "team"); }},
      {0, "User", "User", [](const Row& row) { return text_at(cli::spec_of(row.job), "user"); }},
      {0, "QOS", "QOS", [](const Row&) { return std::string("normal"); }},
      {0, "Cluster", "Cluster", [](const Row&) { return std::string(kCluster); }},
      {0, "State", "State", state_text},
      {0, "ExitCode", "ExitCode", [](const Row& row) { return exit_and_signal(row.job); }},
      {0, "DerivedExitCode", "DerivedExitCode",
       [](const Row& row) { return exit_and_signal(row.job); }},
      {0, "Reason", "Reason", [](const Row& row) { return reason_of(row.job); }},
      {0, "AllocCPUS", "AllocCPUS", cpus_of},
      {0, "NCPUS", "NCPUS", cpus_of},
      {0, "ReqCPUS", "ReqCPUS", cpus_of},
      {0, "AllocNodes", "AllocNodes",
       [](const Row& row) { return std::string(node_of(row.job).empty() ? "0" : "1"); }},
      {0, "NNodes", "NNodes", [](const Row&) { return std::string("1"); }},
      {0, "NTasks", "NTasks", [](const Row&) { return std::string("1"); }},
      {0, "NodeList", "NodeList",
       [](const Row& row) { return none_if_empty(node_of(row.job), "None assigned"); }},
      {0, "ReqMem", "ReqMem", memory_of},
      {0, "MaxRSS", "MaxRSS", peak_memory},
      {0, "ReqTRES", "ReqTRES", [](const Row& row) { return trackable(row.job); }},
      {0, "AllocTRES", "AllocTRES",
       [](const Row& row) { return node_of(row.job).empty() ? "" : trackable(row.job); }},
      {0, "Submit", "Submit", [](const Row& row) { return time_at(row, "submitted_at"); }},
      {0, "Eligible", "Eligible", [](const Row& row) { return time_at(row, "eligible_at"); }},
      {0, "Start", "Start", [](const Row& row) { return time_at(row, "started_at"); }},
      {0, "End", "End", [](const Row& row) { return time_at(row, "ended_at"); }},
      {0, "Timelimit", "Timelimit",
       [](const Row& row) { return long_elapsed(time_limit(row.job)); }},
      {0, "TimelimitRaw", "TimelimitRaw",
       [](const Row& row) { return fmt::format("{}", seconds(time_limit(row.job)) / 60); }},
      {0, "Elapsed", "Elapsed",
       [](const Row& row) { return long_elapsed(run_time(row.job, row.now)); }},
      {0, "ElapsedRaw", "ElapsedRaw",
       [](const Row& row) { return fmt::format("{}", seconds(run_time(row.job, row.now))); }},
      {0, "TotalCPU", "TotalCPU", [](const Row& row) { return long_elapsed(cpu_time(row)); }},
      {0, "CPUTime", "CPUTime",
       [](const Row& row) { return long_elapsed(base::seconds(cpu_seconds(row))); }},
      {0, "CPUTimeRAW", "CPUTimeRAW",
       [](const Row& row) { return fmt::format("{}", cpu_seconds(row)); }},
      {0, "Restarts", "Restarts",
       [](const Row& row) {
         return fmt::format(
             "{}", std::max<std::int64_t>(1, cli::integer_at(row.job, "attempt").value_or(1)) - 1);
       }},
      {0, "Comment", "Comment", [](const Row& row) { return comment_of(row.job); }},
      {0, "WorkDir", "WorkDir",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "workdir"); }},
      {0, "Priority", "Priority",
       [](const Row& row) { return text_at(cli::spec_of(row.job), "priority_number"); }},
  };
  return kFields;
}

base::Result<std::vector<Bound<Row>>> columns_of(const Settings& settings) {
  constexpr std::size_t kWidth = 12;
  std::string_view format = kUsual;
  if (settings.has("format")) {
    format = settings.value("format");
  } else if (settings.has("brief")) {
    format = "JobID,State%10,ExitCode%8";
  }
  TRY_ASSIGN(const auto columns, named_columns(format, '%', kWidth));
  return bound(columns, fields());
}

// Times between which the jobs were there. Without -j: since the last midnight, as in sacct.
struct Window {
  base::Instant begin;
  base::Instant end;
};
base::Result<Window> window_of(const Settings& settings, base::Instant now) {
  Window window{{}, now};
  if (settings.has("starttime")) {
    TRY_ASSIGN(window.begin,
               parse_time_expression("--starttime", settings.value("starttime"), now));
  } else if (!settings.has("jobs")) {
    TRY_ASSIGN(window.begin, parse_time_expression("--starttime", "midnight", now));
  }
  if (settings.has("endtime")) {
    TRY_ASSIGN(window.end, parse_time_expression("--endtime", settings.value("endtime"), now));
  }
  return window;
}

bool is_wanted(const Json& job, const Settings& settings, const Window& window) {
  if (const auto submitted = cli::time_at(job, "submitted_at");
      submitted && *submitted > window.end)
    return false;
  if (const auto ended = cli::time_at(job, "ended_at"); ended && *ended < window.begin)
    return false;
  if (settings.has("state") &&
      !is_in_state(recorded_state_of(job), comma_separated(settings.value("state"))))
    return false;
  const std::pair<std::string_view, std::string> filters[] = {
      {"name", text_at(cli::spec_of(job), "name")},
      {"accounts", text_at(cli::spec_of(job), "team")},
      {"partition", partition_of(job)}};
  for (const auto& [option, value] : filters) {
    if (settings.has(option) && !is_listed(value, settings.value(option))) return false;
  }
  const std::string user = text_at(cli::spec_of(job), "user");
  for (const char* option : {"user", "uid"}) {
    const std::string& list = settings.value(option);
    if (!list.empty() && !is_listed(user, list) && !is_listed(user_number(user), list))
      return false;
  }
  return true;
}

// "7", and "7.batch" and "7.0" where what is known of the job is all that is known of the step.
bool is_of_a_job(std::string_view id) {
  const std::size_t dot = id.find('.');
  const std::string_view step = dot == std::string_view::npos ? "" : id.substr(dot + 1);
  return step.empty() || step == "batch" || step == "0";
}

cli::Called<std::vector<Json>> jobs_of(cli::Client& client, const Settings& settings,
                                       const Window& window) {
  const auto ids = comma_separated(settings.value("jobs"));
  if (!ids.empty()) {
    std::vector<Json> jobs;
    for (const std::string& id : ids) {
      if (!is_of_a_job(id)) continue;
      auto members = get_jobs(client, id.substr(0, id.find('.')));
      // What is not there has no line.
      if (!members && members.error().kind != cli::Failure::Kind::kProblem)
        return std::unexpected(members.error());
      if (members) std::ranges::move(*members, std::back_inserter(jobs));
    }
    return jobs;
  }
  std::string query = "all=true";
  const bool is_own = !settings.has("allusers") && !settings.has("user") && !settings.has("uid");
  if (is_own) cli::append_query(query, "user", own_user());
  if (window.begin.is_set()) {
    std::string since;
    api::append_rfc3339(since, window.begin);
    cli::append_query(query, "since", since);
  }
  return list_jobs(client, query);
}

// -j may be given several times: all of them count.
std::vector<std::string> with_joined_jobs(std::span<const std::string> words) {
  std::vector<std::string> result;
  std::string jobs;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool stands_apart = words[i] == "-j" || words[i] == "--jobs";
    if (stands_apart && i + 1 < words.size()) {
      jobs += (jobs.empty() ? "" : ",") + words[++i];
    } else if (words[i].starts_with("--jobs=")) {
      jobs += (jobs.empty() ? "" : ",") + words[i].substr(7);
    } else {
      result.push_back(words[i]);
    }
  }
  if (!jobs.empty()) result.insert(result.begin(), "--jobs=" + jobs);
  return result;
}

}  // namespace

int sacct(Call& call) {
  const auto given = call.given({kOptions, kSynopsis}, with_joined_jobs(call.words()));
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto columns = columns_of(settings);
  if (!columns) return call.fail(columns.error());
  const base::Instant now = call.around().now();
  const auto window = window_of(settings, now);
  if (!window) return call.fail(window.error());
  for (const std::string& state : comma_separated(settings.value("state"))) {
    if (!platform_states(state))
      return call.fail(fmt::format("--state: '{}' is no state of jobs", state));
  }
  auto client = call.client();
  if (!client) return 1;
  auto jobs = jobs_of(*client, settings, *window);
  if (!jobs) return call.fail(jobs.error());
  std::vector<Row> rows;
  for (const Json& job : *jobs) {
    if (is_wanted(job, settings, *window)) rows.push_back({job, now});
  }
  const bool is_parsable = settings.has("parsable") || settings.has("parsable2");
  const bool has_header = !settings.has("noheader");
  const std::string delimiter = settings.has("delimiter") ? settings.value("delimiter") : "|";
  call.console().out(
      is_parsable ? parsable(*columns, rows, has_header, {delimiter, settings.has("parsable")})
                  : accounted(*columns, rows, has_header));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
