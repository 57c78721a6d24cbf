#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/utc.h"
#include "http/http.h"
#include "model/job_spec.h"
#include "shims/command_call.h"
#include "shims/documents/slurm_json.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"
#include "shims/views/squeue_fields.h"
#include "shims/views/squeue_steps.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kQueueSynopsis = "[options] [-j ID,…]";
constexpr std::string_view kUsualQueue = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLongQueue = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
// How long ended jobs stay in sight where a filter names their states (MinJobAge).
constexpr base::Duration kEndedInSight = base::minutes(5);

constexpr Option kQueueRows[] = {
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
    {"qos", 'q', Take::kValue, Rule::kHonoured, "", "SQUEUE_QOS"},
    {"reservation", 'R', Take::kValue, Rule::kHonoured, "", ""},
    {"array", 'r', Take::kNothing, Rule::kHonoured, "", "SQUEUE_ARRAY"},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", "SQUEUE_ALL"},
    {"array-unique", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"sibling", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"noconvert", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"priority", 'P', Take::kNothing, Rule::kAccepted, "", "SQUEUE_PRIORITY"},
    {"licenses", 'L', Take::kValue, Rule::kRefused, "the platform has no licenses", ""},
    {"steps", 's', Take::kMayHaveValue, Rule::kHonoured, "", ""},
    {"iterate", 'i', Take::kValue, Rule::kHonoured, "", ""},
};
constexpr auto kQueueOptions =
    joined(kQueueRows, kViewOptions, kVerboseOption, kHelpWithoutLetter, kCommonOptions);

base::Result<std::vector<Bound<QueueRow>>> queue_columns(const Settings& settings) {
  constexpr std::size_t kNamedWidth = 20;
  if (settings.has("Format")) {
    TRY_ASSIGN(const auto columns, named_columns(settings.value("Format"), ':', kNamedWidth));
    return bound(columns, squeue_fields());
  }
  std::string format(kUsualQueue);
  if (settings.has("format")) {
    format = whole_format(settings.value("format"), squeue_fields());
  } else if (settings.has("start")) {
    format = kStart;
  } else if (settings.has("long")) {
    format = kLongQueue;
  }
  TRY_ASSIGN(const auto columns, letter_columns(format));
  return bound(columns, squeue_fields());
}

// What the daemon does not filter.
bool is_wanted_in_queue(const v1::Job& job, const Settings& settings,
                        const std::vector<std::string>& states) {
  if (!states.empty() && !is_in_state(state_of(job), states)) return false;
  const v1::JobSpec& spec = job.spec();
  const std::pair<std::string_view, std::string> filters[] = {{"name", spec.name()},
                                                              {"account", spec.team()},
                                                              {"partition", partition_of(job)},
                                                              {"qos", qos_of(job)},
                                                              {"reservation", spec.reservation()}};
  for (const auto& [option, value] : filters) {
    if (settings.has(option) && !is_listed(value, settings.value(option))) return false;
  }
  const std::string user = spec.user();
  const std::string& users = settings.value("user");
  if (!users.empty() && !is_listed(user, users) && !is_listed(user_number(user), users))
    return false;
  if (settings.has("nodelist") && !is_on_any(job, settings.value("nodelist"))) return false;
  return !settings.has("me") || user == own_user();
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
      return base::invalid("--states", fmt::format("'{}' is not a state of jobs", name));
  }
  return names;
}

std::string query_of(const std::vector<std::string>& states, base::Instant now) {
  std::string query = "all=true";
  std::string since;
  base::append_rfc3339(since, base::Instant(now.unix_ns() - kEndedInSight.value()));
  http::append_query(query, "since", since);
  std::vector<std::string> asked;
  for (const std::string& name : states) {
    for (const std::string& state : platform_states(name).value_or(std::vector<std::string>())) {
      if (std::ranges::find(asked, state) == asked.end()) asked.push_back(state);
    }
  }
  for (const std::string& state : asked) http::append_query(query, "state", state);
  return query;
}

// Jobs by id are asked for one by one: they may have ended long ago. One that is named twice is
// shown once.
client::Called<std::vector<v1::Job>> queued_jobs(client::Client& client, const Settings& settings,
                                                 const std::vector<std::string>& states,
                                                 base::Instant now) {
  const auto ids = comma_separated(settings.value("jobs"));
  if (ids.empty()) return list_jobs(client, query_of(states, now));
  std::vector<v1::Job> jobs;
  std::set<std::string> shown;
  for (const std::string& id : ids) {
    auto members = get_jobs(client, id);
    const bool is_missing = !members && members.error().kind == client::Failure::Kind::kProblem;
    if (!members && (!is_missing || ids.size() == 1)) {
      if (is_missing) members.error().message = "Invalid job id specified";
      return std::unexpected(members.error());
    }
    if (!members) continue;
    std::ranges::copy_if(*members, std::back_inserter(jobs),
                         [&](const v1::Job& job) { return shown.insert(job.id()).second; });
  }
  return jobs;
}

// The letters of columns between commas, "-" before one for the other direction. By default those
// that wait come first, and of those the ones with more priority.
base::Status put_in_order(std::vector<v1::Job>& jobs, std::string_view by, base::Instant now) {
  std::vector<std::string> keys = comma_separated(by.empty() ? "P,t,-p" : by);
  std::ranges::reverse(keys);
  for (const std::string& key : keys) {
    const std::string_view letters = std::string_view(key).substr(key.find_first_not_of("+-#"));
    const bool is_falling = key.starts_with('-');
    if (letters.size() != 1 || !sort_key(letters.front(), {v1::Job(), now}))
      return base::invalid("--sort", fmt::format("'{}' is not a column's letter", key));
    std::ranges::stable_sort(jobs, [&](const v1::Job& a, const v1::Job& b) {
      const auto of_a = sort_key(letters.front(), {a, now});
      const auto of_b = sort_key(letters.front(), {b, now});
      return is_falling ? *of_b < *of_a : *of_a < *of_b;
    });
  }
  return {};
}

