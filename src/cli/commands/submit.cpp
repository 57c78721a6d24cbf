#include <algorithm>

#include <fmt/format.h>

#include "api/convert/json_writer.h"
#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/attach.h"
#include "cli/jobs/job_end.h"
#include "cli/jobs/job_progress.h"
#include "cli/jobs/job_start.h"
#include "cli/jobs/job_use.h"
#include "cli/submission/job_document.h"
#include "cli/submission/next_step.h"
#include "cli/submission/sending.h"
#include "cli/submission/text_file.h"
#include "cli/text/plan_text.h"
#include "client/follow.h"
#include "client/members.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kLargestDocument = std::size_t{1} << 20;
constexpr base::Duration kUsualWaitForGpus = base::minutes(5);

// The words before "--" are options, those after it the job's command, which may also begin at the
// first word that is no option.
class CommandWords {
 public:
  std::span<const std::string> split(std::span<const std::string> words) {
    const auto dashes = std::ranges::find(words, "--");
    after_options_.assign(dashes, words.end());
    return words.first(static_cast<std::size_t>(dashes - words.begin()));
  }

  // A "--" behind the beginning of the command is one of its arguments.
  void join(std::vector<std::string>& command) const {
    const bool is_separator = command.empty() && !after_options_.empty();
    command.insert(command.end(), after_options_.begin() + (is_separator ? 1 : 0),
                   after_options_.end());
  }

 private:
  std::vector<std::string> after_options_;  // "--" and what follows it
};

// What stands on the command line of these commands.
struct Asked {
  Submission submission;
  bool wait = false;
  Output output;
  bool wants_terminal = false;
  bool is_question = false;        // nothing is submitted: which command it is does not matter
  std::vector<std::string> files;  // of -f
  bool is_dry_run = false;
};

struct Prepared {
  Client client;
  std::vector<v1::JobSpec> specs;  // one, but with -f
};

// The job of the command line, whose script may have options of its own.
base::Result<std::vector<v1::JobSpec>> job_of_words(Console& console, Client& client,
                                                    Asked& asked) {
  std::vector<v1::JobSpec> specs(1);
  TRY(take_script(console, asked.submission.request, specs.front()));
  TRY(take_mail(console, client, asked.submission.request));
  return specs;
}

base::Result<std::vector<v1::JobSpec>> jobs_of_files(Console& console, const Asked& asked) {
  std::vector<v1::JobSpec> specs;
  for (const std::string& file : asked.files) {
    const std::string name = file == "-" ? "standard input" : file;
    const auto text = read_text_file(console.process_environment(), file, kLargestDocument);
    if (!text) return base::invalid("--file", fmt::format("'{}': {}", name, text.error().message));
    auto jobs = read_job_documents(*text);
    if (!jobs) {
      const std::string& place = jobs.error().field;
      return base::invalid(name + (place.empty() ? "" : ": " + place), jobs.error().message);
    }
    std::ranges::move(*jobs, std::back_inserter(specs));
  }
  if (specs.size() > 1 && asked.submission.request.options.has("--request-id")) {
    return base::invalid("--request-id", fmt::format("is for one job, and there are {}: give each "
                                                     "its own request_id in the file",
                                                     specs.size()));
  }
  return specs;
}

// The limit that follows from the time on the GPU, before anything is submitted.
void tell_time_limit(Console& console, const v1::JobSpec& spec) {
  if (!spec.has_time_limit_seconds()) return;
  const auto ms = static_cast<std::int64_t>(spec.time_limit_seconds() * 1000);
  console.note(fmt::format("the time limit that follows from the time on the GPU is {}",
                           base::written(base::milliseconds(ms))));
}

// The client and the jobs. Otherwise the exit code.
std::expected<Prepared, int> prepare(const CommandText& text, Invocation& invocation,
                                     Arguments& arguments, Asked& asked) {
  Console& console = invocation.console;
  JobRequest& request = asked.submission.request;
  CommandWords words;
  invocation.words = words.split(invocation.words);
  arguments.command("[--] COMMAND", request.command, "the job's program and its arguments");
  auto client = open_client(arguments, invocation);
  if (!client) return std::unexpected(client.error());
  words.join(request.command);
  if (request.command.empty() && asked.is_question) request.command = {"true"};
  if (!request.command.empty() && !asked.files.empty()) {
    return std::unexpected(usage_error(
        console, "--file: the job in it has a command: leave out the one after the options",
        text.name));
  }
  if (request.command.empty() && asked.files.empty()) {
    return std::unexpected(usage_error(
        console, "no command: write it after the options, as in -- python train.py", text.name));
  }
  if (asked.wants_terminal) {
    request.terminal = terminal_size(console.process_environment());
    if (!request.terminal.has_value()) {
      return std::unexpected(usage_error(
          console, "--pty: standard input is not a terminal; --stdin passes it on as it is",
          text.name));
    }
  }
  auto specs =
      asked.files.empty() ? job_of_words(console, *client, asked) : jobs_of_files(console, asked);
  if (!specs) return std::unexpected(tell_mistake(console, specs.error(), text));
  for (v1::JobSpec& spec : *specs) {
    const bool has_gpu_time = spec.has_gpu_time_seconds() || request.options.has("--gpu-time");
    const auto done = complete(console, *client, asked.submission, spec);
    if (!done) return std::unexpected(tell_mistake(console, done.error(), text));
    if (has_gpu_time && (asked.is_dry_run || asked.is_question)) tell_time_limit(console, spec);
  }
  return Prepared{*std::move(client), *std::move(specs)};
}

