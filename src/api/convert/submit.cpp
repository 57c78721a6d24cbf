#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "api/convert/job_change.h"
#include "api/convert/json_reader.h"
#include "base/name_list.h"
#include "base/suggest.h"
#include "model/gpu_catalogue.h"
#include "model/output_pattern.h"

// A submission's way into the model.

namespace gpu_platform::api {

namespace {

// Each takes memory beyond its bytes, from the request to the job's end.
constexpr int kMostArguments = 65'536;

base::Status check_command(const v1::SubmitJobRequest& request) {
  if (request.command_size() > kMostArguments) {
    return base::invalid("command",
                         fmt::format("command: has {} arguments, the most is {}; put them into a "
                                     "file and name that",
                                     request.command_size(), kMostArguments));
  }
  if (request.command_size() == 0) {
    return base::invalid("command", "command: must name the program to run");
  }
  if (request.command(0).empty()) {
    return base::invalid("command[0]", "command[0]: the program's name must not be empty");
  }
  return {};
}

// Joins the environment as NAME=VALUE strings, each ended by NUL, sorted by name so that equal
// requests give equal bytes. Errors name the variable and never quote its value.
base::Result<std::string> joined_environment(const v1::SubmitJobRequest& request) {
  std::vector<std::pair<std::string_view, std::string_view>> variables;
  variables.reserve(request.environment().size());
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.environment()) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return base::invalid("environment",
                           "environment: a variable's name must not be empty or contain '='");
    }
    variables.emplace_back(name, value);
    bytes += name.size() + value.size() + 2;
  }
  std::ranges::sort(variables);
  std::string out;
  out.reserve(bytes);
  for (const auto& [name, value] : variables) {
    out.append(name).append("=").append(value).push_back('\0');
  }
  for (const std::string& part : request.command()) bytes += part.size() + 1;
  if (bytes > kMaxCommandAndEnvironmentBytes) {
    return base::invalid("command",
                         fmt::format("command: with the environment it is {} bytes, the most is {}",
                                     bytes, kMaxCommandAndEnvironmentBytes));
  }
  return out;
}

// A type that the catalogue does not know may still be what a node's driver calls its GPUs.
std::optional<std::string> type_in_cluster(std::string_view wanted, const Nodes& nodes) {
  std::optional<std::string> found;
  nodes.for_each_while([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (model::gpu_type_matches(wanted, gpu.info.type)) found = gpu.info.type;
    }
    return !found;
  });
  return found;
}

base::Result<std::vector<std::string>> to_gpu_types(const v1::SubmitJobRequest& request,
                                                    const Nodes& nodes) {
  std::vector<std::string> types;
  for (int i = 0; i < request.gpu_types_size(); ++i) {
    const std::string& wanted = request.gpu_types(i);
    std::optional<std::string> type = model::canonical_gpu_type(wanted);
    if (!type) type = type_in_cluster(wanted, nodes);
    if (!type) {
      std::vector<std::string_view> names;
      for (const model::GpuType& known : model::gpu_catalogue()) names.push_back(known.name);
      const std::string field = fmt::format("gpu_types[{}]", i);
      return base::invalid(
          field, fmt::format("{}: no GPU type '{}' is known to the catalogue or to "
                             "this cluster{}",
                             field, wanted.substr(0, 64), base::did_you_mean(wanted, names)));
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*std::move(type));
  }
  return types;
}

std::string base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::size_t kMost = 255;
  std::size_t size = std::min(name.empty() ? path.size() : name.size(), kMost);
  const std::string_view whole = name.empty() ? path : name;
  // Never cut inside a character.
  while (size > 0 && size < whole.size() &&
         (static_cast<unsigned char>(whole[size]) & 0xc0) == 0x80) {
    --size;
  }
  return std::string(whole.substr(0, size));
}

