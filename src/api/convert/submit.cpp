#include <algorithm>

#include <fmt/format.h>

#include "api/convert/gpu_time.h"
#include "api/convert/job.h"
#include "api/convert/job_spec.h"
#include "api/convert/message_limits.h"
#include "model/container.h"
#include "model/job_spec.h"
#include "model/output_pattern.h"
#include "model/spec_checks.h"

// A submission's way into the model.

namespace gpu_platform::api {

namespace {

// Each takes memory beyond its bytes, from the request to the job's end.
constexpr int kMaxArguments = 65'536;

base::Status check_command(const v1::JobSpec& request) {
  if (request.command_size() > kMaxArguments) {
    return base::invalid("command",
                         fmt::format("command: has {} arguments; the limit is {}; put them into a "
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
    return base::invalid(
        "command", fmt::format("command: with the environment it is {} bytes; the limit is {}",
                               bytes, kMaxCommandAndEnvironmentBytes));
  }
  return out;
}

// Relative to the job's directory unless absolute; empty stays empty.
base::Result<std::string> output_path(const std::string& asked, std::string_view field,
                                      const model::JobSpec& spec) {
  const std::string& workdir = spec.workdir;
  TRY(model::check_output_pattern(asked, field,
                                  spec.array ? model::PatternOf::kArray : model::PatternOf::kJob));
  if (asked.empty() || asked.starts_with('/')) return asked;
  std::string absolute = workdir;
  // The directory is taken as it is: a % in it begins no pattern.
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
    return base::invalid("open_mode", "open_mode: needs output or error, and neither is given");
  }
  return {};
}

// Call it when the paths are settled.
base::Status settle_session(const v1::JobSpec& request, model::JobSpec& spec) {
  const bool has_files = !spec.output.empty() || !spec.error.empty();
  if (spec.terminal && has_files) {
    return base::invalid(spec.output.empty() ? "error" : "output",
                         "output, error: the platform keeps the output of a job with a terminal; "
                         "leave out these files, or the terminal");
  }
  if (spec.terminal) spec.takes_input = true;
  if (!spec.terminal && (request.has_columns() || request.has_rows())) {
    return base::invalid("columns", "columns, rows: are only for a job with a terminal");
  }
  if (!model::can_begin_anew(spec) && spec.retries > 0) {
    return base::invalid("retries",
                         "retries: a job with input is not run again, because its input is gone");
  }
  if (spec.array && spec.takes_input) {
    return base::invalid("array", "array: its members have neither a terminal nor input");
  }
  if (spec.idle_timeout && (!spec.takes_input || !spec.output.empty())) {
    return base::invalid(
        "idle_timeout_seconds",
        "idle_timeout_seconds: needs a terminal or input, and kept output, because "
        "because the platform sees only them to find an idle job");
  }
  if (spec.preemptible.value_or(false) && !model::can_begin_anew(spec)) {
    return base::invalid("preemptible",
                         "preemptible: the input of a job is gone when it begins anew; leave out "
                         "preemptible or takes_input");
  }
  return {};
}

// The site's command gets it as a word: one that began with "-" could be taken for an option.
base::Status check_address(const v1::JobSpec& request) {
  if (!request.has_notify_to()) return {};
  const std::string& address = request.notify_to();
  const bool is_printable =
      std::ranges::all_of(address, [](char c) { return c > ' ' && c <= '~'; });
  if (is_printable && !address.empty() && !address.starts_with('-')) return {};
  return base::invalid("notify_to",
                       "notify_to: is no address: it must be printable ASCII without blanks, and "
                       "its first character no '-'; give a mail address or a URL");
}

}  // namespace

base::Result<model::SubmitJob> to_model(const v1::JobSpec& request, const Account& account,
                                        const Nodes& nodes) {
  TRY(check_limits(request));
  TRY(check_command(request));
  TRY(check_address(request));
  if (request.has_workload() || request.has_workload_pods()) {
    return base::invalid("workload",
                         "workload, workload_pods: only the platform sets these, for pods of a "
                         "cluster that wait behind its gate; leave them out");
  }
  model::SubmitJob out;
  TRY_ASSIGN(out.environment, joined_environment(request));
  model::JobSpec& spec = out.spec;
  TRY(to_model(request, nodes, spec));
  // A part without a number is of one GPU.
  if (request.has_gpu_share() && !request.has_gpus()) spec.request.gpus = 1;
  TRY_ASSIGN(const auto limit, limit_of_gpu_time(request));
  if (limit) spec.time_limit = *limit;
  TRY(settle_paths(spec));
  TRY(settle_session(request, spec));
  TRY(make_canonical(spec.request.gpu_types, nodes));
  TRY(model::check_request(spec.request));
  TRY(model::check_processes(spec));
  TRY(model::check_container(spec));
  if (spec.name.empty()) spec.name = model::program_name(request.command(0));
  spec.user = account.user;
  spec.uid = account.uid;
  spec.gid = account.gid;
  out.hold = request.hold();
  out.refuses_network =
      request.has_container_network() && spec.container_network == model::ContainerNetwork::kNone;
  return out;
}

}  // namespace gpu_platform::api