base::Status check_names(const Settings& settings) {
  for (const std::string& id : comma_separated(settings.value("jobs"))) {
    const bool is_id = id.find_first_not_of("0123456789_[]-,%") == std::string::npos;
    if (!is_id || id.front() < '0' || id.front() > '9')
      return base::invalid({}, fmt::format("Invalid job id: {}", id));
  }
  for (const std::string& user : comma_separated(settings.value("user"))) {
    const bool is_number = user.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number && user_number(user) == user)
      return base::invalid({}, fmt::format("Invalid user: {}", user));
  }
  return {};
}

// How the queue is shown, and which states of jobs.
struct QueueView {
  const std::vector<Bound<QueueRow>>& columns;
  const std::vector<std::string>& states;
  std::optional<DocumentStyle> style;
};

int show_document(CommandCall& call, client::Client& client, const DocumentStyle& style,
                  std::span<const QueueEntry> entries) {
  auto nodes = list_nodes(client);
  if (!nodes) return call.fail(nodes.error());
  auto site = site_of(client);
  if (!site) return call.fail(site.error());
  const DocumentFacts facts{style.form, call.around().now(), std::move(*nodes), std::move(*site)};
  return print_document(call, style, jobs_document(facts, entries));
}

int show_queue(CommandCall& call, client::Client& client, const Settings& settings,
               const QueueView& view) {
  const base::Instant now = call.around().now();
  auto jobs = queued_jobs(client, settings, view.states, now);
  if (!jobs) return call.fail(jobs.error());
  std::erase_if(
      *jobs, [&](const v1::Job& job) { return !is_wanted_in_queue(job, settings, view.states); });
  const bool is_by_start = settings.has("start") && !settings.has("sort");
  const std::string by = is_by_start ? std::string("S") : settings.value("sort");
  if (const auto sorted = put_in_order(*jobs, by, now); !sorted) return call.fail(sorted.error());
  const bool names_members = settings.value("jobs").find('_') != std::string::npos;
  const bool is_old = view.style && view.style->form == DocumentForm::k38;
  const bool joins = !settings.has("array") && !names_members && !is_old;
  const std::vector<QueueEntry> entries =
      joins ? with_joined_members(std::move(*jobs)) : single_entries(std::move(*jobs));
  if (view.style) return show_document(call, client, *view.style, entries);
  const bool shows_billing = std::ranges::any_of(view.columns, [](const Bound<QueueRow>& column) {
    return column.field != nullptr && column.field->name == "tres-alloc";
  });
  // The daemon is asked for its prices where a column depends on them.
  const auto site = shows_billing ? site_of(client) : usual_site();
  if (!site) return call.fail(site.error());
  std::vector<QueueRow> rows;
  for (const auto& [job, members] : entries) rows.push_back({job, now, members, &site->weights});
  const bool is_long = settings.has("long") && !settings.has("format") && !settings.has("Format") &&
                       !settings.has("noheader");
  call.console().out((is_long ? date_line(now) : "") +
                     rendered(view.columns, rows, !settings.has("noheader")));
  return call.console().out_failed() ? 1 : 0;
}

int show_queue_of_steps(CommandCall& call, client::Client& client, const Settings& settings,
                        const std::vector<Bound<QueueStepRow>>& columns,
                        const std::optional<DocumentStyle>& style) {
  const base::Instant now = call.around().now();
  auto jobs = list_jobs(client, "all=true&steps=true&state=RUNNING&state=STOPPING");
  if (!jobs) return call.fail(jobs.error());
  std::erase_if(*jobs, [&](const v1::Job& job) {
    const std::string ids[] = {job.id(), array_task_id(job), job.array_id()};
    const bool is_named =
        !settings.has("jobs") || std::ranges::any_of(ids, [&](const std::string& id) {
          return is_listed(id, settings.value("jobs"));
        });
    return !is_named || !is_wanted_in_queue(job, settings, {});
  });
  const auto steps = running_steps(*jobs, settings.value("steps"), now);
  if (style) return print_document(call, *style, steps_document({style->form, now, {}, {}}, steps));
  call.console().out(rendered(columns, steps, !settings.has("noheader")));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace

std::span<const Option> squeue_options() {
  return kQueueOptions;
}

int squeue(CommandCall& call) {
  const auto given = call.given({kQueueOptions, kQueueSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  if (settings.has("steps")) {
    const auto columns = step_columns_of(settings);
    if (!columns) return call.fail(columns.error());
    auto client = call.client();
    if (!client) return 1;
    return again_and_again(call, settings, [&] {
      return show_queue_of_steps(call, *client, settings, *columns, *style);
    });
  }
  const auto columns = queue_columns(settings);
  if (!columns) return call.fail(columns.error());
  const auto states = states_of(settings);
  if (!states) return call.fail(states.error());
  if (const auto checked = check_names(settings); !checked) return call.fail(checked.error());
  auto client = call.client();
  if (!client) return 1;
  return again_and_again(call, settings, [&] {
    return show_queue(call, *client, settings, {*columns, *states, *style});
  });
}

}  // namespace gpu_platform::shims
