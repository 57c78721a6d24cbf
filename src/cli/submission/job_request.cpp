#include "cli/submission/job_request.h"

#include <deque>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/convert/gpu_time.h"
#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "cli/submission/environment_file.h"
#include "cli/submission/job_script.h"
#include "cli/submission/sbatch_line.h"
#include "cli/words/arguments.h"
#include "cli/words/input.h"
#include "client/submission.h"
#include "gpu_platform/v1/slurm.pb.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uint64_t kMaxTasks = 1'048'576;

using Environment = std::map<std::string, std::string>;

// --gpus is what the job has on all nodes, the specification's "gpus" what it has on each.
base::Status put_gpus(v1::JobSpec& spec, const JobOptions& options) {
  TRY(put_gpu_types(spec, options.texts("--gpu-type")));
  TRY(put_gpu_count(spec, options, spec.has_nodes() ? spec.nodes() : 1));
  // A type or a memory size without a number asks for one such GPU.
  if (!spec.has_gpus() && (options.has("--gpu-type") || options.has("--gpu-memory"))) {
    spec.set_gpus(1);
  }
  return {};
}

// Puts the time limit that follows from the time on the GPU in its place. What an option says takes
// the place of either in a job that is there already.
base::Status put_gpu_time(v1::JobSpec& spec, const JobOptions& options) {
  const bool has_limit = options.has("--time");
  const bool has_gpu_time = options.has("--gpu-time");
  if (has_limit && !has_gpu_time) spec.clear_gpu_time_seconds();
  if (has_gpu_time && !has_limit) spec.clear_time_limit_seconds();
  const auto limit = api::limit_of_gpu_time(spec);
  if (!limit) {
    const std::string& field = limit.error().field;
    return base::invalid(has_gpu_time ? "--gpu-time" : field,
                         limit.error().message.substr(field.size() + 2));  // behind "FIELD: "
  }
  if (!*limit) return {};
  spec.set_time_limit_seconds(static_cast<double>(base::whole_milliseconds(**limit)) / 1000);
  spec.clear_gpu_time_seconds();
  return {};
}

// --cpus counts for each of the tasks, and the specification's "cpus" for each node. A job with
// GPUs that asks for no CPUs keeps its share of the node.
base::Status put_tasks(v1::JobSpec& spec, const JobOptions& options) {
  const std::optional<std::string>& text = options.text("--ntasks");
  if (!text.has_value()) return {};
  const auto tasks = base::parse_count(*text, 1, kMaxTasks);
  if (!tasks) return base::invalid("--ntasks", tasks.error().message);
  const std::uint64_t nodes = spec.has_nodes() ? spec.nodes() : 1;
  if (*tasks % nodes != 0) {
    return base::invalid("--ntasks",
                         fmt::format("{} tasks cannot be divided among {} nodes", *tasks, nodes));
  }
  if (spec.gpus() > 0 && !spec.has_cpus()) return {};
  const std::uint64_t cpus = spec.has_cpus() ? spec.cpus() : 1;
  const std::uint64_t all = *tasks / nodes * cpus;
  if (all > UINT32_MAX) return base::invalid("--ntasks", fmt::format("{} CPUs are too many", all));
  spec.set_cpus(static_cast<std::uint32_t>(all));
  return {};
}

void put_streams(v1::JobSpec& spec, const JobRequest& request) {
  if (request.takes_input) spec.set_takes_input(true);
  if (!request.terminal.has_value()) return;
  spec.set_terminal(true);
  spec.set_columns(request.terminal->columns);
  spec.set_rows(request.terminal->rows);
  if (!spec.has_kind()) spec.set_kind(v1::JOB_KIND_INTERACTIVE);
}

base::Result<std::string> directory_of_job(const std::string& workdir,
                                           const ProcessEnvironment& process_environment) {
  if (workdir.starts_with('/')) return workdir;
  if (process_environment.directory.empty()) {
    return base::invalid("--workdir", "the current directory cannot be found; name one");
  }
  return process_environment.directory + (workdir.empty() ? "" : "/" + workdir);
}

