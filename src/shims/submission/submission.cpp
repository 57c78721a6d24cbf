#include "shims/submission/submission.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "api/convert/job_change.h"
#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "cli/words/input.h"
#include "client/answer.h"
#include "client/submission.h"
#include "model/job_spec.h"
#include "shims/steps/gpu_binding.h"
#include "shims/steps/task_layout.h"
#include "shims/submission/container_options.h"
#include "shims/submission/mail_options.h"
#include "shims/submission/partition_choice.h"
#include "shims/submission/placement.h"
#include "shims/text/file_pattern.h"
#include "shims/text/slurm_times.h"

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kLargestPiece = 96 * 1024;
constexpr std::size_t kLongestComment = 1024;  // of the daemon

std::string piece_name(std::size_t number) {
  return fmt::format("SLURM_SHIM_SCRIPT_{}", number);
}

std::int64_t whole_time_limit(const v1::JobSpec& spec) {
  return static_cast<std::int64_t>(spec.time_limit_seconds());
}

void put_time_limit(base::Duration limit, v1::JobSpec& spec) {
  spec.set_time_limit_seconds(static_cast<double>(base::whole_milliseconds(limit) / 1000));
}

// The class of the QOS or the partition; a niceness that would go ahead of others is told.
void put_priority_of_job(CommandCall& call, const Settings& settings, const SiteChoice& choice,
                         v1::JobSpec& spec) {
  if (!choice.priority.empty()) spec.set_priority(choice.priority);
  if (!settings.has("nice")) return;
  const auto priority = priority_of_nice(settings.value("nice"));
  if (!priority) {
    call.warn(fmt::format("--nice is ignored: {}", priority.error().message));
  } else if (*priority == "low") {
    spec.set_priority(*priority);
  }
}

// What -p and -q stand for. A refusal is told in Slurm's two lines, of which the second is
// returned.
base::Result<SiteChoice> choice_for(CommandCall& call, client::Client& client,
                                    const Settings& settings, const Resources& resources,
                                    const Work& work, const v1::JobSpec& spec) {
  const auto site = site_of(client);
  if (!site) return base::fail(base::ErrorCode::kUnavailable, site.error().message);
  std::optional<base::Duration> limit;
  if (spec.has_time_limit_seconds()) limit = base::seconds(whole_time_limit(spec));
  auto choice = choose(*site, settings, resources, limit);
  if (choice) {
    choice->can_notify = site->can_notify;
    choice->shards_per_gpu = site->shards_per_gpu;
    return std::move(*choice);
  }
  call.fail(choice.error().detail);
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("{}: {}",
                                work.step == "job-step" ? "Unable to allocate resources"
                                                        : "Batch job submission failed",
                                choice.error().reason));
}

struct Wanted {
  Resources resources;
  SiteChoice choice;
};

// The job's resources, and what -p and -q stand for. A job that names no number of nodes has the
// fewest that hold it.
base::Result<Wanted> wanted_of(CommandCall& call, client::Client& client, const Settings& settings,
                               const Work& work, const v1::JobSpec& spec,
                               std::vector<std::string>& warnings) {
  Wanted wanted;
  TRY_ASSIGN(wanted.resources, resources_of(settings, warnings));
  TRY(check_equal_parts(wanted.resources));
  TRY_ASSIGN(wanted.choice, choice_for(call, client, settings, wanted.resources, work, spec));
  if (!leaves_nodes_open(settings, wanted.resources)) return wanted;
  TRY_ASSIGN(const std::uint32_t nodes,
             fewest_nodes(client, settings, wanted.resources, wanted.choice));
  if (nodes == wanted.resources.nodes) return wanted;
  Settings spread = settings;
  spread.set(Option{"nodes"}, fmt::format("{}", nodes));
  std::vector<std::string> said;
  TRY_ASSIGN(wanted.resources, resources_of(spread, said));
  TRY_ASSIGN(wanted.choice, choice_for(call, client, settings, wanted.resources, work, spec));
  return wanted;
}

