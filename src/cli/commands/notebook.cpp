#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_end.h"
#include "cli/jobs/job_start.h"
#include "cli/jobs/port_forward.h"
#include "cli/words/job_options.h"
#include "client/follow.h"
#include "os/descriptor.h"

// `notebook`: a program with a web page in a job, and its page here, in one command.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kPlaceholder = "{port}";
constexpr const char* kPortOption = "--port";
constexpr std::uint16_t kUsualLocal = 8888;
// Ports of a node are those of all its jobs, so each notebook takes one by chance. They are below
// those that the kernel gives to connections.
constexpr std::uint16_t kFirstRemote = 20'000;
constexpr std::uint16_t kRemotePorts = 12'000;
constexpr base::Duration kBetweenTries = base::milliseconds(300);

// Empty without randomness.
std::string random_hex() {
  std::array<unsigned char, 24> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::uint16_t random_port() {
  std::uint16_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  return static_cast<std::uint16_t>(kFirstRemote + number % kRemotePorts);
}

struct Notebook {
  std::optional<std::uint16_t> local;
  std::uint16_t remote = 0;
  std::string token;  // empty: the program is the user's own
  std::string job;
};

// Takes --port out of the words, because `submit` gets the others as they are.
std::vector<std::string> without_port(std::span<const std::string> words) {
  std::vector<std::string> others;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == kPortOption) {
      if (word + 1 != words.end()) ++word;
    } else if (!word->starts_with(std::string(kPortOption) + "=")) {
      others.push_back(*word);
    }
  }
  return others;
}

std::vector<std::string> notebook_command(const Notebook& notebook,
                                          std::span<const std::string> own) {
  std::vector<std::string> command(own.begin(), own.end());
  if (command.empty()) {
    command = {"jupyter",        "lab",           "--no-browser",
               "--ip=127.0.0.1", "--port={port}", "--ServerApp.port_retries=0"};
  }
  const std::string port = fmt::format("{}", notebook.remote);
  for (std::string& word : command) {
    for (std::size_t at = word.find(kPlaceholder); at != std::string::npos;
         at = word.find(kPlaceholder, at)) {
      word.replace(at, kPlaceholder.size(), port);
    }
  }
  return command;
}

