#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/result.h"
#include "cli/attach.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/job_end.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/plan_text.h"
#include "client/follow.h"
#include "client/members.h"
#include "client/submission.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uint64_t kMaxTasks = 1'048'576;
constexpr base::Duration kUsualWaitForGpus = base::minutes(5);

struct SubmitOptions {
  JobOptions job{JobOptions::Of::kSubmission};
  std::vector<std::string> command;
  std::vector<std::string> after_options;  // "--" and what follows it
  std::optional<model::TerminalSize> terminal;
  bool takes_input = false;
};

// The words before "--" are options, those after it the job's command, which may also begin at the
// first word that is no option.
std::span<const std::string> split_command(std::span<const std::string> words, SubmitOptions& o) {
  const auto dashes = std::ranges::find(words, "--");
  o.after_options.assign(dashes, words.end());
  return words.first(static_cast<std::size_t>(dashes - words.begin()));
}

// A "--" behind the beginning of the command is one of its arguments.
void join_command(SubmitOptions& o) {
  const bool is_separator = o.command.empty() && !o.after_options.empty();
  o.command.insert(o.command.end(), o.after_options.begin() + (is_separator ? 1 : 0),
                   o.after_options.end());
}

// --gpus is what the job has on all nodes, the specification's "gpus" what it has on each.
base::Status put_gpus(Json& spec, const JobOptions& job) {
  TRY(put_gpu_types(spec, job.texts("--gpu-type")));
  TRY(put_gpu_count(spec, job, spec.value("nodes", std::uint64_t{1})));
  // A type or a memory size without a number asks for one such GPU.
  if (!spec.contains("gpus") && (job.has("--gpu-type") || job.has("--gpu-memory"))) {
    spec["gpus"] = 1;
  }
  return {};
}

// --cpus counts for each of the tasks, and the specification's "cpus" for each node. A job with
// GPUs that asks for no CPUs keeps its share of the node.
base::Status put_tasks(Json& spec, const JobOptions& job) {
  const std::optional<std::string>& text = job.text("--ntasks");
  if (!text.has_value()) return {};
  const auto tasks = base::parse_count(*text, 1, kMaxTasks);
  if (!tasks) return base::invalid("--ntasks", tasks.error().message);
  const std::uint64_t nodes = spec.value("nodes", std::uint64_t{1});
  if (*tasks % nodes != 0) {
    return base::invalid("--ntasks",
                         fmt::format("{} tasks cannot be divided among {} nodes", *tasks, nodes));
  }
  const bool has_gpus = spec.value("gpus", std::uint64_t{0}) > 0;
  if (has_gpus && !spec.contains("cpus")) return {};
  const std::uint64_t cpus = spec.value("cpus", std::uint64_t{1});
  if (cpus > kMaxTasks) return {};  // refused in any case
  spec["cpus"] = *tasks / nodes * cpus;
  return {};
}

void put_streams(Json& spec, const SubmitOptions& o) {
  if (o.takes_input) spec["takes_input"] = true;
  if (!o.terminal.has_value()) return;
  spec["terminal"] = true;
  spec["columns"] = o.terminal->columns;
  spec["rows"] = o.terminal->rows;
  if (!spec.contains("kind")) spec["kind"] = "INTERACTIVE";
}

base::Status put_directory(Json& spec, const std::optional<std::string>& workdir,
                           const ProcessEnvironment& process_environment) {
  if (workdir.has_value() && workdir->starts_with('/')) {
    spec["workdir"] = *workdir;
    return {};
  }
  if (process_environment.directory.empty()) {
    return base::invalid("--workdir", "the current directory cannot be found; name one");
  }
  spec["workdir"] =
      process_environment.directory + (workdir.has_value() ? "/" + *workdir : std::string());
  return {};
}

// The environment of the caller; for a container only what was asked for of it, because the paths
// of this machine mean nothing in an image.
base::Status put_environment(Console& console, Json& spec, const JobOptions& job) {
  constexpr const char* kFromHost = "--container-env-from-host";
  const bool has_image = job.has("--image");
  if (!has_image && job.has(kFromHost)) {
    return base::invalid(kFromHost, "is for a job with --image");
  }
  Json environment = environment_of(console);
  if (has_image) {
    Json chosen = Json::object();
    for (const std::string& name : words_of_lists(job.texts(kFromHost))) {
      if (environment.contains(name)) chosen[name] = environment[name];
    }
    environment = std::move(chosen);
  }
  spec["environment"] = std::move(environment);
  return put_pairs(spec["environment"], job.texts("--env"), "--env");
}

