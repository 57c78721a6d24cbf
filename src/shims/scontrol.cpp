#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/text.h"
#include "shims/call.h"
#include "shims/job_changes.h"
#include "shims/job_view.h"
#include "shims/step_variables.h"
#include "shims/times.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kSynopsis =
    "[-o] show job [ID] | show node [NAME] | show partition | show config | show hostnames [LIST] "
    "| "
    "hold ID… | release ID… | requeue ID… | requeuehold ID… | update JobId=ID KEY=VALUE…";

constexpr Option kOptions[] = {
    {"oneliner", 'o', Take::kNothing, Rule::kHonoured, "", ""},
    {"details", 'd', Take::kNothing, Rule::kAccepted, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
};

// "Key=Value" pairs in lines; in one line with -o.
class Page {
 public:
  explicit Page(bool is_one_line) : is_one_line_(is_one_line) {}
  Page& add(std::string_view key, std::string_view value) {
    if (!text_.empty() && text_.back() != '\n') text_.push_back(' ');
    text_ += fmt::format("{}={}", key, cli::harmless(value));
    return *this;
  }
  Page& end_line() {
    text_ += is_one_line_ ? "" : "\n  ";
    return *this;
  }
  std::string text() && { return std::move(text_) + (is_one_line_ ? "\n" : "\n\n"); }

 private:
  bool is_one_line_;
  std::string text_;
};

std::string or_null(std::string text) {
  return text.empty() ? "(null)" : text;
}

std::string page_of(const Json& job, bool is_one_line, base::Instant now) {
  const auto started = cli::time_at(job, "started_at");
  const auto ended = cli::time_at(job, "ended_at");
  const auto end = ended || !started ? ended : std::optional(*started + time_limit(job));
  const std::string user = text_at(cli::spec_of(job), "user");
  const std::int64_t cpus = cpus_of(job).value_or(1);
  const auto memory = memory_of(job);
  const auto restarts = std::max<std::int64_t>(1, cli::integer_at(job, "attempt").value_or(1)) - 1;
  Page page(is_one_line);
  page.add("JobId", text_at(job, "id"));
  if (const std::string array = text_at(job, "array_id"); !array.empty()) {
    page.add("ArrayJobId", array).add("ArrayTaskId", text_at(job, "array_index"));
  }
  page.add("JobName", text_at(cli::spec_of(job), "name")).end_line();
  page.add("UserId", fmt::format("{}({})", user, user_number(user))).end_line();
  page.add("Priority", text_at(cli::spec_of(job), "priority_number"))
      .add("Nice", "0")
      .add("Account", or_null(text_at(cli::spec_of(job), "team")));
  page.add("QOS", "normal").end_line();
  page.add("JobState", state_of(job).name)
      .add("Reason", reason_of(job))
      .add("Dependency", "(null)")
      .end_line();
  page.add("Requeue", "1").add("Restarts", fmt::format("{}", restarts)).add("BatchFlag", "1");
  page.add("ExitCode", exit_and_signal(job)).end_line();
  page.add("RunTime", long_elapsed(run_time(job, now)))
      .add("TimeLimit", long_elapsed(time_limit(job)));
  page.add("TimeMin", "N/A").end_line();
  page.add("SubmitTime", slurm_time(cli::time_at(job, "submitted_at"), "Unknown"));
  page.add("EligibleTime", slurm_time(cli::time_at(job, "eligible_at"), "Unknown")).end_line();
  page.add("StartTime", slurm_time(started, "Unknown"))
      .add("EndTime", slurm_time(end, "Unknown"))
      .end_line();
  page.add("Partition", partition_of(job)).add("NodeList", or_null(node_of(job)));
  page.add("BatchHost", or_null(node_of(job))).end_line();
  page.add("NumNodes", "1")
      .add("NumCPUs", fmt::format("{}", cpus))
      .add("TRES", trackable(job))
      .end_line();
  page.add("MinMemoryNode", memory ? slurm_memory(*memory) : "0").end_line();
  if (const std::string gpus = gpus_asked(job); !gpus.empty())
    page.add("TresPerNode", "gres/" + gpus).end_line();
  page.add("Command", cli::shell_quoted(cli::texts_at(cli::spec_of(job), "command"))).end_line();
  page.add("WorkDir", text_at(cli::spec_of(job), "workdir")).end_line();
  page.add("Comment", comment_of(job)).end_line();
  const std::string output = cli::file_of(job, "output");
  const std::string error = cli::file_of(job, "error");
  page.add("StdErr", or_null(error.empty() ? output : error)).add("StdOut", or_null(output));
  return std::move(page).text();
}

int show_jobs(Call& call, const Settings& settings, const std::vector<std::string>& ids) {
  auto client = call.client();
  if (!client) return 1;
  std::vector<Json> jobs;
  if (ids.empty()) {
    auto listed =
        list_jobs(*client,
                  "all=true&state=HELD&state=PENDING&state=QUEUED&state=STARTING&state=RUNNING&"
                  "state=STOPPING&state=SUSPENDED&state=PREEMPTED");
    if (!listed) return call.fail(listed.error());
    jobs = std::move(*listed);
  }
  for (const std::string& id : ids) {
    auto job = get_job(*client, id);
    if (!job && job.error().kind == cli::Failure::Kind::kProblem) {
      return call.fail(fmt::format("slurm_load_jobs error: Invalid job id specified: {}", id));
    }
    if (!job) return call.fail(job.error());
    jobs.push_back(std::move(*job));
  }
  if (jobs.empty()) call.console().out("No jobs in the system\n");
  for (const Json& job : jobs) {
    call.console().out(page_of(job, settings.has("oneliner"), call.around().now()));
  }
  return 0;
}

std::string page_of_node(const Json& node, bool is_one_line) {
  Page page(is_one_line);
  const std::int64_t mib = base::kMiB.value();
  page.add("NodeName", text_at(node, "name")).add("State", text_at(node, "state")).end_line();
  page.add("CPUAlloc", text_at(node, "cpus_allocated"))
      .add("CPUTot", text_at(node, "cpus"))
      .end_line();
  page.add("Gres", fmt::format("gpu:{}", text_at(node, "total_gpus"))).end_line();
  page.add("RealMemory",
           fmt::format("{}", cli::integer_at(node, "memory_bytes").value_or(0) / mib));
  page.add("AllocMem",
           fmt::format("{}", cli::integer_at(node, "memory_allocated_bytes").value_or(0) / mib))
      .end_line();
  page.add("Partitions", kPartition);
  if (const std::string reason = text_at(node, "reason"); !reason.empty())
    page.end_line().add("Reason", reason);
  return std::move(page).text();
}

int show_nodes(Call& call, const Settings& settings, const std::vector<std::string>& lists,
               bool as_partition) {
  auto client = call.client();
  if (!client) return 1;
  const auto body = client->get("/v1/nodes");
  const auto document = body ? cli::parse_object(*body) : std::nullopt;
  if (!body) return call.fail(body.error());
  if (!document) return call.fail("the daemon's answer is no JSON object");
  const Json nodes = cli::in_node_order(cli::list_at(*document, "nodes"), "/name");
  std::vector<std::string> wanted;
  for (const std::string& list : lists) {
    for (std::string& name : host_names(list)) wanted.push_back(std::move(name));
  }
  std::vector<std::string> names;
  std::int64_t cpus = 0;
  for (const Json& node : nodes) {
    const std::string name = text_at(node, "name");
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    names.push_back(name);
    cpus += cli::integer_at(node, "cpus").value_or(0);
    if (!as_partition) call.console().out(page_of_node(node, settings.has("oneliner")));
  }
  if (!as_partition) return names.empty() ? call.fail("no such node") : 0;
  Page page(settings.has("oneliner"));
  page.add("PartitionName", kPartition).add("Default", "YES").add("State", "UP").end_line();
  page.add("MaxTime", "UNLIMITED")
      .add("MaxNodes", "1")
      .add("TotalNodes", fmt::format("{}", names.size()));
  page.add("TotalCPUs", fmt::format("{}", cpus)).end_line();
  page.add("Nodes", fmt::format("{}", fmt::join(names, ",")));
  call.console().out(std::move(page).text());
  return 0;
}

// Needs no daemon.
int show_host_names(Call& call, const std::vector<std::string>& lists) {
  std::vector<std::string> given = lists;
  if (given.empty())
    given.emplace_back(variable(variables_of(call.around().environment), "SLURM_JOB_NODELIST"));
  for (const std::string& list : given) {
    for (const std::string& name : host_names(list)) call.console().out(cli::harmless(name) + "\n");
  }
  return 0;
}

int show_config(Call& call) {
  call.console().out(
      fmt::format("ClusterName             = {}\nMinJobAge               = 300 sec\n", kCluster));
  return 0;
}

}  // namespace