// Relative to the job's directory unless absolute; empty stays empty.
base::Result<std::string> output_path(const std::string& asked, std::string_view field,
                                      const model::JobSpec& spec) {
  const std::string& workdir = spec.workdir;
  TRY(model::check_output_pattern(asked, field,
                                  spec.array ? model::PatternOf::kArray : model::PatternOf::kJob));
  if (asked.empty() || asked.starts_with('/')) return asked;
  std::string absolute = workdir;
  // What a pattern means ends with the directory, which is no pattern.
  for (std::size_t at = 0; (at = absolute.find('%', at)) != std::string::npos; at += 2) {
    absolute.insert(at, 1, '%');
  }
  if (!absolute.ends_with('/')) absolute.push_back('/');
  return absolute + asked;
}

base::Status put_paths(const v1::SubmitJobRequest& request, model::JobSpec& spec) {
  spec.workdir = request.workdir().empty() ? "/" : request.workdir();
  if (!spec.workdir.starts_with('/')) {
    return base::invalid("workdir", "workdir: must be an absolute path");
  }
  TRY_ASSIGN(spec.output, output_path(request.output(), "output", spec));
  TRY_ASSIGN(spec.error, output_path(request.error(), "error", spec));
  spec.prolog = request.prolog();
  spec.epilog = request.epilog();
  spec.truncate_output = request.open_mode() == v1::OPEN_MODE_TRUNCATE;
  if (spec.truncate_output && spec.output.empty() && spec.error.empty()) {
    return base::invalid("open_mode",
                         "open_mode: is about the files of output and error, and "
                         "neither is given");
  }
  return {};
}

// Thousandths of the first one's.
base::Result<std::vector<std::uint32_t>> to_gpu_speeds(const v1::SubmitJobRequest& request,
                                                       std::size_t types) {
  std::vector<std::uint32_t> speeds;
  if (request.gpu_speeds_size() == 0) return speeds;
  if (static_cast<std::size_t>(request.gpu_speeds_size()) != types) {
    return base::invalid("gpu_speeds",
                         fmt::format("gpu_speeds: {} given for {} gpu_types (none may be named "
                                     "twice); give one for each, the first being 1",
                                     request.gpu_speeds_size(), types));
  }
  for (const double speed : request.gpu_speeds()) {
    const double relative = speed / request.gpu_speeds(0) * model::kFullSpeed;
    if (!(relative >= 1 && relative <= 1'000'000)) {
      return base::invalid("gpu_speeds",
                           "gpu_speeds: each must be 0.001 to 1000 times the first one");
    }
    speeds.push_back(static_cast<std::uint32_t>(std::lround(relative)));
  }
  return speeds;
}

// The nodes of these names, ascending.
base::Result<std::vector<model::NodeId>> to_nodes(
    const google::protobuf::RepeatedPtrField<std::string>& lists, std::string_view field,
    const Nodes& nodes) {
  std::vector<model::NodeId> found;
  if (lists.empty()) return found;
  std::map<std::string_view, model::NodeId> known;
  nodes.for_each([&](std::uint64_t, const model::Node& node) { known[node.name] = node.id; });
  for (const std::string& list : lists) {
    const auto names = base::expand_names(list);
    if (!names) {
      return base::invalid(
          std::string(field),
          fmt::format("{}: '{}' is no list of names such as dgx-[1-4]", field, list.substr(0, 64)));
    }
    for (const std::string& name : *names) {
      const auto node = known.find(name);
      if (node == known.end()) {
        std::vector<std::string_view> all;
        for (const auto& [each, id] : known) all.push_back(each);
        return base::invalid(std::string(field),
                             fmt::format("{}: there is no node '{}' here{}", field,
                                         name.substr(0, 64), base::did_you_mean(name, all)));
      }
      found.push_back(node->second);
    }
  }
  std::ranges::sort(found);
  const auto repeats = std::ranges::unique(found);
  found.erase(repeats.begin(), repeats.end());
  return found;
}