// The daemon's last answer: when such a job would start, or after so long.
Called<std::string> wait_for_start(Console& console, Client& client, const v1::JobSpec& spec,
                                   base::Duration at_most) {
  const auto& steady = console.process_environment().steady;
  const base::Instant began = steady();
  BackOff back_off(console, client::kRetryTimeout);
  while (true) {
    const base::Duration left = std::max(at_most - (steady() - began), base::Duration());
    const base::Duration wait = std::min(left, client::kOneWait);
    auto answer = client.post_slow("/v1/check", check_body(spec, wait), wait, -1);
    if (answer) {
      back_off.reset();
      const auto result = client::message_of<v1::CheckResult>(*answer);
      const bool is_settled = !result || result->starts_now() || result->never();
      if (is_settled || left <= client::kOneWait) return answer;
    } else if (!answer.error().is_passing() || !back_off.wait(answer.error(), -1)) {
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
    const auto ended = wait_for_end(console, client, member, std::nullopt, none,
                                    progress_teller(console, output.is_document()));
    if (!ended) return client::as_run(report(console, ended.error(), output.wants_documents()));
    if (output.is_document()) print_next_document(console, output, (*ended)->document);
    if ((*ended)->job.state() != v1::JOB_STATE_COMPLETED) result = kFailure;
  }
  return result;
}

// Prints it; the exit code is `otherwise` for a job that would start some time.
int tell_answer(Console& console, const Called<std::string>& answer, const Asked& asked,
                int otherwise) {
  const Output& output = asked.output;
  if (!answer) {
    return report(console, with_option_name(answer.error(), &asked.submission.request.options),
                  output.wants_documents());
  }
  const auto result = client::message_of<v1::CheckResult>(*answer);
  if (output.is_document() || !result) {
    print_document(console, output, *answer);
  } else {
    console.out(check_page(*result, output.page_style(console)));
  }
  if (console.out_failed()) return kFailure;
  if (result && result->starts_now()) return kOk;
  return result && result->never() ? static_cast<int>(kRefused) : otherwise;
}

}  // namespace

namespace {

// What would be sent; the daemon never shows the environment, and neither does this.
int print_spec(Console& console, v1::JobSpec spec, const Asked& asked, bool is_one) {
  spec.clear_environment();
  spec.clear_request_id();
  std::string document;
  api::append_request_json(document, spec);
  return is_one ? print_document(console, asked.output, document)
                : print_next_document(console, asked.output, document);
}

// Asks the daemon about each job; 0 if it would accept all of them.
int dry_run(Console& console, Prepared& prepared, const Asked& asked) {
  int result = kOk;
  for (const v1::JobSpec& spec : prepared.specs) {
    const auto answer = prepared.client.post("/v1/check", check_body(spec, {}));
    const auto told = answer ? client::message_of<v1::CheckResult>(*answer) : std::nullopt;
    int code = kOk;
    if (answer && asked.output.is_document() && !(told && told->never())) {
      code = print_spec(console, spec, asked, prepared.specs.size() == 1);
    } else {
      Asked as_text;
      as_text.output.format = answer ? Output::Format::kTable : asked.output.format;
      code = tell_answer(console, answer, as_text, kOk);
    }
    if (result == kOk) result = code;
  }
  return result;
}

int wait_for_submitted(Console& console, Client& client, const std::string& id, bool is_array,
                       const Output& output) {
  if (is_array) return wait_for_array(console, client, id, output);
  client::Interrupts none;
  auto ended = wait_for_end(console, client, id, std::nullopt, none,
                            progress_teller(console, output.is_document()));
  if (ended && output.is_document()) print_document(console, output, (*ended)->document);
  return tell_end(console, ended);
}

}  // namespace