void add_missing(const Environment& more, v1::JobSpec& spec) {
  for (const auto& [name, value] : more) spec.mutable_environment()->insert({name, value});
}

// The environment of the caller; for a container only what was asked for of it, because the paths
// of this machine mean nothing in an image.
base::Status put_environment(Console& console, const JobRequest& request, v1::JobSpec& spec) {
  constexpr const char* kFromHost = "--container-env-from-host";
  const JobOptions& options = request.options;
  if (spec.image().empty() && options.has(kFromHost)) {
    return base::invalid(kFromHost, "is for a job with --image");
  }
  for (const std::string& file : request.environment_files) {
    TRY(put_environment_file(console.process_environment(), file, *spec.mutable_environment()));
  }
  TRY(put_pairs(*spec.mutable_environment(), options.texts("--env"), "--env"));
  const Environment callers = client::environment_of(console);
  if (spec.image().empty()) {
    add_missing(callers, spec);
    return {};
  }
  for (const std::string& name : words_of_lists(options.texts(kFromHost))) {
    if (const auto found = callers.find(name); found != callers.end()) {
      add_missing({*found}, spec);
    }
  }
  return {};
}

// The mistake that reading the words of a line ends with, without the form of a command's errors.
base::Status read_line(const std::vector<std::string>& words, const std::string& where,
                       base::Instant now, const ProcessEnvironment& process_environment,
                       JobOptions& options) {
  std::string said;
  Console unheard(process_environment, said);
  Arguments arguments(CommandText{"submit", "", "", ""});
  options.define(arguments);
  if (arguments.parse(words, unheard)) {
    constexpr std::string_view kError = "error: ";
    const std::string first = said.substr(0, said.find('\n'));
    return base::invalid(where, first.starts_with(kError)
                                    ? first.substr(kError.size())
                                    : "only options of the job are allowed here");
  }
  v1::JobSpec unused;
  std::vector<std::string> none_cleared;
  base::Status put = options.put(unused, none_cleared, now);
  if (put) put = put_gpus(unused, options);
  if (put) return {};
  return base::invalid(where, fmt::format("{}: {}", put.error().field, put.error().message));
}

base::Status take_option_lines(Console& console, const JobScript& script, JobRequest& request) {
  const ProcessEnvironment& process_environment = console.process_environment();
  TRY_ASSIGN(const std::vector<client::OptionLine> lines, option_lines(script.text));
  request.mail.script = script.called;
  std::deque<JobOptions> read;
  for (const client::OptionLine& line : lines) {
    const std::string where = fmt::format("{}: line {}", script.called, line.number);
    std::vector<std::string> words = line.words;
    if (line.mark == kSbatchLine) {
      std::vector<std::string> warnings;
      const auto ours = words_of_sbatch_line(words, request.mail, warnings);
      if (!ours) {
        return base::invalid(where,
                             fmt::format("{}: {}", ours.error().field, ours.error().message));
      }
      for (const std::string& warning : warnings) {
        console.warning(fmt::format("{}: {}", where, warning));
      }
      words = *ours;
    }
    JobOptions& options = read.emplace_back(JobOptions::Of::kSubmission);
    TRY(read_line(words, where, process_environment.now(), process_environment, options));
  }
  // Later lines win over earlier ones, and the command line over all.
  for (auto options = read.rbegin(); options != read.rend(); ++options) {
    request.options.fill_from(*options);
  }
  return {};
}

}  // namespace

base::Status put_options(Console& console, const JobRequest& request, v1::JobSpec& spec) {
  const ProcessEnvironment& process_environment = console.process_environment();
  for (const std::string& word : request.command) TRY(check_text("command", word));
  if (!request.command.empty()) {
    spec.mutable_command()->Assign(request.command.begin(), request.command.end());
  }
  std::vector<std::string> none_cleared;
  TRY(request.options.put(spec, none_cleared, process_environment.now()));
  // In a job that is there already, one form of several nodes takes the place of the other.
  const bool has_nodes = request.options.has("--nodes");
  const bool has_cross_node = request.options.has("--allow-cross-node");
  if (has_nodes && !has_cross_node) spec.clear_allow_cross_node();
  if (has_cross_node && !has_nodes) spec.clear_nodes();
  TRY(put_gpus(spec, request.options));
  TRY(put_gpu_time(spec, request.options));
  TRY(put_tasks(spec, request.options));
  put_streams(spec, request);
  if (const auto& workdir = request.options.text("--workdir")) {
    TRY_ASSIGN(*spec.mutable_workdir(), directory_of_job(*workdir, process_environment));
  }
  return {};
}

