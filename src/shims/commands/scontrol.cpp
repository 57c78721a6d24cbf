#include <algorithm>
#include <expected>

#include <fmt/format.h>
#include <unistd.h>

#include "base/name_list.h"
#include "cli/text/text.h"
#include "client/answer.h"
#include "shims/command_call.h"
#include "shims/commands/scontrol_jobs.h"
#include "shims/commands/scontrol_site.h"
#include "shims/documents/slurm_json.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_view.h"
#include "shims/views/scontrol_pages.h"

namespace gpu_platform::shims {

namespace {

using ControlWords = std::vector<std::string>;

constexpr std::string_view kControlSynopsis =
    "[-o] [-d] show job|node|partition|reservation|step|config|hostnames|hostlist|licenses [NAME] "
    "| hold|release|requeue|requeuehold|top ID… | update JobId=…|NodeName=… KEY=VALUE… | "
    "create|delete reservation … | ping | version";
constexpr std::string_view kActive =
    "all=true&state=HELD&state=PENDING&state=QUEUED&state=STARTING&state=RUNNING&"
    "state=STOPPING&state=SUSPENDED&state=PREEMPTED";

constexpr Option kControlRows[] = {
    {"oneliner", 'o', Take::kNothing, Rule::kHonoured, "", ""},
    {"details", 'd', Take::kNothing, Rule::kHonoured, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", "SCONTROL_ALL"},
    {"sibling", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"future", 'F', Take::kNothing, Rule::kAccepted, "", ""},
    {"uid", 'u', Take::kValue, Rule::kRefused, "a change is made as its caller; use sudo", ""},
};
constexpr auto kControlOptions =
    joined(kControlRows, kViewOptions, kVerboseOption, kHelpOption, kCommonOptions);

// Commands of Slurm that are not here, and what to use.
struct Absent {
  std::string_view name;
  std::string_view instead;
};
constexpr Absent kAbsent[] = {
    {"suspend", "no job is suspended here; requeuehold stops a job and keeps it for later"},
    {"resume", "no job is suspended here; release starts a held job"},
    {"reboot", "drain the node (update NodeName=… State=drain), then reboot it yourself"},
    {"cancel_reboot", "the platform reboots no node"},
    {"reconfigure", "send the daemon SIGHUP, or use systemctl reload gpu-platform"},
    {"shutdown", "use systemctl stop gpu-platform; jobs go on"},
    {"takeover", "there is one daemon"},
    {"abort", "use systemctl kill gpu-platform; jobs go on"},
    {"setdebug", "the log level is an option of the daemon: --log-level"},
    {"setdebugflags", "the log level is an option of the daemon: --log-level"},
    {"schedloglevel", "the log level is an option of the daemon: --log-level"},
    {"notify", "use gpu-platform jobs exec ID to reach a running job"},
    {"listpids", "use gpu-platform top, or gpu-platform jobs exec ID -- ps"},
    {"pidinfo", "gpu-platform status shows the jobs of each GPU"},
    {"wait_job", "use gpu-platform jobs wait"},
    {"write", "scripts and configuration are not given out; scontrol show config has the keys"},
    {"token", "the daemon identifies its callers by their connection"},
    {"completing", "use squeue -t CG"},
    {"errnumstr", "errors are texts here"},
    {"fsdampeningfactor", "use scheduling.* of the configuration"},
};

int say_bad_answer(CommandCall& call) {
  return call.fail("the daemon's answer is not a JSON object");
}

int print_page(CommandCall& call, const std::string& text) {
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

// The jobs of "show job": all that have not ended, or those of the ids, of an array all members.
// `query` is added where they are listed.
std::expected<std::vector<v1::Job>, int> named_jobs(CommandCall& call, client::Client& client,
                                                    const ControlWords& ids,
                                                    std::string_view query = {}) {
  std::vector<v1::Job> jobs;
  if (ids.empty()) {
    auto listed = list_jobs(client, fmt::format("{}{}", kActive, query));
    if (!listed) return std::unexpected(call.fail(listed.error()));
    jobs = std::move(*listed);
  }
  for (const std::string& id : ids) {
    auto members = get_jobs(client, id.substr(0, id.find('.')));
    if (!members && members.error().kind == client::Failure::Kind::kProblem)
      return std::unexpected(call.fail("slurm_load_jobs error: Invalid job id specified"));
    if (!members) return std::unexpected(call.fail(members.error()));
    std::ranges::move(*members, std::back_inserter(jobs));
  }
  return jobs;
}

int show_jobs(CommandCall& call, const Settings& settings, const ControlWords& ids) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  auto jobs = named_jobs(call, *client, ids);
  if (!jobs) return jobs.error();
  const base::Instant now = call.around().now();
  const auto site = site_of(*client);
  if (!site) return call.fail(site.error());
  const bool is_detailed = settings.has("details");
  std::vector<NodeView> nodes;
  if (*style || is_detailed) {
    auto listed = list_nodes(*client);
    if (!listed) return call.fail(listed.error());
    nodes = std::move(*listed);
  }
  if (*style) {
    const DocumentFacts facts{(*style)->form, now, std::move(nodes), *site};
    const auto entries = (*style)->form == DocumentForm::k38
                             ? single_entries(std::move(*jobs))
                             : with_joined_members(std::move(*jobs));
    return print_document(call, **style, jobs_document(facts, entries));
  }
  if (jobs->empty()) return print_page(call, "No jobs in the system\n");
  std::string text;
  const bool names_members = std::ranges::any_of(
      ids, [](const std::string& id) { return id.find('_') != std::string::npos; });
  std::vector<QueueEntry> entries =
      names_members ? single_entries(std::move(*jobs)) : with_joined_members(std::move(*jobs));
  std::ranges::stable_partition(entries,
                                [](const QueueEntry& entry) { return !entry.members.empty(); });
  const bool is_one_line = settings.has("oneliner");
  for (const QueueEntry& entry : entries) {
    text += is_detailed ? detailed_job_page(entry, site->weights, nodes, is_one_line, now)
                        : job_page(entry, site->weights, is_one_line, now);
  }
  return print_page(call, text);
}

// The steps that run: all, those of a job, or the one that "7.0" names.
int show_steps(CommandCall& call, const Settings& settings, const ControlWords& ids) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  const auto jobs = named_jobs(call, *client, ids, "&steps=true");
  if (!jobs) return jobs.error();
  if (*style) {
    const DocumentFacts facts{(*style)->form, call.around().now(), {}, {}};
    const bool names_step = !ids.empty() && ids.front().find('.') != std::string::npos;
    const auto steps = running_steps(*jobs, names_step ? ids.front() : std::string(), facts.now);
    return print_document(call, **style, steps_document(facts, steps));
  }
  const std::string wanted = ids.empty() ? std::string() : step_name_of(ids.front()).step;
  std::string text;
  for (const v1::Job& job : *jobs) {
    for (const StepView& step : steps_of(job)) {
      const bool is_wanted = wanted.empty() || step.id == wanted;
      if (is_wanted && step.runs()) text += step_page(job, step, settings.has("oneliner"));
    }
  }
  if (!text.empty()) return print_page(call, text);
  if (!wanted.empty()) return call.fail(fmt::format("Job step {} not found", ids.front()));
  return print_page(call, "No job steps in the system\n");
}

int show_nodes(CommandCall& call, const Settings& settings, const ControlWords& lists) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  const auto nodes = list_nodes(*client);
  if (!nodes) return call.fail(nodes.error());
  const auto site = site_of(*client);
  if (!site) return call.fail(site.error());
  ControlWords wanted;
  for (const std::string& list : lists)
    std::ranges::move(host_names(list), std::back_inserter(wanted));
  std::vector<NodeView> shown;
  for (const NodeView& node : *nodes) {
    if (wanted.empty() || std::ranges::find(wanted, node.name) != wanted.end())
      shown.push_back(node);
  }
  int code = 0;
  for (const std::string& name : wanted) {
    if (std::ranges::find(shown, name, &NodeView::name) == shown.end())
      code = call.fail(fmt::format("Node {} not found", name));
  }
  if (*style && code == 0) {
    const DocumentFacts facts{(*style)->form, call.around().now(), *nodes, *site};
    return print_document(call, **style, nodes_document(facts, shown));
  }
  std::string text;
  for (const NodeView& node : shown) text += node_page(node, *site, settings.has("oneliner"));
  return print_page(call, text) != 0 ? 1 : code;
}

int show_partitions(CommandCall& call, const Settings& settings, const ControlWords& names) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  const auto nodes = list_nodes(*client);
  if (!nodes) return call.fail(nodes.error());
  const auto site = site_of(*client);
  if (!site) return call.fail(site.error());
  for (const std::string& name : names) {
    if (partition_named(*site, name) == nullptr) {
      return call.fail(
          fmt::format("Partition {} not found; there are: {}", name, partition_names(*site)));
    }
  }
  std::string text;
  std::vector<Partition> shown;
  for (const Partition& partition : site->partitions) {
    if (!names.empty() && std::ranges::find(names, partition.name) == names.end()) continue;
    text += partition_page(partition, site->weights, *nodes, settings.has("oneliner"));
    shown.push_back(partition);
  }
  if (*style) {
    const DocumentFacts facts{(*style)->form, call.around().now(), *nodes, *site};
    return print_document(call, **style, partitions_document(facts, shown));
  }
  return print_page(call, text);
}

