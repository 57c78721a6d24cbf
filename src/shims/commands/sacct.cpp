#include <algorithm>
#include <ctime>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utc.h"
#include "client/answer.h"
#include "http/http.h"
#include "shims/command_call.h"
#include "shims/documents/slurm_json.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"
#include "shims/views/sacct_fields.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kAccountingSynopsis = "[options] [-j ID,…]";
constexpr std::string_view kUsualRecord =
    "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr std::string_view kBrief = "JobID,State,ExitCode";
constexpr std::string_view kLongRecord =
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,"
    "MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,"
    "ReqTRES,AllocTRES,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutMax,"
    "TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutAve,TRESUsageOutTot";

constexpr Option kAccountingOptions[] = {
    {"jobs", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", "SACCT_FORMAT"},
    {"helpformat", 'e', Take::kNothing, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
    {"brief", 'b', Take::kNothing, Rule::kHonoured, "", ""},
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
    {"qos", 'q', Take::kValue, Rule::kHonoured, "", ""},
    {"nodelist", 'N', Take::kValue, Rule::kHonoured, "", ""},
    {"nnodes", 'i', Take::kValue, Rule::kHonoured, "", ""},
    {"ncpus", 'I', Take::kValue, Rule::kHonoured, "", ""},
    {"allocations", 'X', Take::kNothing, Rule::kHonoured, "", ""},
    {"units", 0, Take::kValue, Rule::kHonoured, "", ""},
    {"noconvert", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"json", 0, Take::kMayHaveValue, Rule::kHonoured,
     "the document of Slurm 24.11; v0.0.40, v0.0.41, v0.0.42 and v0.0.38 name a form, list shows "
     "of "
     "them",
     ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"usage", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"clusters", 'M', Take::kValue, Rule::kAccepted, "", ""},
    {"allclusters", 'L', Take::kNothing, Rule::kAccepted, "", ""},
    {"local", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"federation", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"array", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"duplicates", 'D', Take::kNothing, Rule::kIgnored,
     "a job has one line, of its last attempt; gpu-platform jobs describe has all attempts", ""},
    {"truncate", 'T', Take::kNothing, Rule::kIgnored, "times are not cut to the window", ""},
    {"use-local-uid", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"whole-hetjob", 0, Take::kMayHaveValue, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"gid", 'g', Take::kValue, Rule::kRefused, "use -u for the members of the group", ""},
    {"group", 0, Take::kValue, Rule::kRefused, "use -u for the members of the group", ""},
    {"wckeys", 'W', Take::kValue, Rule::kRefused, "jobs have labels instead of wckeys", ""},
    {"flags", 'F', Take::kValue, Rule::kRefused, "use -o Flags and choose lines", ""},
    {"reason", 'R', Take::kValue, Rule::kRefused, "use -o Reason and choose lines", ""},
    {"timelimit-min", 'k', Take::kValue, Rule::kRefused, "use -o TimelimitRaw", ""},
    {"timelimit-max", 'K', Take::kValue, Rule::kRefused, "use -o TimelimitRaw", ""},
    {"associations", 'x', Take::kValue, Rule::kRefused, "use -A and -u", ""},
    {"completion", 'c', Take::kNothing, Rule::kRefused, "there is one record of jobs: leave it out",
     ""},
    {"file", 'f', Take::kValue, Rule::kRefused, "the daemon has the records: leave it out", ""},
    {"batch-script", 'B', Take::kNothing, Rule::kRefused, "scripts are not given out", ""},
    {"env-vars", 0, Take::kNothing, Rule::kRefused, "environments are not given out", ""},
    {"yaml", 0, Take::kMayHaveValue, Rule::kHonoured, "the same document", ""},
};

// A name may be the beginning of a column's: then it is the first such column.
base::Result<std::string> whole_names(std::string_view format) {
  std::string result;
  for (const std::string& item : comma_separated(format)) {
    const std::size_t percent = std::min(item.find('%'), item.size());
    const std::string wanted = lower_case(std::string_view(item).substr(0, percent));
    const auto all = sacct_fields();
    const auto exact = std::ranges::find_if(
        all, [&](const Field<RecordRow>& field) { return lower_case(field.name) == wanted; });
    const auto begun = std::ranges::find_if(all, [&](const Field<RecordRow>& field) {
      return !wanted.empty() && lower_case(field.name).starts_with(wanted);
    });
    const auto found = exact != all.end() ? exact : begun;
    if (found == all.end()) {
      return base::invalid({}, fmt::format("Invalid field requested: \"{}\"; --helpformat has all",
                                           item.substr(0, percent)));
    }
    result += fmt::format("{}{}{}", result.empty() ? "" : ",", found->name, item.substr(percent));
  }
  return result;
}

base::Result<std::vector<Bound<RecordRow>>> record_columns(const Settings& settings) {
  std::string_view format = kUsualRecord;
  if (settings.has("format")) {
    format = settings.value("format");
  } else if (settings.has("brief")) {
    format = kBrief;
  } else if (settings.has("long")) {
    format = kLongRecord;
  }
  TRY_ASSIGN(const std::string names, whole_names(format));
  TRY_ASSIGN(const auto columns, named_columns(names, '%', 0));
  return bound(columns, sacct_fields());
}

base::Result<Units> units_of(const Settings& settings) {
  Units units{settings.has("noconvert"), 0};
  const std::string text = upper_case(settings.value("units"));
  if (!settings.has("units")) return units;
  constexpr std::string_view kUnits = "KMGTP";
  if (text.size() != 1 || kUnits.find(text.front()) == std::string_view::npos)
    return base::invalid("--units", fmt::format("'{}' is not one of K, M, G, T and P", text));
  if (units.is_plain) return base::invalid("--units", "goes without --noconvert");
  units.unit = text.front();
  return units;
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

// "4", "2-8": whether the number lies there.
bool is_in_range(std::int64_t number, const std::string& range) {
  const std::size_t dash = range.find('-');
  const auto low = parse_number(range.substr(0, dash), 0);
  const auto high = dash == std::string::npos ? low : parse_number(range.substr(dash + 1), 0);
  return low && high && number >= *low && number <= *high;
}

bool is_wanted_record(const v1::Job& job, const Settings& settings, const Window& window) {
  if (const auto submitted = client::time_of(job.submitted_at());
      submitted && *submitted > window.end)
    return false;
  if (const auto ended = client::time_of(job.ended_at()); ended && *ended < window.begin)
    return false;
  if (settings.has("state") &&
      !is_in_state(recorded_state_of(job), comma_separated(settings.value("state"))))
    return false;
  const std::pair<std::string_view, std::string> filters[] = {{"name", job.spec().name()},
                                                              {"accounts", job.spec().team()},
                                                              {"partition", partition_of(job)},
                                                              {"qos", qos_of(job)}};
  for (const auto& [option, value] : filters) {
    if (settings.has(option) && !is_listed(value, settings.value(option))) return false;
  }
  if (settings.has("nodelist") && !is_on_any(job, settings.value("nodelist"))) return false;
  if (settings.has("nnodes") && !is_in_range(node_count(job), settings.value("nnodes")))
    return false;
  if (settings.has("ncpus") && !is_in_range(cpus_of(job).value_or(0), settings.value("ncpus")))
    return false;
  const std::string user = job.spec().user();
  for (const char* option : {"user", "uid"}) {
    const std::string& list = settings.value(option);
    if (!list.empty() && !is_listed(user, list) && !is_listed(user_number(user), list))
      return false;
  }
  return true;
}

// A job's own line, and those of its steps once it has started. Ids with a step ask for that alone.
void add_records(const v1::Job& job, const BillingWeights& weights, base::Instant now,
                 const Settings& settings, const Units& units, std::vector<RecordRow>& rows) {
  bool wants_all = !settings.has("jobs");
  std::vector<std::string> steps;
  const std::string ids[] = {job.id(), array_task_id(job), job.array_id()};
  for (const std::string& id : comma_separated(settings.value("jobs"))) {
    const StepName name = step_name_of(id);
    if (std::ranges::find(ids, name.job) == std::end(ids)) continue;
    wants_all = wants_all || name.step.empty();
    steps.push_back(name.step);
  }
  if (wants_all) rows.push_back({job, weights, now, std::nullopt, units});
  if (settings.has("allocations")) return;
  for (StepView& step : steps_of(job)) {
    if (!wants_all && std::ranges::find(steps, step.id) == steps.end()) continue;
    rows.push_back({job, weights, now, std::move(step), units});
  }
}

client::Called<std::vector<v1::Job>> recorded_jobs(client::Client& client, const Settings& settings,
                                                   const Window& window) {
  const auto ids = comma_separated(settings.value("jobs"));
  if (!ids.empty()) {
    std::vector<v1::Job> jobs;
    std::set<std::string> asked;
    for (const std::string& id : ids) {
      const std::string job = step_name_of(id).job;
      if (!asked.insert(job).second) continue;
      auto members = get_jobs(client, job);
      // What is not there has no line.
      if (!members && members.error().kind != client::Failure::Kind::kProblem)
        return std::unexpected(members.error());
      if (members) std::ranges::move(*members, std::back_inserter(jobs));
    }
    return jobs;
  }
  std::string query = settings.has("allocations") ? "all=true" : "all=true&steps=true";
  // The daemon looks up what jobs did on their GPUs where a column has it.
  const std::string format = lower_case(settings.value("format"));
  const bool shows_use = format.find("tresusagein") != std::string::npos ||
                         format.find("consumedenergy") != std::string::npos;
  if (shows_use || settings.has("long")) query += "&gpu_use=true";
  const bool is_own = !settings.has("allusers") && !settings.has("user") && !settings.has("uid");
  if (is_own) http::append_query(query, "user", own_user());
  if (window.begin.is_set()) {
    std::string since;
    base::append_rfc3339(since, window.begin);
    http::append_query(query, "since", since);
  }
  return list_jobs(client, query);
}

// The daemon is asked for its prices where something shown depends on them.
bool shows_billing(const Settings& settings, bool is_document) {
  const std::string format = lower_case(settings.value("format"));
  return is_document || settings.has("long") || format.find("alloctres") != std::string::npos ||
         format.find("reqtres") != std::string::npos;
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

std::span<const Option> sacct_options() {
  return kAccountingOptions;
}

int sacct(CommandCall& call) {
  const auto given =
      call.given({kAccountingOptions, kAccountingSynopsis}, with_joined_jobs(call.words()));
  if (!given) return given.error();
  const Settings& settings = given->settings;
  if (settings.has("helpformat")) {
    call.console().out(help_of_format());
    return call.console().out_failed() ? 1 : 0;
  }
  const auto units = units_of(settings);
  if (!units) return call.fail(units.error());
  const auto columns = record_columns(settings);
  if (!columns) return call.fail(columns.error());
  const base::Instant now = call.around().now();
  const auto window = window_of(settings, now);
  if (!window) return call.fail(window.error());
  for (const std::string& state : comma_separated(settings.value("state"))) {
    if (!platform_states(state))
      return call.fail(fmt::format("--state: '{}' is not a state of jobs", state));
  }
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  auto jobs = recorded_jobs(*client, settings, *window);
  if (!jobs) return call.fail(jobs.error());
  std::erase_if(*jobs,
                [&](const v1::Job& job) { return !is_wanted_record(job, settings, *window); });
  const auto site = shows_billing(settings, style->has_value()) ? site_of(*client) : usual_site();
  if (!site) return call.fail(site.error());
  if (*style) {
    const DocumentFacts facts{(*style)->form, now, {}, *site};
    return print_document(call, **style, accounting_document(facts, *jobs));
  }
  std::vector<RecordRow> rows;
  for (const v1::Job& job : *jobs) add_records(job, site->weights, now, settings, *units, rows);
  const bool is_parsable = settings.has("parsable") || settings.has("parsable2");
  const bool has_header = !settings.has("noheader");
  const std::string delimiter = settings.has("delimiter") ? settings.value("delimiter") : "|";
  call.console().out(
      is_parsable ? parsable(*columns, rows, has_header, {delimiter, settings.has("parsable")})
                  : accounted(*columns, rows, has_header));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