base::Status put_nodes(const v1::SubmitJobRequest& request, const Nodes& nodes,
                       model::ResourceRequest& out) {
  TRY_ASSIGN(out.nodelist, to_nodes(request.nodelist(), "nodelist", nodes));
  TRY_ASSIGN(out.exclude, to_nodes(request.exclude(), "exclude", nodes));
  if (request.has_nodes()) out.nodes = request.nodes();
  out.cross_node = request.allow_cross_node();
  if (out.cross_node && request.has_nodes()) {
    return base::invalid("nodes",
                         "nodes: with allow_cross_node the platform chooses how many; leave one "
                         "of them out");
  }
  if (out.cross_node && out.gpus == 0) {
    return base::invalid("gpus", "gpus: must be at least 1 with allow_cross_node");
  }
  if (request.network_level() != v1::NETWORK_LEVEL_UNSPECIFIED) {
    out.within = to_model(request.network_level());
  }
  if (out.within != model::NetworkLevel::kAnywhere && !model::is_gang(out)) {
    return base::invalid("network_level",
                         "network_level: is for jobs of several nodes (nodes, allow_cross_node)");
  }
  return {};
}

// Of a job with several processes nobody is at the one terminal.
base::Status put_ranks(const v1::SubmitJobRequest& request, model::JobSpec& spec) {
  spec.per_gpu = request.per_gpu();
  if (spec.per_gpu && spec.request.gpus == 0) {
    return base::invalid("per_gpu", "per_gpu: the job asks for no GPU");
  }
  const bool has_ranks = spec.per_gpu || model::is_gang(spec.request);
  if (has_ranks && spec.takes_input) {
    return base::invalid(spec.terminal ? "terminal" : "takes_input",
                         "terminal, takes_input: a job of several processes (nodes, "
                         "allow_cross_node, per_gpu) has none");
  }
  if (has_ranks && spec.limit_signal && spec.limit_signal->first_process_only) {
    return base::invalid("limit_signal",
                         "limit_signal: 'B:' is for jobs of one process; leave it out, and all "
                         "of them get the signal");
  }
  return {};
}

base::Status put_resources(const v1::SubmitJobRequest& request, const Nodes& nodes,
                           model::ResourceRequest& out) {
  const auto bytes = [](std::uint64_t value) {
    return base::Bytes(static_cast<std::int64_t>(value));
  };
  out.gpus = request.gpus();
  out.window = request.reservation();
  TRY_ASSIGN(out.gpu_types, to_gpu_types(request, nodes));
  TRY_ASSIGN(out.gpu_speeds, to_gpu_speeds(request, out.gpu_types.size()));
  TRY(put_nodes(request, nodes, out));
  if (request.has_gpu_memory_bytes()) out.gpu_memory = bytes(request.gpu_memory_bytes());
  if (request.has_cpus()) out.cpus = request.cpus();
  if (request.has_memory_bytes()) out.memory = bytes(request.memory_bytes());
  if (request.numa() != v1::NUMA_POLICY_UNSPECIFIED) out.numa = to_model(request.numa());
  const bool asks_for_gpu_kind = !out.gpu_types.empty() || request.has_gpu_memory_bytes();
  if (out.gpus == 0 && asks_for_gpu_kind) {
    return base::invalid("gpus",
                         "gpus: must be at least 1 when a GPU's type or memory is asked for");
  }
  return {};
}

// Times and the array; dependencies need a look at the jobs that they name.
base::Status put_chains(const v1::SubmitJobRequest& request, model::JobSpec& spec) {
  if (request.has_begin()) spec.begin = to_model(request.begin());
  if (request.has_deadline()) spec.deadline = to_model(request.deadline());
  spec.wait_timeout = to_duration(request.wait_timeout_seconds());
  if (request.array().empty()) return {};
  if (request.terminal() || request.takes_input()) {
    return base::invalid("array", "array: its members have neither a terminal nor input");
  }
  TRY_ASSIGN(spec.array, model::parse_array(request.array()));
  return {};
}

model::TerminalSize terminal_of(const v1::SubmitJobRequest& request) {
  model::TerminalSize size;
  if (request.has_columns()) size.columns = static_cast<std::uint16_t>(request.columns());
  if (request.has_rows()) size.rows = static_cast<std::uint16_t>(request.rows());
  return size;
}