// The specification, which is the request's body.
base::Result<Json> request_body(Console& console, const SubmitOptions& o) {
  const ProcessEnvironment& process_environment = console.process_environment();
  for (const std::string& word : o.command) TRY(check_text("command", word));
  Json spec;
  spec["command"] = o.command;
  std::vector<std::string> none_cleared;
  TRY(o.job.put(spec, none_cleared, process_environment.now()));
  TRY(put_gpus(spec, o.job));
  TRY(put_tasks(spec, o.job));
  put_streams(spec, o);
  TRY(put_directory(spec, o.job.text("--workdir"), process_environment));
  spec["umask"] = process_environment.umask;
  TRY(put_environment(console, spec, o.job));
  if (!spec.contains("request_id")) {
    if (const std::string key = client::random_request_id(); !key.empty()) spec["request_id"] = key;
  }
  return spec;
}

struct Submission {
  SubmitOptions options;
  bool wait = false;
  Output output;
  bool wants_terminal = false;
  bool is_question = false;  // nothing is submitted: which command it is does not matter
};

struct Prepared {
  Client client;
  Json body;
};

struct Submitted {
  Client client;
  std::string id;
  std::string document;
};

// The client and the request's body. Otherwise the exit code.
std::expected<Prepared, int> prepare(const CommandText& text, Invocation& invocation,
                                     Arguments& arguments, Submission& s) {
  Console& console = invocation.console;
  invocation.words = split_command(invocation.words, s.options);
  arguments.command("[--] COMMAND", s.options.command, "the job's program and its arguments");
  auto client = open_client(arguments, invocation);
  if (!client) return std::unexpected(client.error());
  join_command(s.options);
  if (s.options.command.empty() && s.is_question) s.options.command = {"true"};
  if (s.options.command.empty()) {
    return std::unexpected(usage_error(
        console, "no command: write it after the options, as in -- python train.py", text.name));
  }
  if (s.wants_terminal) {
    s.options.terminal = terminal_size(console.process_environment());
    if (!s.options.terminal.has_value()) {
      return std::unexpected(usage_error(
          console, "--pty: standard input is not a terminal; --stdin passes it on as it is",
          text.name));
    }
  }
  auto body = request_body(console, s.options);
  if (!body) {
    return std::unexpected(usage_error(
        console, fmt::format("{}: {}", body.error().field, body.error().message), text.name));
  }
  return Prepared{*std::move(client), *std::move(body)};
}

// Everything up to the acknowledgement. Otherwise the exit code.
std::expected<Submitted, int> submit_from(const CommandText& text, Invocation& invocation,
                                          Arguments& arguments, Submission& s) {
  Console& console = invocation.console;
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return std::unexpected(prepared.error());
  if (!prepared->body.contains("gpus")) {
    console.warning(
        "nothing asks for a GPU: this is a CPU job (--gpus N asks for GPUs, --gpus 0 "
        "silences this)");
  }
  auto answer = submit_job(console, prepared->client, prepared->body);
  if (!answer) {
    return std::unexpected(
        report(console, with_option_name(std::move(answer).error()), s.output.wants_documents()));
  }
  const std::string id = client::message_of<v1::Job>(*answer).value_or(v1::Job()).id();
  if (id.empty()) {
    console.error("the daemon's answer has no job id");
    return std::unexpected(kFailure);
  }
  return Submitted{std::move(prepared->client), id, std::move(*answer)};
}

// What a question asks: the environment does not matter, and stays here.
Json question(Json spec, base::Duration timeout) {
  spec.erase("environment");
  spec.erase("request_id");
  return {{"spec", std::move(spec)},
          {"timeout_seconds", static_cast<double>(base::whole_milliseconds(timeout)) / 1000}};
}

// The daemon's last answer: when such a job would start, or after so long.
Called<std::string> wait_for_start(Console& console, Client& client, const Json& job,
                                   base::Duration at_most) {
  const auto& steady = console.process_environment().steady;
  const base::Instant began = steady();
  Patience patience(console, client::kMaxPatience);
  while (true) {
    const base::Duration left = std::max(at_most - (steady() - began), base::Duration());
    const base::Duration wait = std::min(left, client::kOneWait);
    auto answer = client.post_slow("/v1/check", json_text(question(job, wait)), wait, -1);
    if (answer) {
      patience.reset();
      const auto result = client::message_of<v1::CheckResult>(*answer);
      const bool is_settled = !result || result->starts_now() || result->never();
      if (is_settled || left <= client::kOneWait) return answer;
    } else if (!answer.error().is_passing() || !patience.wait(answer.error(), -1)) {
      return answer;
    }
  }
}