int show_reservations(CommandCall& call, const Settings& settings, const ControlWords& names) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto client = call.client();
  if (!client) return 1;
  const auto nodes = list_nodes(*client);
  if (!nodes) return call.fail(nodes.error());
  const auto body = client->get("/v1/reservations");
  if (!body) return call.fail(body.error());
  const auto document = client::message_of<v1::ListReservationsResponse>(*body);
  if (!document) return say_bad_answer(call);
  std::string text;
  std::vector<v1::Reservation> shown;
  for (const v1::Reservation& reservation : document->reservations()) {
    const std::string& name = reservation.name();
    if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
    text += reservation_page(reservation, *nodes, settings.has("oneliner"));
    shown.push_back(reservation);
  }
  if (*style) {
    const DocumentFacts facts{(*style)->form, call.around().now(), *nodes, {}};
    return print_document(call, **style, reservations_document(facts, shown));
  }
  if (text.empty() && !names.empty())
    return call.fail(fmt::format("Reservation {} not found", names.front()));
  return print_page(call, text.empty() ? "No reservations in the system\n" : text);
}

ControlWords given_lists(CommandCall& call, const ControlWords& lists) {
  if (!lists.empty()) return lists;
  return {std::string(variable(variables_of(call.around().environment), "SLURM_JOB_NODELIST"))};
}