// After its paths.
base::Status put_session(const v1::SubmitJobRequest& request, model::JobSpec& spec) {
  const bool has_files = !spec.output.empty() || !spec.error.empty();
  if (request.terminal() && has_files) {
    return base::invalid(spec.output.empty() ? "error" : "output",
                         "output, error: a job with a terminal prints to it, and what it prints is "
                         "kept; leave them out, or the terminal");
  }
  spec.takes_input = request.takes_input() || request.terminal();
  if (request.terminal()) spec.terminal = terminal_of(request);
  if (!request.terminal() && (request.has_columns() || request.has_rows())) {
    return base::invalid("columns", "columns, rows: are a terminal's, and none is asked for");
  }
  if (!model::can_begin_anew(spec) && request.retries() > 0) {
    return base::invalid("retries",
                         "retries: a job with input is not run again: what was sent to it is gone");
  }
  if (!request.has_idle_timeout_seconds()) return {};
  if (!spec.takes_input || !spec.output.empty()) {
    return base::invalid(
        "idle_timeout_seconds",
        "idle_timeout_seconds: only a job with a terminal or input whose output is "
        "kept can have one, because only there it is known when the job is idle");
  }
  spec.idle_timeout = to_duration(request.idle_timeout_seconds());
  return {};
}

base::Status put_preemptible(const v1::SubmitJobRequest& request, model::JobSpec& spec) {
  if (!request.has_preemptible()) return {};
  if (request.preemptible() && !model::can_begin_anew(spec)) {
    return base::invalid("preemptible",
                         "preemptible: what is sent to a job through a pipe is gone when it begins "
                         "anew; leave out one of preemptible and takes_input");
  }
  spec.preemptible = request.preemptible();
  return {};
}

}  // namespace

base::Result<model::SubmitJob> to_model(const v1::SubmitJobRequest& request, const Account& account,
                                        const Nodes& nodes) {
  TRY(check_limits(request));
  TRY(check_command(request));
  model::SubmitJob out;
  TRY_ASSIGN(out.environment, joined_environment(request));
  model::JobSpec& spec = out.spec;
  if (!request.priority().empty()) {
    TRY_ASSIGN(spec.priority, to_priority(request.priority()));
  }
  TRY(put_chains(request, spec));
  TRY(put_paths(request, spec));
  TRY(put_session(request, spec));
  TRY(put_resources(request, nodes, spec.request));
  spec.name = request.name().empty() ? base_name(request.command(0)) : request.name();
  spec.user = account.user;
  spec.uid = account.uid;
  spec.gid = account.gid;
  spec.team = request.team();
  spec.project = request.project();
  if (request.kind() != v1::JOB_KIND_UNSPECIFIED) spec.kind = to_model(request.kind());
  spec.command.assign(request.command().begin(), request.command().end());
  if (request.has_umask()) spec.umask = request.umask();
  if (request.has_time_limit_seconds()) {
    spec.time_limit = to_duration(request.time_limit_seconds());
  }
  if (request.has_expected_time_seconds()) {
    spec.expected_time = to_duration(request.expected_time_seconds());
  }
  spec.retries = request.retries();
  spec.complete_on_exit_zero = request.complete_on_exit_zero();
  for (const auto& [key, value] : request.labels()) spec.labels.push_back({key, value});
  std::ranges::sort(spec.labels, {}, &model::Label::key);
  spec.request_id = request.request_id();
  if (!request.limit_signal().empty()) {
    TRY_ASSIGN(spec.limit_signal, to_limit_signal(request.limit_signal()));
  }
  TRY(put_preemptible(request, spec));
  TRY(put_ranks(request, spec));
  out.hold = request.hold();
  for (const int when : request.notify()) {
    spec.notify.push_back(to_model(static_cast<v1::NotifyOn>(when)));
  }
  std::ranges::sort(spec.notify);
  const auto repeats = std::ranges::unique(spec.notify);
  spec.notify.erase(repeats.begin(), repeats.end());
  return out;
}

}  // namespace gpu_platform::api