// 0 when all of its members ended COMPLETED.
int wait_for_array(Console& console, Client& client, const std::string& id, const Output& output) {
  const auto members = client::members_of(client, id);
  if (!members) return client::as_run(report(console, members.error(), output.wants_documents()));
  int result = kOk;
  client::Interrupts none;
  for (const std::string& member : *members) {
    const auto ended = wait_for_end(console, client, member, std::nullopt, none);
    if (!ended) return client::as_run(report(console, ended.error(), output.wants_documents()));
    if (output.is_document()) print_next_document(console, output, (*ended)->document);
    if ((*ended)->job.state() != v1::JOB_STATE_COMPLETED) result = kFailure;
  }
  return result;
}

// Prints it; the exit code is `otherwise` for a job that would start some time.
int tell_answer(Console& console, const Called<std::string>& answer, const Output& output,
                int otherwise) {
  if (!answer) return report(console, with_option_name(answer.error()), output.wants_documents());
  const auto result = client::message_of<v1::CheckResult>(*answer);
  if (output.is_document() || !result) {
    print_document(console, output, *answer);
  } else {
    console.out(check_page(*result, console.process_environment().now()));
  }
  if (console.out_failed()) return kFailure;
  if (result && result->starts_now()) return kOk;
  return result && result->never() ? static_cast<int>(kRefused) : otherwise;
}

}  // namespace

int run_submit(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  Arguments arguments(text);
  s.options.job.define(arguments);
  arguments.flag("--wait", s.wait, "wait for the end and exit as 'run' does")
      .output(s.output, {"", "id"}, kFormatOption);
  auto submitted = submit_from(text, invocation, arguments, s);
  if (!submitted) return s.wait ? client::as_run(submitted.error()) : submitted.error();
  if (!s.output.is_document()) {
    console.out(submitted->id + "\n");
  } else if (!s.wait) {
    print_document(console, s.output, submitted->document);
  }
  if (console.out_failed()) return kFailure;
  if (!s.wait) return kOk;
  if (s.options.job.has("--array")) {
    return wait_for_array(console, submitted->client, submitted->id, s.output);
  }
  client::Interrupts none;
  auto ended = wait_for_end(console, submitted->client, submitted->id, std::nullopt, none);
  if (ended && s.output.is_document()) print_document(console, s.output, (*ended)->document);
  return tell_end(console, ended);
}

int run_run(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  Arguments arguments(text);
  s.options.job.define(arguments);
  arguments.flag("--pty", s.wants_terminal, "with a terminal: a shell, an editor, a debugger")
      .flag("-i,--stdin", s.options.takes_input,
            "standard input goes to the job (else it has none)");
  auto submitted = submit_from(text, invocation, arguments, s);
  if (!submitted) return client::as_run(submitted.error());
  if (s.options.job.has("--array")) {
    console.note(fmt::format("array {}", submitted->id));
    return wait_for_array(console, submitted->client, submitted->id, {});
  }
  console.note(fmt::format("job {}", submitted->id));
  if (s.options.terminal.has_value()) {
    return attach_to(console, submitted->client, {submitted->id, s.options.terminal, true});
  }
  if (s.options.takes_input) return run_with_input(console, submitted->client, submitted->id);
  client::Interrupts interrupts(console, submitted->client, submitted->id);
  const auto failure = follow_output(console, submitted->client, submitted->id,
                                     {client::OutputPlace::kNone, 0, false, true}, interrupts);
  if (failure && !tell_of_unshown_output(console, *failure)) {
    return client::as_run(report(console, *failure, false));
  }
  return tell_end(
      console, wait_for_end(console, submitted->client, submitted->id, std::nullopt, interrupts));
}

int run_check(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  s.is_question = true;
  Arguments arguments(text);
  s.options.job.define(arguments);
  arguments.output(s.output, {}, kFormatOption);
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return prepared.error();
  const Json asked = question(std::move(prepared->body), {});
  const auto answer = prepared->client.post("/v1/check", json_text(asked));
  return tell_answer(console, answer, s.output, kRefused);
}

int run_jobs_wait_gpus(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  s.is_question = true;
  std::optional<std::string> timeout;
  Arguments arguments(text);
  s.options.job.define(arguments);
  arguments
      .option("--timeout", timeout, "DURATION", "give up after this (exit code 124; default: 5m)")
      .output(s.output, {}, kFormatOption);
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return prepared.error();
  base::Duration at_most = kUsualWaitForGpus;
  if (timeout.has_value()) {
    const auto duration = base::parse_duration(*timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    at_most = *duration;
  }
  const auto answer = wait_for_start(console, prepared->client, prepared->body, at_most);
  return tell_answer(console, answer, s.output, kTimedOut);
}

}  // namespace gpu_platform::cli