base::Status put_callers(Console& console, const JobRequest& request, v1::JobSpec& spec) {
  const ProcessEnvironment& process_environment = console.process_environment();
  if (!spec.has_workdir()) {
    TRY_ASSIGN(*spec.mutable_workdir(), directory_of_job({}, process_environment));
  }
  if (!spec.has_umask()) spec.set_umask(process_environment.umask);
  TRY(put_environment(console, request, spec));
  if (!spec.has_request_id()) {
    if (const std::string key = client::random_request_id(); !key.empty()) spec.set_request_id(key);
  }
  return {};
}

base::Status take_script(Console& console, JobRequest& request, v1::JobSpec& spec) {
  if (request.command.empty()) return {};
  const ProcessEnvironment& process_environment = console.process_environment();
  const auto directory =
      directory_of_job(request.options.text("--workdir").value_or(""), process_environment);
  if (!directory) return {};  // told when the directory is put
  const std::string path = client::variable(process_environment, "PATH").value_or("");
  TRY_ASSIGN(const auto script,
             find_script(process_environment, {request.command.front(), *directory, path,
                                               request.options.has("--image")}));
  if (!script) return {};
  TRY(take_option_lines(console, *script, request));
  if (!script->is_copied) return {};
  if (script->text.find("BASH_SOURCE") != std::string::npos) {
    console.warning(
        fmt::format("{} is copied, and BASH_SOURCE is empty in the copy: '-- bash {}' runs "
                    "the file itself",
                    script->called, script->called));
  }
  if (api::is_valid_utf8(script->name)) spec.set_name(script->name);
  request.command.erase(request.command.begin());
  std::vector<std::string> command = command_of(*script, request.command);
  // The image's own entry point would get the shell as its arguments.
  if (request.options.has("--image") && !request.options.has("--entrypoint")) {
    spec.set_entrypoint(command.front());
    command.erase(command.begin());
  }
  request.command = std::move(command);
  return {};
}

base::Status take_mail(Console& console, Client& client, JobRequest& request) {
  constexpr const char* kEvents = "--notify";
  constexpr const char* kAddress = "--notify-to";
  const SbatchMail& mail = request.mail;
  const bool has_events = request.options.has(kEvents) || !mail.events.empty();
  if (!has_events) {
    if (!mail.to.empty() && !mail.has_type) {
      console.warning(
          fmt::format("{}: --mail-user is ignored: --mail-type names no event", mail.script));
    }
    return {};
  }
  std::vector<std::string> words;
  if (!mail.events.empty() && !request.options.has(kEvents)) {
    words = {kEvents, fmt::format("{}", fmt::join(mail.events, ","))};
  }
  if (!mail.to.empty() && !request.options.has(kAddress)) {
    words.insert(words.end(), {kAddress, mail.to});
  }
  if (words.empty()) return {};
  // If there is no answer, the submission tells why.
  const auto site = client.ask<v1::SlurmNames>("/v1/slurm", "the site's names");
  if (site && !site->can_notify() && !request.options.has(kEvents)) {
    console.warning(
        fmt::format("{}: --mail-type is ignored: no mail is sent, because the site has "
                    "no notification command; 'gpu-platform jobs wait' waits for the "
                    "end",
                    mail.script));
    return {};
  }
  const ProcessEnvironment& process_environment = console.process_environment();
  JobOptions options(JobOptions::Of::kSubmission);
  TRY(read_line(words, mail.script, process_environment.now(), process_environment, options));
  request.options.fill_from(options);
  return {};
}

}  // namespace gpu_platform::cli