// Those of hosts need no daemon.

// The names of all lists; the exit code where one makes no sense.
std::expected<ControlWords, int> hosts_of(CommandCall& call, const ControlWords& lists) {
  ControlWords names;
  for (const std::string& list : given_lists(call, lists)) {
    auto some = base::expand_names(list);
    if (!some) return std::unexpected(call.fail(fmt::format("Invalid hostlist: {}", list)));
    std::ranges::move(*some, std::back_inserter(names));
  }
  return names;
}

int show_host_names(CommandCall& call, const Settings& /*settings*/, const ControlWords& lists) {
  const auto names = hosts_of(call, lists);
  if (!names) return names.error();
  std::string text;
  for (const std::string& name : *names) text += cli::harmless(name) + "\n";
  return print_page(call, text);
}

int show_host_list(CommandCall& call, const Settings& /*settings*/, const ControlWords& lists) {
  const auto names = hosts_of(call, lists);
  if (!names) return names.error();
  if (names->empty()) return call.fail("invalid host list: name hosts, such as n1,n2");
  return print_page(call, cli::harmless(host_list_in_order(*names)) + "\n");
}

int show_sorted_host_list(CommandCall& call, const Settings& /*settings*/,
                          const ControlWords& lists) {
  auto names = hosts_of(call, lists);
  if (!names) return names.error();
  if (names->empty()) return call.fail("invalid host list: name hosts, such as n1,n2");
  return print_page(call, cli::harmless(host_list(std::move(*names))) + "\n");
}

std::string own_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

int show_config(CommandCall& call, const Settings& /*settings*/, const ControlWords& /*names*/) {
  return print_page(call, config_page(call.around().now(), own_host()));
}

