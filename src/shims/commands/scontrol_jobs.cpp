#include "shims/commands/scontrol_jobs.h"

#include <algorithm>
#include <csignal>
#include <optional>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/words/input.h"
#include "client/request_text.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/job_spec.h"
#include "shims/text/columns.h"
#include "shims/text/shared_gres.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_view.h"
#include "shims/views/node_view.h"
#include "shims/views/partitions.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kUpdate = "update";

struct Command {
  std::string_view name;
  std::string_view call;  // last part of the daemon's path
  bool holds = false;     // of a requeue
};
constexpr Command kCommands[] = {{"hold", "hold"},
                                 {"uhold", "hold"},
                                 {"holdu", "hold"},
                                 {"release", "release"},
                                 {"requeue", "requeue"},
                                 {kUpdate, kUpdate},
                                 {"requeuehold", "requeue", true},
                                 {"top", "top"}};

// What an update asks for.
struct Change {
  v1::UpdateJobRequest request;
  bool is_held = false;     // Priority=0
  int limit_direction = 0;  // TimeLimit=+N and -N: 1 and -1, by `limit`
  base::Duration limit;
  base::Instant now;
  // Names of the site, which the daemon has to be asked for.
  std::string qos;
  std::string partition;
  std::optional<Partition> moved_to;
};

// Whether there is anything for UpdateJob.
bool changes_job(const Change& change) {
  return change.request.has_spec() || !change.request.clear().empty();
}

double in_whole_seconds(base::Duration duration) {
  return static_cast<double>(base::whole_milliseconds(duration) / 1000);
}

base::Status put_time_limit(std::string_view value, Change& change) {
  if (value.starts_with('+')) change.limit_direction = 1;
  if (value.starts_with('-') && value != "-1") change.limit_direction = -1;
  TRY_ASSIGN(const auto limit, parse_time_limit(value.substr(change.limit_direction != 0 ? 1 : 0)));
  if (!limit)
    return base::invalid({}, "no job runs without a time limit; write the longest allowed");
  change.limit = *limit;
  change.request.mutable_spec()->set_time_limit_seconds(in_whole_seconds(*limit));
  return {};
}

base::Status put_name(std::string_view value, Change& change) {
  change.request.mutable_spec()->set_name(std::string(value));
  return {};
}

base::Status put_comment(std::string_view value, Change& change) {
  if (value.empty()) {
    change.request.add_clear("comment");
  } else {
    change.request.mutable_spec()->set_comment(std::string(value));
  }
  return {};
}

base::Status put_begin(std::string_view value, Change& change) {
  return put_coming_time("begin", value, change.now,
                         *change.request.mutable_spec()->mutable_begin());
}

base::Status put_deadline(std::string_view value, Change& change) {
  return put_coming_time("deadline", value, change.now,
                         *change.request.mutable_spec()->mutable_deadline());
}

base::Status put_dependency(std::string_view value, Change& change) {
  if (value.empty()) {
    change.request.add_clear("dependency");
  } else {
    change.request.mutable_spec()->set_dependency(std::string(value));
  }
  return {};
}

base::Status change_cpus(std::string_view value, Change& change) {
  TRY_ASSIGN(const std::uint32_t cpus, parse_number(value.substr(0, value.find('-')), 1));
  change.request.mutable_spec()->set_cpus(cpus);
  return {};
}

base::Status change_nodes(std::string_view value, Change& change) {
  TRY_ASSIGN(const NodeCount nodes, parse_nodes(value));
  change.request.mutable_spec()->set_nodes(nodes.least);
  return {};
}

base::Status change_memory(std::string_view value, Change& change) {
  TRY_ASSIGN(const base::Bytes memory, parse_memory(value));
  change.request.mutable_spec()->set_memory_bytes(static_cast<std::uint64_t>(memory.value()));
  return {};
}

// "gres:gpu:h100:2", "gres/gpu:2", "gpu:2".
base::Status put_gres(std::string_view value, Change& change) {
  if (value.starts_with("gres:") || value.starts_with("gres/")) value.remove_prefix(5);
  std::vector<std::string> others;
  TRY_ASSIGN(const GpuCount gpus, parse_gres(value, others));
  if (!others.empty() && is_shared_gres(others.front()))
    return base::invalid({}, fmt::format("'{}' cannot be changed here: 'gpu-platform jobs update "
                                         "--gpus 0.5' changes the part of a waiting job",
                                         others.front()));
  if (!others.empty())
    return base::invalid(
        {}, fmt::format("'{}' is not supported: the only resource here is gpu", others.front()));
  v1::JobSpec& spec = *change.request.mutable_spec();
  spec.set_gpus(gpus.count);
  (*spec.mutable_labels())["slurm.gpus_per"] = "node";
  if (!gpus.type.empty()) spec.add_gpu_types(gpus.type);
  return {};
}

base::Status put_required_nodes(std::string_view value, Change& change) {
  if (value.empty()) {
    change.request.add_clear("nodelist");
  } else {
    change.request.mutable_spec()->add_nodelist(std::string(value));
  }
  return {};
}