void put_comment_of_job(CommandCall& call, const Settings& settings, v1::JobSpec& spec) {
  const std::string& comment = settings.value("comment");
  if (comment.size() > kLongestComment) {
    call.warn(fmt::format("--comment is not kept: it is longer than {} bytes", kLongestComment));
  } else if (!comment.empty()) {
    spec.set_comment(comment);
  }
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// What the job's steps are told.
base::Status check_step_options(const Settings& settings) {
  if (settings.has("distribution")) {
    const auto read = parse_distribution(settings.value("distribution"));
    if (!read) return base::invalid("--distribution", read.error().message);
  }
  if (settings.has("gpu-bind")) {
    const auto read = parse_gpu_binding(settings.value("gpu-bind"));
    if (!read) return base::invalid("--gpu-bind", read.error().message);
  }
  return {};
}

base::Status put_time(const Settings& settings, v1::JobSpec& spec,
                      std::vector<std::string>& warnings) {
  if (!settings.has("time")) return {};
  const auto limit = parse_time_limit(settings.value("time"));
  if (!limit) return base::invalid("--time", limit.error().message);
  if (limit->has_value()) {
    put_time_limit(**limit, spec);
  } else {
    warnings.emplace_back("no job runs without a time limit: it gets the site's default");
  }
  return {};
}

// The daemon reads dependencies and arrays as Slurm writes them, and says what it does not have.
base::Status put_start_conditions(const Settings& settings, base::Instant now, v1::JobSpec& spec) {
  if (settings.has("begin")) {
    TRY(put_coming_time("--begin", settings.value("begin"), now, *spec.mutable_begin()));
  }
  if (settings.has("deadline")) {
    TRY(put_coming_time("--deadline", settings.value("deadline"), now, *spec.mutable_deadline()));
  }
  if (settings.has("dependency")) spec.set_dependency(settings.value("dependency"));
  if (settings.has("array")) spec.set_array(settings.value("array"));
  if (settings.has("reservation")) spec.set_reservation(settings.value("reservation"));
  return {};
}

// The signal before the time limit. Without "B:" it is for steps: the variable tells the job's
// first process to leave it alone.
base::Status put_signal(const Settings& settings, const Work& work, v1::JobSpec& spec) {
  if (!settings.has("signal")) return {};
  const auto signal = api::to_limit_signal(settings.value("signal"));
  if (!signal) {
    constexpr std::string_view kField = "limit_signal: ";
    std::string_view message = signal.error().message;
    if (message.starts_with(kField)) message.remove_prefix(kField.size());
    return base::invalid("--signal", std::string(message));
  }
  if (signal->first_process_only && work.script.empty()) {
    return base::invalid("--signal", "srun has no batch shell for B:");
  }
  spec.set_limit_signal(api::limit_signal_text(*signal));
  if (!signal->first_process_only)
    (*spec.mutable_environment())["SLURM_SHIM_SIGNAL"] = fmt::format("{}", signal->signal);
  return {};
}

base::Result<std::string> directory_of(CommandCall& call, const Settings& settings) {
  const std::string& given = settings.value("chdir");
  if (given.starts_with('/')) return given;
  const std::string& here = call.around().directory;
  if (here.empty())
    return base::invalid("--chdir", "the current directory cannot be found; name one");
  return given.empty() ? here : here + "/" + given;
}

Variables callers_variables(CommandCall& call) {
  const auto environment = client::environment_of(call.console());
  return {environment.begin(), environment.end()};
}

Variables environment_for(CommandCall& call, const Settings& settings, const Work& work,
                          const Submitted& submitted, const Resources& resources) {
  const Variables callers = callers_variables(call);
  Variables variables = exported(settings.value("export"), callers);
  if (settings.has("export")) variables["SLURM_EXPORT_ENV"] = settings.value("export");
  for (const auto& [name, value] : submission_variables(submitted, resources))
    variables[name] = value;
  for (const auto& [name, value] : work.variables) variables[name] = value;
  if (!work.script.empty()) put_script(variables, work.script);
  if (settings.has("no-requeue")) variables["SLURM_SHIM_NO_REQUEUE"] = "1";
  // srun reads these in the job.
  if (settings.has("distribution"))
    variables["SLURM_DISTRIBUTION"] = settings.value("distribution");
  if (settings.has("gpu-bind")) variables["SLURM_GPU_BIND"] = settings.value("gpu-bind");
  return variables;
}

// How GPUs were asked for, for commands that show it: "job,task.2".
std::string gpus_per(const Settings& settings, const Resources& resources) {
  std::vector<std::string> all;
  if (settings.has("gpus")) all.emplace_back("job");
  if (settings.has("gpus-per-node") || settings.has("gres")) all.emplace_back("node");
  if (resources.gpus_per_socket)
    all.push_back(fmt::format("socket.{}", *resources.gpus_per_socket));
  if (resources.gpus_per_task) all.push_back(fmt::format("task.{}", *resources.gpus_per_task));
  return fmt::format("{}", fmt::join(all, ","));
}

void put_resources(const Settings& settings, const Resources& resources, v1::JobSpec& spec) {
  auto& labels = *spec.mutable_labels();
  if (const std::string per = gpus_per(settings, resources);
      resources.gpus.count > 0 && !per.empty())
    labels["slurm.gpus_per"] = per;
  if (resources.memory_per_cpu) labels["slurm.memory_per"] = "cpu";
  spec.set_gpus(resources.gpus.count);
  if (resources.nodes > 1) {
    spec.set_nodes(resources.nodes);
    // The batch script, or srun, starts the tasks on all of them.
    spec.set_first_node_only(true);
  }
  if (resources.cpus) spec.set_cpus(*resources.cpus);
  if (resources.memory)
    spec.set_memory_bytes(static_cast<std::uint64_t>(resources.memory->value()));
}

// What the daemon finds wrong is told by the name of the option.
std::string option_of_field(const std::string& field) {
  constexpr std::pair<std::string_view, std::string_view> kOptionsOfFields[] = {
      {"array", "array"},
      {"begin", "begin"},
      {"comment", "comment"},
      {"cpus", "cpus-per-task"},
      {"deadline", "deadline"},
      {"dependency", "dependency"},
      {"error", "error"},
      {"exclude", "exclude"},
      {"gpu_share", "gres"},
      {"gpu_types", "gres"},
      {"gpus", "gpus"},
      {"limit_signal", "signal"},
      {"memory_bytes", "mem"},
      {"name", "job-name"},
      {"nodelist", "nodelist"},
      {"nodes", "nodes"},
      {"notify", "mail-type"},
      {"notify_to", "mail-user"},
      {"output", "output"},
      {"priority", "qos"},
      {"reservation", "reservation"},
      {"share_mode", "gres"},
      {"team", "account"},
      {"time_limit_seconds", "time"},
      {"workdir", "chdir"},
      {"image", "container-image"},
      {"mounts", "container-mounts"},
      {"container_workdir", "container-workdir"}};
  const std::string name = field.substr(0, field.find('['));
  const auto found = std::ranges::find(kOptionsOfFields, name,
                                       &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kOptionsOfFields) ? field : fmt::format("--{}", found->second);
}

base::Status check_text(const Settings& settings, const Work& work) {
  for (const auto& [name, value] : settings.all()) {
    if (!api::is_valid_utf8(value))
      return base::invalid("--" + name, "the text is not valid UTF-8");
  }
  for (const std::string& word : work.words) {
    if (!api::is_valid_utf8(word)) return base::invalid("arguments", "the text is not valid UTF-8");
  }
  return {};
}

}  // namespace

