#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "base/letters.h"
#include "base/percent.h"
#include "cli/text/text.h"
#include "client/request_text.h"
#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_variables.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kCancelSynopsis = "[options] [JOB_ID…]";

constexpr Option kCancelRows[] = {
    {"user", 'u', Take::kValue, Rule::kHonoured, "", "SCANCEL_USER"},
    {"me", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"name", 'n', Take::kValue, Rule::kHonoured, "", "SCANCEL_NAME"},
    {"jobname", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"state", 't', Take::kValue, Rule::kHonoured, "", "SCANCEL_STATE"},
    {"account", 'A', Take::kValue, Rule::kHonoured, "", "SCANCEL_ACCOUNT"},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", "SCANCEL_PARTITION"},
    {"signal", 's', Take::kValue, Rule::kHonoured, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kHonoured, "", ""},
    {"batch", 'b', Take::kNothing, Rule::kIgnored, "a signal goes to all processes of the job", ""},
    {"full", 'f', Take::kNothing, Rule::kAccepted, "", ""},
    {"hurry", 'H', Take::kNothing, Rule::kAccepted, "", "SCANCEL_HURRY"},
    {"verbose", 'v', Take::kNothing, Rule::kHonoured, "", "SCANCEL_VERBOSE"},
    {"ctld", 0, Take::kNothing, Rule::kAccepted, "", "SCANCEL_CTLD"},
    {"interactive", 'i', Take::kNothing, Rule::kHonoured, "", "SCANCEL_INTERACTIVE"},
    {"nodelist", 'w', Take::kValue, Rule::kHonoured, "", ""},
    {"reservation", 'R', Take::kValue, Rule::kHonoured, "", ""},
    {"qos", 'q', Take::kValue, Rule::kHonoured, "", "SCANCEL_QOS"},
    {"sibling", 0, Take::kValue, Rule::kRefused, "there is one cluster", ""},
    {"wckey", 0, Take::kValue, Rule::kRefused, "jobs have labels instead of wckeys", ""},
    {"cron", 'c', Take::kNothing, Rule::kRefused, "there are no scrontab jobs", ""},
};
constexpr auto kCancelOptions = joined(kCancelRows, kHelpWithoutLetter, kCommonOptions);

struct How {
  std::string call;  // last part of the daemon's path
  std::string body;
};

// KILL ends a job in any state. Other signals, TERM too, only reach the processes of a job that
// runs, as in Slurm: what becomes of the job is up to them.
How how_to_end(const Settings& settings) {
  if (!settings.has("signal")) return {"cancel", {}};
  std::string signal = base::to_upper(settings.value("signal"));
  if (signal.starts_with("SIG")) signal.erase(0, 3);
  if (signal == "KILL" || signal == "9") return {"kill", {}};
  v1::SignalJobRequest request;
  request.set_signal(signal);
  return {"signal", client::request_text(request)};
}

bool is_one_of(const std::string& value, const Settings& settings, std::string_view option) {
  return !settings.has(option) || is_listed(value, settings.value(option));
}

bool runs_on_named(const v1::Job& job, const std::string& list) {
  const auto wanted = host_names(list);
  return std::ranges::any_of(node_names(job), [&](const std::string& name) {
    return std::ranges::find(wanted, name) != wanted.end();
  });
}

bool is_to_be_cancelled(const v1::Job& job, const Settings& settings) {
  const bool has_processes =
      job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_STOPPING;
  return !has_ended(job) && (has_processes || how_to_end(settings).call != "signal") &&
         is_one_of(job.spec().user(), settings, "user") &&
         (!settings.has("me") || job.spec().user() == own_user()) &&
         is_one_of(job.spec().name(), settings, "name") &&
         is_one_of(job.spec().name(), settings, "jobname") &&
         is_one_of(job.spec().team(), settings, "account") &&
         is_one_of(partition_of(job), settings, "partition") &&
         is_one_of(qos_of(job), settings, "qos") &&
         is_one_of(job.spec().reservation(), settings, "reservation") &&
         (!settings.has("nodelist") || runs_on_named(job, settings.value("nodelist"))) &&
         (!settings.has("state") ||
          is_in_state(state_of(job), comma_separated(settings.value("state"))));
}

bool has_filter(const Settings& settings) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"user", "me", "name", "jobname", "state", "account",
                                              "partition", "nodelist", "reservation", "qos"},
      [&](std::string_view name) { return settings.has(name); });
}