// Submits with `submit` itself, and reads the id that it prints. Otherwise the exit code.
std::expected<std::string, int> submit_with(const CommandText& text, Invocation& invocation,
                                            std::span<const std::string> words) {
  const os::Descriptor printed(::memfd_create("id", MFD_CLOEXEC));
  ProcessEnvironment process_environment = invocation.console.process_environment();
  process_environment.out_fd = printed.get();
  process_environment.width = 0;
  Console console(process_environment);
  Invocation submission{words, invocation.server, console};
  if (const int code = run_submit(text, submission); code != kOk) return std::unexpected(code);
  std::array<char, 64> id{};
  const ssize_t size = ::pread(printed.get(), id.data(), id.size(), 0);
  const std::string_view line(id.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(line.substr(0, line.find('\n')));
}

class NotebookSession {
 public:
  NotebookSession(Console& console, Client& client, Notebook notebook)
      : console_(console),
        client_(client),
        notebook_(std::move(notebook)),
        interrupts_(console, client, notebook_.job) {}

  int run() {
    const auto started = await_start(console_, client_, notebook_.job, interrupts_);
    if (!started) return client::as_run(report(console_, started.error(), false));
    console_.note(fmt::format("job {0} has started; its output: gpu-platform jobs logs -f {0}",
                              notebook_.job));
    const auto answers = await_answer();
    if (!answers) return client::as_run(report(console_, answers.error(), false));
    if (*answers) {
      PortForward forward{notebook_.job, notebook_.local.value_or(kUsualLocal), notebook_.remote};
      forward.or_any_local = !notebook_.local;
      const int code =
          forward_port(console_, client_, forward,
                       {.listening = [this](std::uint16_t local) { tell_address(local); },
                        .interrupt_fd = interrupts_.fd(),
                        .interrupted = [this] { return interrupts_.handle(); },
                        .is_over = [this] { return is_over(); }});
      if (code != kOk) return client::as_run(code);
    }
    if (has_left_) return kOk;
    return tell_end(console_,
                    wait_for_end(console_, client_, notebook_.job, std::nullopt, interrupts_));
  }

 private:
  // Whether the program came to listen; false: the job has ended before.
  Called<bool> await_answer() {
    while (true) {
      const auto answers = answers_on_port(client_, notebook_.job, notebook_.remote);
      if (answers && *answers) return true;
      const auto job =
          client_.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(notebook_.job), "a job");
      if (job && client::is_ended(job->state())) return false;
      if (!job && !job.error().is_passing()) return std::unexpected(job.error());
      // A running job that cannot be entered will not be entered later.
      const bool is_running = job && job->state() == v1::JOB_STATE_RUNNING;
      if (!answers && is_running && was_running_ && !answers.error().is_passing()) return answers;
      was_running_ = is_running;
      console_.process_environment().pause(kBetweenTries, interrupts_.fd());
      if (has_interrupt(interrupts_.fd()) && !interrupts_.handle()) {
        has_left_ = true;
        return false;
      }
    }
  }

  bool is_over() {
    const auto job =
        client_.ask<v1::Job>("/v1/jobs/" + base::percent_encoded(notebook_.job), "a job");
    return job ? client::is_ended(job->state()) : !job.error().is_passing();
  }

  void tell_address(std::uint16_t local) {
    console_.out(notebook_.token.empty()
                     ? fmt::format("http://127.0.0.1:{}/\n", local)
                     : fmt::format("http://127.0.0.1:{}/lab?token={}\n", local, notebook_.token));
    console_.note(
        fmt::format("port {} of job {}; Ctrl-C cancels the job", notebook_.remote, notebook_.job));
  }

  Console& console_;
  Client& client_;
  Notebook notebook_;
  client::Interrupts interrupts_;
  bool was_running_ = false;
  bool has_left_ = false;
};

}  // namespace

int run_notebook(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  const auto dashes = std::ranges::find(invocation.words, "--");
  const std::vector<std::string> options(invocation.words.begin(), dashes);
  const std::span<const std::string> own(dashes == invocation.words.end() ? dashes : dashes + 1,
                                         invocation.words.end());
  Notebook notebook;
  std::optional<std::string> port;
  JobOptions job(JobOptions::Of::kSubmission);
  Arguments arguments(text);
  job.define(arguments);
  arguments.option(kPortOption, port, "LOCAL",
                   "port on this machine (default: 8888, or a free one); the command finds its own "
                   "port in place of {port}");
  invocation.words = options;
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (port) {
    const auto number = base::parse_count(*port, 1, 65'535);
    if (!number) return usage_error(console, "--port: " + number.error().message, text.name);
    notebook.local = static_cast<std::uint16_t>(*number);
  }
  if (job.has("--array")) {
    return usage_error(console, "--array: a notebook is one job: leave the option out", text.name);
  }
  notebook.remote = random_port();
  std::vector<std::string> words = {"--kind", "interactive", "--name", "notebook"};
  if (own.empty()) {
    notebook.token = random_hex();
    // In the environment, which other users do not see, unlike a command line.
    words.insert(words.end(), {"--env", "JUPYTER_TOKEN=" + notebook.token});
  }
  const std::vector<std::string> given = without_port(options);
  words.insert(words.end(), given.begin(), given.end());
  words.emplace_back("--");
  const std::vector<std::string> command = notebook_command(notebook, own);
  words.insert(words.end(), command.begin(), command.end());
  auto id = submit_with(text, invocation, words);
  if (!id) return client::as_run(id.error());
  notebook.job = *std::move(id);
  return NotebookSession(console, *client, std::move(notebook)).run();
}

}  // namespace gpu_platform::cli