base::Result<std::string> own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0)
    return base::fail(base::ErrorCode::kInternal,
                      "the program's own path cannot be read from /proc");
  return std::string(path, static_cast<std::size_t>(length));
}

void put_script(Variables& variables, const std::string& script) {
  std::string text;
  base::append_base64(text, script);
  for (std::size_t number = 0; number * kLargestPiece < text.size(); ++number) {
    variables[piece_name(number)] = text.substr(number * kLargestPiece, kLargestPiece);
  }
}

std::optional<std::string> taken_script(Variables& variables) {
  std::string text;
  for (std::size_t number = 0;; ++number) {
    const auto piece = variables.extract(piece_name(number));
    if (piece.empty()) break;
    text += piece.mapped();
  }
  if (text.empty()) return std::nullopt;
  return base::parse_base64(text);
}

Variables exported(const std::string& selection, const Variables& callers) {
  // A job submitted from within a job must not believe it is that one.
  Variables own;
  std::ranges::copy_if(callers, std::inserter(own, own.end()),
                       [](const auto& entry) { return !entry.first.starts_with("SLURM_"); });
  if (selection.empty() || selection == "ALL") return own;
  Variables result;
  // Without these nothing that the job calls would be found.
  for (const char* name : {"PATH", "GPU_PLATFORM_SERVER"}) {
    if (const auto found = own.find(name); found != own.end()) result.insert(*found);
  }
  for (const std::string& item : comma_separated(selection)) {
    const std::size_t equals = item.find('=');
    if (equals != std::string::npos) {
      if (equals > 0) result[item.substr(0, equals)] = item.substr(equals + 1);
    } else if (item == "ALL") {
      result.insert(own.begin(), own.end());
    } else if (const auto found = own.find(item); found != own.end()) {
      result.insert_or_assign(found->first, found->second);
    }
  }
  return result;
}

base::Status put_files(const Settings& settings, bool is_one_task, Work& work) {
  for (const char* option : {"output", "error", "input"}) {
    PatternValues values;
    if (settings.has("array")) values.array = values.index = "1";
    const auto name = expanded(settings.value(option), values);
    if (!name) return base::invalid(fmt::format("--{}", option), name.error().message);
  }
  const std::string& mode = settings.value("open-mode");
  if (!mode.empty() && mode != "append" && mode != "truncate") {
    return base::invalid("--open-mode", fmt::format("'{}' is neither append nor truncate", mode));
  }
  const bool is_appended = mode == "append";
  if (is_appended) work.variables["SLURM_SHIM_OPEN_MODE"] = "append";
  if (settings.has("input")) work.variables["SLURM_SHIM_INPUT"] = settings.value("input");
  for (const auto& [option, variable] :
       {std::pair{"output", "SLURM_SHIM_OUTPUT"}, std::pair{"error", "SLURM_SHIM_ERROR"}}) {
    if (settings.value(option).empty()) continue;
    const auto of = settings.has("array") ? model::PatternOf::kArray : model::PatternOf::kJob;
    const auto pattern = platform_pattern(settings.value(option), is_one_task, of);
    // Inside the job the output takes standard error along, so the two are opened in one place.
    if (pattern && !work.variables.contains("SLURM_SHIM_OUTPUT")) {
      std::string_view(option) == "error" ? work.fields.set_error(*pattern)
                                          : work.fields.set_output(*pattern);
      work.fields.set_open_mode(is_appended ? v1::OPEN_MODE_APPEND : v1::OPEN_MODE_TRUNCATE);
    } else {
      work.variables[variable] = settings.value(option);
    }
  }
  return {};
}