int run_submit(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Asked asked;
  Arguments arguments(text);
  define(arguments, asked.submission);
  arguments
      .many("-f,--file", asked.files, "FILE",
            "submit the jobs of YAML or JSON documents, as 'jobs describe -o yaml' prints them, "
            "instead of a command; - is standard input")
      .flag(
          "--dry-run", asked.is_dry_run,
          "submit nothing: report whether the daemon would accept the job, or with -o yaml or json "
          "print what would be sent")
      .flag("--wait", asked.wait, "wait for the end and exit as 'run' does")
      .output(asked.output, {"", "id"}, kFormatOption);
  const auto as_exit = [&](int code) { return asked.wait ? client::as_run(code) : code; };
  auto prepared = prepare(text, invocation, arguments, asked);
  if (!prepared) return as_exit(prepared.error());
  if (asked.is_dry_run) return dry_run(console, *prepared, asked);
  Client& client = prepared->client;
  const Output& output = asked.output;
  std::vector<std::string> ids;
  for (const v1::JobSpec& spec : prepared->specs) {
    const auto submitted = send(console, client, asked.submission, spec, output.wants_documents());
    if (!submitted) return as_exit(submitted.error());
    ids.push_back(submitted->id);
    if (!output.is_document()) {
      tell_submitted(console, client, submitted->id);
    } else if (!asked.wait) {
      prepared->specs.size() == 1 ? print_document(console, output, submitted->document)
                                  : print_next_document(console, output, submitted->document);
    }
    if (console.out_failed()) return kFailure;
  }
  int result = kOk;
  for (std::size_t i = 0; asked.wait && i < ids.size(); ++i) {
    const bool is_array = prepared->specs[i].has_array();
    const int code = wait_for_submitted(console, client, ids[i], is_array, output);
    if (result == kOk) result = code;
  }
  return result;
}

int run_run(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Asked asked;
  JobRequest& request = asked.submission.request;
  Arguments arguments(text);
  define(arguments, asked.submission);
  arguments.flag("--pty", asked.wants_terminal, "with a terminal: a shell, an editor, a debugger")
      .flag("-i,--stdin", request.takes_input, "standard input goes to the job (else it has none)");
  auto prepared = prepare(text, invocation, arguments, asked);
  if (!prepared) return client::as_run(prepared.error());
  Client& client = prepared->client;
  const auto submitted = send(console, client, asked.submission, prepared->specs.front(), false);
  if (!submitted) return client::as_run(submitted.error());
  const std::string& id = submitted->id;
  if (prepared->specs.front().has_array()) {
    console.note(fmt::format("array {}", id));
    return wait_for_array(console, client, id, {});
  }
  std::string note = fmt::format("job {}", id);
  if (is_told_next_step(console.process_environment())) {
    if (const std::string next = next_step_of(console, client, id); !next.empty()) {
      note += "; " + next;
    }
  }
  console.note(note);
  if (request.terminal.has_value()) {
    return attach_to(console, client, {id, request.terminal, true});
  }
  if (request.takes_input) return run_with_input(console, client, id);
  client::Interrupts interrupts(console, client, id);
  if (console.shows_progress()) {
    const auto started = await_start(console, client, id, interrupts);
    if (!started) return client::as_run(report(console, started.error(), false));
  }
  const auto failure =
      follow_output(console, client, id, {client::OutputPlace::kNone, 0, false, true}, interrupts);
  if (failure && !tell_of_unshown_output(console, *failure)) {
    return client::as_run(report(console, *failure, false));
  }
  const int code = tell_end(console, wait_for_end(console, client, id, std::nullopt, interrupts));
  if (prepared->specs.front().monitor()) tell_use(console, client, id);
  return code;
}

int run_check(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Asked asked;
  asked.is_question = true;
  Arguments arguments(text);
  define(arguments, asked.submission);
  arguments.output(asked.output, {}, kFormatOption);
  auto prepared = prepare(text, invocation, arguments, asked);
  if (!prepared) return prepared.error();
  const auto answer = prepared->client.post("/v1/check", check_body(prepared->specs.front(), {}));
  return tell_answer(console, answer, asked, kRefused);
}

int run_jobs_wait_gpus(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Asked asked;
  asked.is_question = true;
  std::optional<std::string> timeout;
  Arguments arguments(text);
  define(arguments, asked.submission);
  arguments
      .option("--timeout", timeout, "DURATION", "give up after this (exit code 124; default: 5m)")
      .output(asked.output, {}, kFormatOption);
  auto prepared = prepare(text, invocation, arguments, asked);
  if (!prepared) return prepared.error();
  base::Duration at_most = kUsualWaitForGpus;
  if (timeout.has_value()) {
    const auto duration = base::parse_duration(*timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    at_most = *duration;
  }
  const auto answer = wait_for_start(console, prepared->client, prepared->specs.front(), at_most);
  return tell_answer(console, answer, asked, kTimedOut);
}

}  // namespace gpu_platform::cli