base::Status put_excluded_nodes(std::string_view value, Change& change) {
  if (value.empty()) {
    change.request.add_clear("exclude");
  } else {
    change.request.mutable_spec()->add_exclude(std::string(value));
  }
  return {};
}

base::Status refuse_throttle(std::string_view, Change&) {
  return base::invalid({},
                       "the limit of an array is fixed when it is submitted (--array=1-9%2); "
                       "hold members to have fewer of them run");
}

base::Status put_qos(std::string_view value, Change& change) {
  if (value.empty()) return base::invalid({}, "names no QOS");
  change.qos = value;
  return {};
}

base::Status put_partition(std::string_view value, Change& change) {
  if (value.empty()) return base::invalid({}, "names no partition");
  change.partition = value;
  return {};
}

base::Status put_site_qos(const Site& site, Change& change) {
  if (change.qos.empty()) return {};
  const Qos* qos = qos_named(site, change.qos);
  if (qos == nullptr && (site.names_qos || !priority_of_qos(change.qos))) {
    return base::invalid({}, fmt::format("Invalid qos specification: {}; there are: {}", change.qos,
                                         qos_names(site)));
  }
  const std::string priority = qos != nullptr ? qos->priority : *priority_of_qos(change.qos);
  v1::JobSpec& spec = *change.request.mutable_spec();
  if (!priority.empty()) spec.set_priority(priority);
  (*spec.mutable_labels())["slurm.qos"] = change.qos;
  return {};
}

base::Status put_site_partition(const Site& site, Change& change) {
  if (change.partition.empty()) return {};
  const Partition* partition = partition_named(site, change.partition);
  if (partition == nullptr) {
    return base::invalid({}, fmt::format("Invalid partition name specified: {}; there are: {}",
                                         change.partition, partition_names(site)));
  }
  change.moved_to = *partition;
  v1::JobSpec& spec = *change.request.mutable_spec();
  if (!partition->priority.empty() && change.qos.empty()) spec.set_priority(partition->priority);
  (*spec.mutable_labels())["slurm.partition"] = partition->name;
  return {};
}

base::Status put_site_names(client::Client& client, Change& change) {
  if (change.qos.empty() && change.partition.empty()) return {};
  const auto site = site_of(client);
  if (!site) return base::fail(base::ErrorCode::kUnavailable, site.error().message);
  TRY(put_site_partition(*site, change));
  return put_site_qos(*site, change);
}

base::Status put_nice(std::string_view value, Change& change) {
  TRY_ASSIGN(*change.request.mutable_spec()->mutable_priority(), priority_of_nice(value));
  return {};
}

base::Status put_priority(std::string_view value, Change& change) {
  if (value != "0")
    return base::invalid(
        {}, "0 holds a job; other numbers are not supported, use QOS=high for a priority");
  change.is_held = true;
  return {};
}

struct Key {
  std::string_view name;  // in small letters
  base::Status (*put)(std::string_view value, Change& change);
};
constexpr Key kKeys[] = {{"timelimit", put_time_limit},
                         {"jobname", put_name},
                         {"name", put_name},
                         {"comment", put_comment},
                         {"qos", put_qos},
                         {"partition", put_partition},
                         {"nice", put_nice},
                         {"priority", put_priority},
                         {"starttime", put_begin},
                         {"eligibletime", put_begin},
                         {"deadline", put_deadline},
                         {"dependency", put_dependency},
                         {"numcpus", change_cpus},
                         {"reqcpus", change_cpus},
                         {"mincpusnode", change_cpus},
                         {"numnodes", change_nodes},
                         {"reqnodes", change_nodes},
                         {"minmemorynode", change_memory},
                         {"gres", put_gres},
                         {"trespernode", put_gres},
                         {"tresperjob", put_gres},
                         {"reqnodelist", put_required_nodes},
                         {"nodelist", put_required_nodes},
                         {"excnodelist", put_excluded_nodes},
                         {"arraytaskthrottle", refuse_throttle}};

bool names_jobs(std::string_view key) {
  return key == "jobid" || key == "job";
}

// "JobId=1,2" as its key in small letters and its value; without "=" all of it is the value.
struct Pair {
  std::string key;
  std::string value;
};
Pair pair_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return {{}, word};
  return {plain_name(word.substr(0, equals)), word.substr(equals + 1)};
}

struct Asked {
  std::vector<std::string> ids;
  Change change;
};