base::Result<v1::JobSpec> job_request(CommandCall& call, client::Client& client,
                                      const Settings& settings, const Work& work) {
  TRY(check_text(settings, work));
  TRY(check_step_options(settings));
  std::vector<std::string> warnings;
  v1::JobSpec spec = work.fields;
  TRY_ASSIGN(const std::string self, own_path());
  spec.add_command(self);
  spec.add_command(work.step);
  for (const std::string& word : work.words) spec.add_command(word);
  spec.set_name(settings.has("job-name") ? settings.value("job-name") : work.name);
  TRY(put_time(settings, spec, warnings));
  TRY_ASSIGN(const Wanted wanted, wanted_of(call, client, settings, work, spec, warnings));
  const auto& [resources, choice] = wanted;
  call.warn_all(warnings);
  put_resources(settings, resources, spec);
  if (resources.part) TRY(put_shared_gres(*resources.part, choice.shards_per_gpu, spec));
  call.warn_all(choice.warnings);
  if (choice.time_limit) put_time_limit(*choice.time_limit, spec);
  TRY(put_placement(client, settings, resources, choice, call.around().now(), spec));
  if (const std::string& whose = settings.value("exclusive"); whose == "user" || whose == "mcs")
    call.warn(fmt::format("--exclusive={} is ignored: nodes are shared by the jobs of all", whose));
  put_priority_of_job(call, settings, choice, spec);
  TRY(put_start_conditions(settings, call.around().now(), spec));
  if (settings.has("hold")) spec.set_hold(true);
  // Another attempt would come to nothing, so a script that did well is done.
  if (settings.has("no-requeue")) spec.set_complete_on_exit_zero(true);
  auto& labels = *spec.mutable_labels();
  labels["slurm.partition"] = choice.partition;
  if (!choice.qos.empty()) labels["slurm.qos"] = choice.qos;
  // For scontrol, which cannot read the job's environment.
  if (resources.counts_tasks) labels["slurm.tasks"] = fmt::format("{}", resources.tasks);
  put_comment_of_job(call, settings, spec);
  call.warn_all(put_mail(settings, choice.can_notify, spec));
  if (!settings.value("account").empty()) spec.set_team(settings.value("account"));
  TRY_ASSIGN(*spec.mutable_workdir(), directory_of(call, settings));
  spec.set_umask(call.around().umask);
  Submitted submitted{call.around().directory,
                      host_name(),
                      choice.partition,
                      settings.value("account"),
                      choice.qos.empty() ? "normal" : choice.qos,
                      std::nullopt};
  if (spec.has_time_limit_seconds()) submitted.time_limit_seconds = whole_time_limit(spec);
  const Variables variables = environment_for(call, settings, work, submitted, resources);
  spec.mutable_environment()->insert(variables.begin(), variables.end());
  TRY(put_signal(settings, work, spec));
  call.warn_all(container_warnings(settings));
  if (wants_container(settings)) {
    const Variables callers = callers_variables(call);
    TRY(put_container(settings, work, {callers, std::string(variable(callers, "HOME"))}, spec));
  }
  if (const std::string key = client::random_request_id(); !key.empty()) spec.set_request_id(key);
  return spec;
}

std::expected<std::string, int> submit(CommandCall& call, client::Client& client,
                                       const v1::JobSpec& spec) {
  auto answer = client::submit_job(call.console(), client, spec);
  if (!answer) {
    // The option stands for the field, in front of the message too.
    client::Failure& failure = answer.error();
    const std::string option = option_of_field(failure.field);
    if (const auto about = client::about_field(failure.message, failure.field)) {
      failure.message = client::told_of_option(option, *about);
    }
    failure.field = option;
    return std::unexpected(call.fail(answer.error()));
  }
  const auto job = client::message_of<v1::Job>(*answer);
  std::string id = job ? job->id() : std::string();
  if (id.empty()) return std::unexpected(call.fail("the daemon's answer has no job id"));
  return id;
}

}  // namespace gpu_platform::shims
