#include "shims/submission.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "api/convert/job_change.h"
#include "api/convert/text_forms.h"
#include "cli/input.h"
#include "cli/submission.h"
#include "shims/file_pattern.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

constexpr std::size_t kLargestPiece = 96 * 1024;
constexpr std::size_t kLongestComment = 1024;  // of the daemon

std::string piece_name(std::size_t number) {
  return fmt::format("SLURM_SHIM_SCRIPT_{}", number);
}

std::string lower_letters_and_digits(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') result.push_back(static_cast<char>(c + 32));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) result.push_back(c);
  }
  return result;
}

// The GPU types of the cluster, or nothing where the daemon does not say.
std::vector<std::string> cluster_types(cli::Client& client) {
  const auto body = client.get("/v1/status");
  const auto status = body ? cli::parse_object(*body) : std::nullopt;
  std::vector<std::string> types;
  if (!status) return types;
  for (const Json& gpu : cli::list_at(*status, "gpus"))
    types.push_back(lower_letters_and_digits(cli::text_at(gpu, "type")));
  return types;
}

// "-C a100|h100" where every name is a type of GPU that is here: that type is asked for. Nodes have
// no other features.
std::vector<std::string> types_of_constraint(cli::Client& client, std::string_view constraint) {
  const std::vector<std::string> known = cluster_types(client);
  std::vector<std::string> types;
  std::string_view rest = constraint;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    const std::string name(rest.substr(0, bar));
    const std::string plain = lower_letters_and_digits(name);
    const bool is_type = !plain.empty() && std::ranges::any_of(known, [&](const std::string& type) {
      return type.starts_with(plain);
    });
    if (!is_type) return {};
    types.push_back(name);
    rest.remove_prefix(bar == std::string_view::npos ? rest.size() : bar + 1);
  }
  return types;
}

void put_types(Call& call, cli::Client& client, const Settings& settings,
               const Resources& resources, Json& body) {
  if (!resources.gpus.type.empty()) body["gpu_types"].push_back(resources.gpus.type);
  if (!settings.has("constraint")) return;
  const std::string& constraint = settings.value("constraint");
  const auto types = types_of_constraint(client, constraint);
  if (types.empty() || !resources.gpus.type.empty() || resources.gpus.count == 0) {
    call.warn(fmt::format(
        "--constraint={} is ignored: nodes have no features but the types of their GPUs, which "
        "--gres=gpu:TYPE:N asks for",
        constraint));
    return;
  }
  body["gpu_types"] = types;
}

// A QOS that is no class of the platform, and a niceness that would go ahead of others, are told.
void put_priority(Call& call, const Settings& settings, Json& body) {
  const std::string& qos = settings.value("qos");
  if (const auto priority = priority_of_qos(qos)) {
    body["priority"] = *priority;
  } else if (!qos.empty()) {
    call.warn(fmt::format("--qos={} is ignored: critical, high, medium and low are priorities here",
                          qos));
  }
  if (!settings.has("nice")) return;
  const auto priority = priority_of_nice(settings.value("nice"));
  if (!priority) {
    call.warn(fmt::format("--nice is ignored: {}", priority.error().message));
  } else if (*priority == "low") {
    body["priority"] = *priority;
  }
}

void put_labels(Call& call, const Settings& settings, const std::string& partition, Json& body) {
  body["labels"]["slurm.partition"] = partition;
  if (settings.has("partition") && partition != kPartition) {
    call.warn(
        fmt::format("--partition={} is kept as a name only: all nodes are one partition, \"{}\"",
                    partition, kPartition));
  }
}

void put_comment(Call& call, const Settings& settings, Json& body) {
  const std::string& comment = settings.value("comment");
  if (comment.size() > kLongestComment) {
    call.warn(fmt::format("--comment is not kept: it is longer than {} bytes", kLongestComment));
  } else if (!comment.empty()) {
    body["comment"] = comment;
  }
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// This program, under a name that does not depend on the link it was called by.
base::Result<std::string> own_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0)
    return base::fail(base::ErrorCode::kInternal,
                      "the program's own path cannot be read from /proc");
  return std::string(path, static_cast<std::size_t>(length));
}

base::Status put_time(const Settings& settings, Json& body, std::vector<std::string>& warnings) {
  if (!settings.has("time")) return {};
  const auto limit = parse_time_limit(settings.value("time"));
  if (!limit) return base::invalid("--time", limit.error().message);
  if (limit->has_value()) {
    body["time_limit_seconds"] = base::whole_milliseconds(**limit) / 1000;
  } else {
    warnings.emplace_back("no job runs without a time limit: it gets the site's maximum");
  }
  return {};
}

// The daemon reads dependencies and arrays as Slurm writes them, and says what it does not have.
base::Status put_start_conditions(const Settings& settings, base::Instant now, Json& body) {
  for (const char* option : {"begin", "deadline"}) {
    if (!settings.has(option)) continue;
    TRY(cli::put_future_time(body, option, settings.value(option), now));
  }
  for (const char* option : {"dependency", "array", "reservation"}) {
    if (settings.has(option)) body[option] = settings.value(option);
  }
  return {};
}