// The ids to act on. Ids that were given are narrowed by the filters.
client::Called<std::vector<std::string>> targets(client::Client& client, const Settings& settings,
                                                 const std::vector<std::string>& ids) {
  if (!has_filter(settings)) return ids;
  const auto jobs =
      list_jobs(client,
                "all=true&state=HELD&state=PENDING&state=QUEUED&state=STARTING&state=RUNNING&"
                "state=STOPPING&state=SUSPENDED&state=PREEMPTED");
  if (!jobs) return std::unexpected(jobs.error());
  std::vector<std::string> found;
  for (const v1::Job& job : *jobs) {
    const std::string id = job.id();
    const bool is_named =
        ids.empty() || std::ranges::any_of(ids, [&](const std::string& name) {
          return name == id || name == array_task_id(job) || name == job.array_id();
        });
    if (is_named && is_to_be_cancelled(job, settings)) found.push_back(id);
  }
  return found;
}

base::Status check_cancel_states(const Settings& settings) {
  for (const std::string& state : comma_separated(settings.value("state"))) {
    const auto known = platform_states(state);
    if (!known) return base::invalid("--state", fmt::format("'{}' is not a state of jobs", state));
  }
  return {};
}

// "40_[3-5,9]" as 40_3, 40_4, 40_5 and 40_9; other ids as they are. An error for what is no id.
base::Result<std::vector<std::string>> ids_of(const std::vector<std::string>& words) {
  std::vector<std::string> ids;
  for (const std::string& word : words) {
    const bool is_id = !word.empty() && word.front() >= '0' && word.front() <= '9' &&
                       word.find_first_not_of("0123456789_[],-.batchexrn") == std::string::npos;
    if (!is_id) return base::invalid({}, fmt::format("Invalid job id {}", word));
    if (word.find('[') != std::string::npos) {
      std::ranges::move(host_names(word), std::back_inserter(ids));
    } else {
      std::ranges::move(comma_separated(word), std::back_inserter(ids));
    }
  }
  for (const std::string& id : ids) {
    if (id.find('.') != std::string::npos) {
      return base::invalid({},
                           fmt::format("{}: steps are not ended by themselves; name the job", id));
    }
  }
  return ids;
}

// Asks on stderr as Slurm does; true for an answer that begins with y.
bool is_agreed(CommandCall& call, client::Client& client, const std::string& id) {
  const auto job = get_job(client, id);
  call.console().out(fmt::format("Cancel job_id={} name={} partition={} [y/n]? ", id,
                                 job ? cli::harmless(job->spec().name()) : "",
                                 job ? cli::harmless(partition_of(*job)) : ""));
  std::string answer;
  char c = 0;
  while (::read(call.around().in_fd, &c, 1) == 1 && c != '\n') answer.push_back(c);
  return answer.starts_with('y') || answer.starts_with('Y');
}

// Returns false where it is not worth trying the next.
bool stop_one(CommandCall& call, client::Client& client, const Settings& settings,
              const std::string& id, const How& how, int& code) {
  if (settings.has("interactive") && !is_agreed(call, client, id)) return true;
  if (settings.has("verbose") && !settings.has("quiet"))
    call.console().err(fmt::format("scancel: Terminating job {}\n", cli::harmless(id)));
  const auto stopped =
      client.post(fmt::format("/v1/jobs/{}/{}", base::percent_encoded(id), how.call), how.body);
  if (stopped) return true;
  code = 1;
  const bool is_missing = stopped.error().code == base::ErrorCode::kNotFound;
  if (!settings.has("quiet")) {
    call.fail(fmt::format("Kill job error on job id {}: {}", id,
                          is_missing ? "Invalid job id specified" : stopped.error().message));
  }
  return stopped.error().kind != client::Failure::Kind::kNoDaemon;
}

}  // namespace

std::span<const Option> scancel_options() {
  return kCancelOptions;
}

int scancel(CommandCall& call) {
  const auto given = call.given({kCancelOptions, kCancelSynopsis, true});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto ids = ids_of(given->words);
  if (!ids) return call.fail(ids.error());
  if (ids->empty() && !has_filter(settings)) {
    return call.fail(
        "No job identification provided: name ids, or choose jobs with -u, --me, -n, "
        "-t, -A, -p, -q, -w or -R");
  }
  const How how = how_to_end(settings);
  if (const auto checked = check_cancel_states(settings); !checked)
    return call.fail(checked.error());
  auto client = call.client();
  if (!client) return 1;
  const auto found = targets(*client, settings, *ids);
  if (!found) return call.fail(found.error());
  int code = 0;
  for (const std::string& id : *found) {
    if (!stop_one(call, *client, settings, id, how, code)) break;
  }
  return code;
}

}  // namespace gpu_platform::shims
