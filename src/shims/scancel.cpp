#include <algorithm>

#include <fmt/format.h>

#include "cli/http.h"
#include "cli/job_text.h"
#include "shims/call.h"
#include "shims/job_view.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kSynopsis = "[options] [JOB_ID…]";
constexpr std::string_view kNoPrompt = "nothing is asked";

constexpr Option kOptions[] = {
    {"user", 'u', Take::kValue, Rule::kHonoured, "", "SCANCEL_USER"},
    {"me", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"name", 'n', Take::kValue, Rule::kHonoured, "", "SCANCEL_NAME"},
    {"jobname", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"state", 't', Take::kValue, Rule::kHonoured, "", "SCANCEL_STATE"},
    {"account", 'A', Take::kValue, Rule::kHonoured, "", "SCANCEL_ACCOUNT"},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", "SCANCEL_PARTITION"},
    {"signal", 's', Take::kValue, Rule::kHonoured, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kHonoured, "", ""},
    {"help", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"batch", 'b', Take::kNothing, Rule::kAccepted, "", ""},
    {"full", 'f', Take::kNothing, Rule::kAccepted, "", ""},
    {"hurry", 'H', Take::kNothing, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"ctld", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"interactive", 'i', Take::kNothing, Rule::kRefused, kNoPrompt, "SCANCEL_INTERACTIVE"},
    {"clusters", 'M', Take::kValue, Rule::kIgnored, "there is one cluster", ""},
};

// "cancel" or "kill"; the daemon sends no other signals to a job that runs.
base::Result<std::string> call_for(const Settings& settings) {
  if (!settings.has("signal")) return std::string("cancel");
  std::string_view signal = settings.value("signal");
  if (signal.starts_with("SIG")) signal.remove_prefix(3);
  if (signal == "KILL" || signal == "9") return std::string("kill");
  if (signal == "TERM" || signal == "15") return std::string("cancel");
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("'{}' cannot be sent to a running job: TERM, and SIGKILL after the "
                                "grace time, or KILL; another signal goes to one process with "
                                "'gpu-platform jobs exec ID -- kill -s SIGNAL PID', and to the job "
                                "before its time limit with sbatch --signal",
                                settings.value("signal")),
                    "--signal");
}

bool is_one_of(const std::string& value, const Settings& settings, std::string_view option) {
  return !settings.has(option) || is_listed(value, settings.value(option));
}

bool is_wanted(const Json& job, const Settings& settings) {
  return !has_ended(job) && is_one_of(text_at(cli::spec_of(job), "user"), settings, "user") &&
         (!settings.has("me") || text_at(cli::spec_of(job), "user") == own_user()) &&
         is_one_of(text_at(cli::spec_of(job), "name"), settings, "name") &&
         is_one_of(text_at(cli::spec_of(job), "name"), settings, "jobname") &&
         is_one_of(text_at(cli::spec_of(job), "team"), settings, "account") &&
         is_one_of(partition_of(job), settings, "partition") &&
         (!settings.has("state") ||
          is_in_state(state_of(job), comma_separated(settings.value("state"))));
}

bool has_filter(const Settings& settings) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"user", "me", "name", "jobname", "state", "account",
                                              "partition"},
      [&](std::string_view name) { return settings.has(name); });
}

// The ids to act on. Ids that were given are narrowed by the filters.
cli::Called<std::vector<std::string>> targets(cli::Client& client, const Settings& settings,
                                              const std::vector<std::string>& ids) {
  if (!has_filter(settings)) return ids;
  const auto jobs =
      list_jobs(client,
                "all=true&state=HELD&state=PENDING&state=QUEUED&state=STARTING&state=RUNNING&"
                "state=STOPPING&state=SUSPENDED&state=PREEMPTED");
  if (!jobs) return std::unexpected(jobs.error());
  std::vector<std::string> found;
  for (const Json& job : *jobs) {
    const std::string id = text_at(job, "id");
    const bool is_named =
        ids.empty() || std::ranges::any_of(ids, [&](const std::string& name) {
          return name == id || name == array_task_id(job) || name == text_at(job, "array_id");
        });
    if (is_named && is_wanted(job, settings)) found.push_back(id);
  }
  return found;
}

base::Status check_states(const Settings& settings) {
  for (const std::string& state : comma_separated(settings.value("state"))) {
    const auto known = platform_states(state);
    if (!known) return base::invalid("--state", fmt::format("'{}' is no state of jobs", state));
  }
  return {};
}

}  // namespace

int scancel(Call& call) {
  const auto given = call.given({kOptions, kSynopsis, true});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  std::vector<std::string> ids;
  for (const std::string& word : given->words) {
    for (std::string& id : comma_separated(word)) ids.push_back(std::move(id));
  }
  if (ids.empty() && !has_filter(settings))
    return call.fail("no job: name ids, or choose jobs with -u, --me, -n, -t, -A or -p");
  const auto how = call_for(settings);
  if (!how) return call.fail(how.error());
  if (const auto checked = check_states(settings); !checked) return call.fail(checked.error());
  auto client = call.client();
  if (!client) return 1;
  const auto found = targets(*client, settings, ids);
  if (!found) return call.fail(found.error());
  int code = 0;
  for (const std::string& id : *found) {
    const auto stopped =
        client->post(fmt::format("/v1/jobs/{}/{}", cli::percent_encoded(id), *how));
    if (stopped) continue;
    code = 1;
    const bool is_missing = stopped.error().code == base::ErrorCode::kNotFound;
    if (!settings.has("quiet")) {
      call.fail(fmt::format("Kill job error on job id {}: {}", id,
                            is_missing ? "Invalid job id specified" : stopped.error().message));
    }
    if (stopped.error().kind == cli::Failure::Kind::kNoDaemon) break;
  }
  return code;
}

}  // namespace gpu_platform::shims