// The signal before the time limit. Without "B:" it is for steps: the variable tells the job's
// first process to leave it alone.
base::Status put_signal(const Settings& settings, const Work& work, Json& body) {
  if (!settings.has("signal")) return {};
  const auto signal = api::to_limit_signal(settings.value("signal"));
  if (!signal) return base::invalid("--signal", signal.error().message);
  if (signal->first_process_only && work.script.empty()) {
    return base::invalid("--signal", "srun has no batch shell that B: could mean");
  }
  body["limit_signal"] = api::limit_signal_text(*signal);
  if (!signal->first_process_only)
    body["environment"]["SLURM_SHIM_SIGNAL"] = fmt::format("{}", signal->signal);
  return {};
}

base::Result<std::string> directory_of(Call& call, const Settings& settings) {
  const std::string& given = settings.value("chdir");
  if (given.starts_with('/')) return given;
  const std::string& here = call.around().directory;
  if (here.empty())
    return base::invalid("--chdir", "the current directory cannot be found; name one");
  return given.empty() ? here : here + "/" + given;
}

Json environment_for(Call& call, const Settings& settings, const Work& work,
                     const Submitted& submitted, const Resources& resources) {
  const auto callers = cli::environment_of(call.console()).get<Variables>();
  Variables variables = exported(settings.value("export"), callers);
  if (settings.has("export")) variables["SLURM_EXPORT_ENV"] = settings.value("export");
  for (const auto& [name, value] : submission_variables(submitted, resources))
    variables[name] = value;
  for (const auto& [name, value] : work.variables) variables[name] = value;
  if (!work.script.empty()) put_script(variables, work.script);
  if (settings.has("no-requeue")) variables["SLURM_SHIM_NO_REQUEUE"] = "1";
  return Json(variables);
}

void put_resources(const Resources& resources, Json& body) {
  body["gpus"] = resources.gpus.count;
  if (resources.cpus) body["cpus"] = *resources.cpus;
  if (resources.memory) body["memory_bytes"] = resources.memory->value();
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

void put_script(Variables& variables, const std::string& script) {
  std::string text;
  api::append_base64(text, script);
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
  return api::parse_base64(text);
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
      work.fields[option] = *pattern;
      work.fields["open_mode"] = is_appended ? "APPEND" : "TRUNCATE";
    } else {
      work.variables[variable] = settings.value(option);
    }
  }
  return {};
}

base::Result<Json> job_request(Call& call, cli::Client& client, const Settings& settings,
                               const Work& work) {
  TRY(check_text(settings, work));
  std::vector<std::string> warnings;
  TRY_ASSIGN(const Resources resources, resources_of(settings, warnings));
  Json body = work.fields;
  TRY_ASSIGN(const std::string self, own_path());
  body["command"] = std::vector<std::string>{self, work.step};
  for (const std::string& word : work.words) body["command"].push_back(word);
  body["name"] = settings.has("job-name") ? settings.value("job-name") : work.name;
  TRY(put_time(settings, body, warnings));
  call.warn_all(warnings);
  put_resources(resources, body);
  put_types(call, client, settings, resources, body);
  // srun within a job says again where it is.
  if (work.step != "job-step" && settings.has("nodelist")) {
    body["nodelist"].push_back(settings.value("nodelist"));
  }
  if (settings.has("exclude")) body["exclude"].push_back(settings.value("exclude"));
  put_priority(call, settings, body);
  TRY(put_start_conditions(settings, call.around().now(), body));
  if (settings.has("hold")) body["hold"] = true;
  // Another attempt would come to nothing, so a script that did well is done.
  if (settings.has("no-requeue")) body["complete_on_exit_zero"] = true;
  const std::string partition =
      settings.has("partition") ? settings.value("partition") : std::string(kPartition);
  put_labels(call, settings, partition, body);
  put_comment(call, settings, body);
  if (!settings.value("account").empty()) body["team"] = settings.value("account");
  TRY_ASSIGN(body["workdir"], directory_of(call, settings));
  body["umask"] = call.around().umask;
  Submitted submitted{call.around().directory,
                      host_name(),
                      partition,
                      settings.value("account"),
                      settings.value("qos").empty() ? "normal" : settings.value("qos"),
                      std::nullopt};
  submitted.time_limit_seconds = cli::integer_at(body, "time_limit_seconds");
  body["environment"] = environment_for(call, settings, work, submitted, resources);
  TRY(put_signal(settings, work, body));
  if (const std::string key = cli::random_request_id(); !key.empty()) body["request_id"] = key;
  return body;
}

std::expected<std::string, int> submit(Call& call, cli::Client& client, const Json& body) {
  const auto answer = cli::submit_job(call.console(), client, body);
  if (!answer) return std::unexpected(call.fail(answer.error()));
  const auto job = cli::parse_object(*answer);
  std::string id = job ? cli::text_at(*job, "id") : std::string();
  if (id.empty()) return std::unexpected(call.fail("the daemon's answer has no job id"));
  return id;
}

}  // namespace gpu_platform::shims
