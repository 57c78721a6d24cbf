#include <algorithm>

#include <fmt/format.h>

#include "api/convert/job.h"
#include "api/convert/job_spec.h"
#include "api/convert/json_reader.h"
#include "base/suggest.h"
#include "model/gpu_catalogue.h"
#include "model/output_pattern.h"

// A submission's way into the model.

namespace gpu_platform::api {

namespace {

// Each takes memory beyond its bytes, from the request to the job's end.
constexpr int kMaxArguments = 65'536;

base::Status check_command(const v1::JobSpec& request) {
  if (request.command_size() > kMaxArguments) {
    return base::invalid("command",
                         fmt::format("command: has {} arguments, the most is {}; put them into a "
                                     "file and name that",
                                     request.command_size(), kMaxArguments));
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
base::Result<std::string> joined_environment(const v1::JobSpec& request) {
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

// Names as people write them become those of the catalogue, each once.
base::Status make_canonical(std::vector<std::string>& gpu_types, const Nodes& nodes) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < gpu_types.size(); ++i) {
    const std::string& wanted = gpu_types[i];
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
  gpu_types = std::move(types);
  return {};
}

std::string base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::size_t kMax = 255;
  std::size_t size = std::min(name.empty() ? path.size() : name.size(), kMax);
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

base::Status settle_paths(model::JobSpec& spec) {
  if (spec.workdir.empty()) spec.workdir = "/";
  if (!spec.workdir.starts_with('/')) {
    return base::invalid("workdir", "workdir: must be an absolute path");
  }
  TRY_ASSIGN(spec.output, output_path(spec.output, "output", spec));
  TRY_ASSIGN(spec.error, output_path(spec.error, "error", spec));
  if (spec.truncate_output && spec.output.empty() && spec.error.empty()) {
    return base::invalid("open_mode",
                         "open_mode: is about the files of output and error, and "
                         "neither is given");
  }
  return {};
}

base::Status settle_gpus(const v1::JobSpec& request, const Nodes& nodes,
                         model::ResourceRequest& out) {
  TRY(make_canonical(out.gpu_types, nodes));
  if (!out.gpu_speeds.empty() && out.gpu_speeds.size() != out.gpu_types.size()) {
    return base::invalid("gpu_speeds",
                         fmt::format("gpu_speeds: {} given for {} gpu_types (none may be named "
                                     "twice); give one for each, the first being 1",
                                     out.gpu_speeds.size(), out.gpu_types.size()));
  }
  const bool asks_for_gpu_kind = !out.gpu_types.empty() || request.has_gpu_memory_bytes();
  if (out.gpus == 0 && asks_for_gpu_kind) {
    return base::invalid("gpus",
                         "gpus: must be at least 1 when a GPU's type or memory is asked for");
  }
  return {};
}

base::Status check_nodes(const v1::JobSpec& request, const model::ResourceRequest& out) {
  // A specification that was read from a job says 1.
  if (out.cross_node && request.nodes() > 1) {
    return base::invalid("nodes",
                         "nodes: with allow_cross_node the platform chooses how many; leave one "
                         "of them out");
  }
  if (out.cross_node && out.gpus == 0) {
    return base::invalid("gpus", "gpus: must be at least 1 with allow_cross_node");
  }
  if (out.within != model::NetworkLevel::kAnywhere && !model::is_gang(out)) {
    return base::invalid("network_level",
                         "network_level: is for jobs of several nodes (nodes, allow_cross_node)");
  }
  return {};
}

// Of a job with several processes nobody is at the one terminal.
base::Status check_ranks(const model::JobSpec& spec) {
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

// After its paths.
base::Status settle_session(const v1::JobSpec& request, model::JobSpec& spec) {
  const bool has_files = !spec.output.empty() || !spec.error.empty();
  if (spec.terminal && has_files) {
    return base::invalid(spec.output.empty() ? "error" : "output",
                         "output, error: a job with a terminal prints to it, and what it prints is "
                         "kept; leave them out, or the terminal");
  }
  if (spec.terminal) spec.takes_input = true;
  if (!spec.terminal && (request.has_columns() || request.has_rows())) {
    return base::invalid("columns", "columns, rows: are a terminal's, and none is asked for");
  }
  if (!model::can_begin_anew(spec) && spec.retries > 0) {
    return base::invalid("retries",
                         "retries: a job with input is not run again: what was sent to it is gone");
  }
  if (spec.array && spec.takes_input) {
    return base::invalid("array", "array: its members have neither a terminal nor input");
  }
  if (spec.idle_timeout && (!spec.takes_input || !spec.output.empty())) {
    return base::invalid(
        "idle_timeout_seconds",
        "idle_timeout_seconds: only a job with a terminal or input whose output is "
        "kept can have one, because only there it is known when the job is idle");
  }
  if (spec.preemptible.value_or(false) && !model::can_begin_anew(spec)) {
    return base::invalid("preemptible",
                         "preemptible: what is sent to a job through a pipe is gone when it begins "
                         "anew; leave out one of preemptible and takes_input");
  }
  return {};
}

}  // namespace

base::Result<model::SubmitJob> to_model(const v1::JobSpec& request, const Account& account,
                                        const Nodes& nodes) {
  TRY(check_limits(request));
  TRY(check_command(request));
  model::SubmitJob out;
  TRY_ASSIGN(out.environment, joined_environment(request));
  model::JobSpec& spec = out.spec;
  TRY(to_model(request, nodes, spec));
  TRY(settle_paths(spec));
  TRY(settle_session(request, spec));
  TRY(settle_gpus(request, nodes, spec.request));
  TRY(check_nodes(request, spec.request));
  TRY(check_ranks(spec));
  if (spec.name.empty()) spec.name = base_name(request.command(0));
  spec.user = account.user;
  spec.uid = account.uid;
  spec.gid = account.gid;
  out.hold = request.hold();
  return out;
}

}  // namespace gpu_platform::api
