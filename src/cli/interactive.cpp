#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/attach.h"
#include "cli/channel.h"
#include "cli/commands.h"
#include "cli/exec_session.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/port_forward.h"

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
  auto channel = Channel::open(io, *client, exec_target(ids.front(), command, terminal));
  if (!channel) return as_run(report(console, channel.error(), false));
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
  const auto body = client->get("/v1/jobs/" + base::percent_encoded(ids.front()));
  if (!body) return as_run(report(console, body.error(), false));
  const Json job = parse_object(*body).value_or(Json());
  if (is_ended_state(text_at(job, "state"))) {
    console.error(describe_end(job));
    return kRunRefused;
  }
  if (!flag_at(spec_of(job), "takes_input")) {
    console.error(
        fmt::format("job {0} was submitted without terminal and input, so there is nothing to "
                    "attach to: 'jobs logs -f {0}' follows what it prints",
                    ids.front()));
    return kRunRefused;
  }
  AttachOptions options{ids.front(), std::nullopt, false};
  if (flag_at(spec_of(job), "terminal"))
    options.terminal = terminal_size(console.process_environment());
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
  const auto job = client->get("/v1/jobs/" + base::percent_encoded(words[0]));
  if (!job) return report(console, job.error(), false);
  const std::string state = text_at(parse_object(*job).value_or(Json()), "state");
  if (state != "RUNNING") {
    console.error(fmt::format("job {} is {}: only a running job can be entered", words[0], state));
    return kRefused;
  }
  return forward_port(console, *client, *forward);
}

}  // namespace gpu_platform::cli