int scontrol(Call& call) {
  const auto given = call.given({kOptions, kSynopsis, true});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  if (given->words.empty()) return call.fail(fmt::format("no command: {}", kSynopsis));
  const std::string command = given->words.front();
  if (changes_jobs(command)) return change_jobs(call, given->words);
  if (command != "show" || given->words.size() < 2) {
    return call.fail(
        fmt::format("'{}' is not supported: {}; gpu-platform's own commands change nodes and GPUs",
                    command, kSynopsis));
  }
  const std::string what = (given->words)[1].substr(0, (given->words)[1].find('='));
  std::vector<std::string> names(given->words.begin() + 2, given->words.end());
  if (what.size() < (given->words)[1].size())
    names.insert(names.begin(), (given->words)[1].substr(what.size() + 1));
  if (what == "job" || what == "jobs" || what == "jobid") return show_jobs(call, settings, names);
  if (what == "node" || what == "nodes") return show_nodes(call, settings, names, false);
  if (what == "partition" || what == "partitions") return show_nodes(call, settings, {}, true);
  if (what == "hostnames" || what == "hostname") return show_host_names(call, names);
  if (what == "config") return show_config(call);
  return call.fail(fmt::format(
      "'show {}' is not supported: use job, node, partition, config or hostnames", what));
}

}  // namespace gpu_platform::shims