base::Result<Asked> asked_of(const Command& command, std::span<const std::string> words,
                             base::Instant now) {
  Asked asked;
  asked.change.now = now;
  for (const std::string& word : words) {
    const auto [key, value] = pair_of(word);
    const auto known = std::ranges::find(kKeys, key, &Key::name);
    if (names_jobs(key) || (key.empty() && command.name != kUpdate)) {
      for (std::string& id : comma_separated(value)) asked.ids.push_back(std::move(id));
    } else if (command.name != kUpdate) {
      return base::invalid(word, "is not understood: jobs are named by their ids");
    } else if (known == std::end(kKeys)) {
      return base::invalid(
          word,
          "cannot be changed here: TimeLimit, JobName, QOS, Partition, Nice, "
          "Comment, Priority=0, StartTime, Deadline, Dependency, NumCPUs, NumNodes, "
          "MinMemoryNode, Gres, ReqNodeList and ExcNodeList of a JobId can");
    } else if (const auto put = known->put(value, asked.change); !put) {
      return base::invalid(word, put.error().message);
    }
  }
  if (asked.ids.empty()) return base::invalid(std::string(command.name), "no job: name its id");
  const bool has_names = !asked.change.qos.empty() || !asked.change.partition.empty();
  if (command.name == kUpdate && !changes_job(asked.change) && !asked.change.is_held && !has_names)
    return base::invalid(std::string(command.name), "nothing to change");
  return asked;
}

// A job with GPUs is in a partition by their types, another one by the names of the nodes. Types
// that it has asked for itself stay where the partition has all nodes.
std::optional<client::Failure> put_place(client::Client& client, const v1::Job& job,
                                         const Partition& partition,
                                         v1::UpdateJobRequest& request) {
  const bool has_gpus = job.spec().gpus() > 0;
  if (partition.gpu_types.empty()) {
    if (!has_gpus) request.add_clear("nodelist");
    return std::nullopt;
  }
  if (has_gpus) {
    request.mutable_spec()->mutable_gpu_types()->Assign(partition.gpu_types.begin(),
                                                        partition.gpu_types.end());
    return std::nullopt;
  }
  const auto nodes = list_nodes(client);
  if (!nodes) return nodes.error();
  for (const NodeView& node : *nodes) {
    if (is_in(node, partition)) request.mutable_spec()->add_nodelist(node.name);
  }
  return std::nullopt;
}

// What depends on the job itself: more or less than the limit that it has, and its place.
client::Called<v1::UpdateJobRequest> request_for(client::Client& client, const std::string& id,
                                                 const Change& change) {
  v1::UpdateJobRequest request = change.request;
  if (change.limit_direction == 0 && !change.moved_to) return request;
  const auto job = get_job(client, id);
  if (!job) return std::unexpected(job.error());
  if (change.moved_to) {
    if (auto failure = put_place(client, *job, *change.moved_to, request))
      return std::unexpected(std::move(*failure));
  }
  if (change.limit_direction == 0) return request;
  const base::Duration now = time_limit(*job);
  const base::Duration then = change.limit_direction > 0 ? now + change.limit : now - change.limit;
  request.mutable_spec()->set_time_limit_seconds(in_whole_seconds(then));
  return request;
}

// The text of the request; empty where the call says all.
client::Called<std::string> body_for(client::Client& client, const Command& command,
                                     const std::string& id, const Change& change) {
  if (command.name == kUpdate) {
    const auto request = request_for(client, id, change);
    if (!request) return std::unexpected(request.error());
    return client::request_text(*request);
  }
  if (command.call != "requeue") return std::string();
  v1::RequeueJobRequest request;
  request.set_hold(command.holds);
  return client::request_text(request);
}

std::optional<client::Failure> change_one(client::Client& client, const Command& command,
                                          const std::string& id, const Change& change) {
  const std::string path = fmt::format("/v1/jobs/{}/", base::percent_encoded(id));
  if (command.name != kUpdate || changes_job(change)) {
    const auto text = body_for(client, command, id, change);
    if (!text) return text.error();
    const auto done = client.post(path + std::string(command.call), *text);
    if (!done) return done.error();
  }
  if (!change.is_held) return std::nullopt;
  const auto held = client.post(path + "hold");
  return held ? std::nullopt : std::optional(held.error());
}

}  // namespace

bool changes_jobs(std::string_view command) {
  return std::ranges::find(kCommands, command, &Command::name) != std::end(kCommands);
}

int change_jobs(CommandCall& call, std::span<const std::string> words) {
  const auto command =
      std::ranges::find(kCommands, std::string_view(words.front()), &Command::name);
  auto asked = asked_of(*command, words.subspan(1), call.around().now());
  if (!asked) return call.fail(asked.error());
  auto client = call.client();
  if (!client) return 1;
  if (const auto named = put_site_names(*client, asked->change); !named)
    return call.fail(named.error());
  // A job that puts itself back is told to stop at once, and with it this process, which its caller
  // wants to see succeed.
  if (command->call == "requeue") std::signal(SIGTERM, SIG_IGN);
  int code = 0;
  for (const std::string& id : asked->ids) {
    const auto failure = change_one(*client, *command, id, asked->change);
    if (!failure) continue;
    code = 1;
    const bool is_missing = failure->code == base::ErrorCode::kNotFound && failure->field == "id";
    call.fail(
        fmt::format("job {}: {}", id, is_missing ? "Invalid job id specified" : failure->message));
    if (failure->kind == client::Failure::Kind::kNoDaemon) break;
  }
  return code;
}

}  // namespace gpu_platform::shims
