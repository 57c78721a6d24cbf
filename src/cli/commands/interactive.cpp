#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/attach.h"
#include "cli/jobs/job_end.h"
#include "cli/jobs/port_forward.h"
#include "cli/text/job_text.h"
#include "cli/text/json_view.h"
#include "client/channel.h"
#include "client/exec_session.h"
#include "client/follow.h"

// Commands that enter a running job, or attach to it.

namespace gpu_platform::cli {

namespace {

// "[LOCAL:]REMOTE"; without LOCAL the same number, "0:" one that is free.
base::Result<PortForward> parse_ports(std::string_view text) {
  constexpr std::uint64_t kMaxPort = 65535;
  PortForward forward;
  const std::size_t colon = text.find(':');
  const std::string remote(colon == std::string_view::npos ? text : text.substr(colon + 1));
  TRY_ASSIGN(const std::uint64_t to, base::parse_count(remote, 1, kMaxPort));
  forward.remote = forward.local = static_cast<std::uint16_t>(to);
  if (colon == std::string_view::npos) return forward;
  TRY_ASSIGN(const std::uint64_t from,
             base::parse_count(std::string(text.substr(0, colon)), 0, kMaxPort));
  forward.local = static_cast<std::uint16_t>(from);
  return forward;
}

}  // namespace

int run_jobs_exec(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  const auto dashes = std::ranges::find(invocation.words, "--");
  const std::span<const std::string> command(dashes == invocation.words.end() ? dashes : dashes + 1,
                                             invocation.words.end());
  invocation.words = {invocation.words.begin(), dashes};
  std::vector<std::string> ids;
  bool wants_terminal = false;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 1, "the running job")
      .flag("-t,--pty", wants_terminal,
            "give the command a terminal, for a shell, an editor or a debugger");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (command.empty()) {
    return usage_error(console, "no command: write it after '--', as in -- nvidia-smi", text.name);
  }
  std::optional<model::TerminalSize> terminal;
  if (wants_terminal) {
    terminal = terminal_size(console.process_environment());
    if (!terminal) {
      return usage_error(console, "--pty: standard input is not a terminal; leave the option out",
                         text.name);
    }
  }
  boost::asio::io_context io;
  auto channel =
      client::Channel::open(io, *client, client::exec_target(ids.front(), command, terminal));
  if (!channel) return client::as_run(report(console, channel.error(), false));
  return stay_with_command(console, io, *std::move(channel), terminal.has_value());
}

int run_jobs_attach(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 1,
                  "a job started with 'run --pty' or 'run --stdin' that has not ended");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto job = client->ask<v1::Job>("/v1/jobs/" + base::percent_encoded(ids.front()), "a job");
  if (!job) return client::as_run(report(console, job.error(), false));
  if (client::is_ended(job->state())) {
    console.error(describe_end(*job));
    return kRunRefused;
  }
  if (!job->spec().takes_input()) {
    console.error(
        fmt::format("job {0} was submitted without terminal and input, so there is nothing to "
                    "attach to: 'jobs logs -f {0}' follows what it prints",
                    ids.front()));
    return kRunRefused;
  }
  AttachOptions options{ids.front(), std::nullopt, false};
  if (job->spec().terminal()) options.terminal = terminal_size(console.process_environment());
  return attach_to(console, *client, options);
}

int run_jobs_port_forward(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> words;
  Arguments arguments(text);
  arguments.words(
      "ID [LOCAL:]REMOTE", words, 2, 2,
      "the running job, and the port that its program listens on; LOCAL 0: any free one");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto forward = parse_ports(words[1]);
  if (!forward) {
    return usage_error(console, fmt::format("[LOCAL:]REMOTE: {}", forward.error().message),
                       text.name);
  }
  forward->job = words[0];
  const auto job = client->ask<v1::Job>("/v1/jobs/" + base::percent_encoded(words[0]), "a job");
  if (!job) return report(console, job.error(), false);
  if (job->state() != v1::JOB_STATE_RUNNING) {
    const std::string state = name_at(*job, v1::Job::kStateFieldNumber);
    console.error(fmt::format("job {} is {}: only a running job can be entered", words[0], state));
    return kRefused;
  }
  return forward_port(console, *client, *forward);
}

}  // namespace gpu_platform::cli