int show_licenses(CommandCall& call, const Settings& /*settings*/, const ControlWords& /*names*/) {
  return print_page(call, "No licenses configured in Slurm.\n");
}

int show_topology(CommandCall& call, const Settings& /*settings*/, const ControlWords& /*names*/) {
  return call.fail(
      "No topology information available; gpu-platform topology shows the links of "
      "GPUs, gpu-platform nodes the racks");
}

int ping(CommandCall& call) {
  auto client = call.client();
  if (!client) return 1;
  const bool is_up = client->get("/v1/health").has_value();
  const int code = print_page(
      call, fmt::format("Slurmctld(primary) at {} is {}\n", own_host(), is_up ? "UP" : "DOWN"));
  return is_up ? code : 1;
}

// What may be shown, by the beginnings of its names.
struct Entity {
  std::string_view name;
  std::size_t least;  // letters that must be there
  int (*show)(CommandCall& call, const Settings& settings, const ControlWords& names);
};
constexpr Entity kEntities[] = {
    {"jobs", 3, show_jobs},
    {"jobid", 4, show_jobs},
    {"nodes", 1, show_nodes},
    {"nodename", 5, show_nodes},
    {"partitions", 1, show_partitions},
    {"partitionname", 10, show_partitions},
    {"reservations", 1, show_reservations},
    {"reservationname", 12, show_reservations},
    {"steps", 2, show_steps},
    {"stepid", 5, show_steps},
    {"hostnames", 5, show_host_names},
    {"hostlistsorted", 9, show_sorted_host_list},
    {"hostlist", 5, show_host_list},
    {"config", 1, show_config},
    {"licenses", 1, show_licenses},
    {"topology", 1, show_topology},
};

int show(CommandCall& call, const Settings& settings, const ControlWords& words) {
  if (words.size() < 2)
    return call.fail(fmt::format("'show' needs what to show: {}", kControlSynopsis));
  const std::size_t equals = words[1].find('=');
  const std::string what = lower_case(std::string_view(words[1]).substr(0, equals));
  ControlWords names(words.begin() + 2, words.end());
  if (equals != std::string::npos) names.insert(names.begin(), words[1].substr(equals + 1));
  for (const Entity& entity : kEntities) {
    if (what.size() >= entity.least && entity.name.starts_with(what)) {
      const bool is_of_hosts = entity.show == show_host_names || entity.show == show_host_list ||
                               entity.show == show_sorted_host_list;
      ControlWords all;
      for (const std::string& name : names) {
        const bool is_list = is_of_hosts || entity.show == show_nodes;
        std::ranges::move(is_list ? ControlWords{name} : comma_separated(name),
                          std::back_inserter(all));
      }
      return entity.show(call, settings, all);
    }
  }
  return call.fail(
      fmt::format("invalid entity:{} for keyword:show; use job, node, partition, "
                  "reservation, step, config, hostnames, hostlist, licenses",
                  what));
}

}  // namespace

std::span<const Option> scontrol_options() {
  return kControlOptions;
}

int scontrol(CommandCall& call) {
  const auto given = call.given({kControlOptions, kControlSynopsis, true});
  if (!given) return given.error();
  ControlWords words = given->words;
  if (words.empty()) return call.fail(fmt::format("no command: {}", kControlSynopsis));
  words.front() = lower_case(words.front());
  const std::string& command = words.front();
  if (command == "show") return show(call, given->settings, words);
  if (command == "ping") return ping(call);
  if (command == "version") return print_page(call, version_line());
  if (command == "help") return print_page(call, fmt::format("scontrol {}\n", kControlSynopsis));
  if (changes_site(words)) return change_site(call, words);
  if (changes_jobs(command)) return change_jobs(call, words);
  const auto absent = std::ranges::find(kAbsent, std::string_view(command), &Absent::name);
  if (absent != std::end(kAbsent))
    return call.fail(fmt::format("'{}' is not supported: {}", command, absent->instead));
  return call.fail(
      fmt::format("invalid keyword: {}; usage: scontrol {}", command, kControlSynopsis));
}

}  // namespace gpu_platform::shims
