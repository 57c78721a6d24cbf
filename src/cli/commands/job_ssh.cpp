#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>

#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "client/channel.h"
#include "client/exec_session.h"
#include "client/session.h"
#include "gpu_platform/v1/jobs.pb.h"

// `jobs ssh-proxy` and `jobs ssh-config`: SSH into a running job, for editors that know nothing
// else. The server is an sshd that runs in the job, as its user, for one connection; it has no
// port.

namespace gpu_platform::cli {

namespace {

// A key longer than this is none.
constexpr std::size_t kMaxKey = 16 * 1024;

// Runs in the job; $1 is the public key that may come in. The host key lives as long as the
// connection: the daemon vouches for the way, not SSH. sshd starts shells with an environment of
// its own, so that of the job is given to it, without what a login sets itself.
constexpr const char* kServerScript = R"sh(set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin
sshd=$(command -v sshd) && command -v ssh-keygen >/dev/null || {
  echo "there is no sshd where the job runs: install openssh-server there, or in the job's image" >&2
  exit 127
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 129' HUP INT TERM
ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
printf '%s\n' "$1" > "$folder/keys"
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
{
  printf '%s\n' "HostKey $folder/host" "AuthorizedKeysFile $folder/keys" 'PidFile none' 'UsePAM no' \
    'StrictModes no' 'PasswordAuthentication no' 'LogLevel ERROR' 'Subsystem sftp internal-sftp'
  printf 'SetEnv GPU_PLATFORM_SSH=1'
  env | grep -E '^[A-Za-z_][A-Za-z0-9_]*=[^"\\]*$' |
    grep -vE '^(HOME|LOGNAME|OLDPWD|PWD|SHELL|SHLVL|TERM|USER|_)=' |
    while IFS= read -r line; do printf ' "%s"' "$line"; done
  echo
} > "$folder/config"
"$sshd" -i -e -f "$folder/config"
)sh";

std::string home_of(const ProcessEnvironment& process_environment) {
  return client::variable(process_environment, "HOME").value_or("");
}

// The first line of the file, or nothing.
std::optional<std::string> public_key_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty() || line.size() > kMaxKey) return std::nullopt;
  return line;
}

// Of the named file, or the first that people usually have.
base::Result<std::string> public_key(const ProcessEnvironment& process_environment,
                                     const std::optional<std::string>& named) {
  if (named) {
    if (named->ends_with(".pub")) {
      if (auto key = public_key_in(*named)) return *key;
    } else if (auto key = public_key_in(*named + ".pub")) {
      return *key;
    }
    return base::invalid("--identity", fmt::format("'{}' is not a public key: name the file that "
                                                   "ssh-keygen made, as in ~/.ssh/id_ed25519.pub",
                                                   *named));
  }
  const std::string folder = home_of(process_environment) + "/.ssh/";
  for (const char* name : {"id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"}) {
    if (auto key = public_key_in(folder + name)) return *key;
  }
  return base::invalid("--identity", fmt::format("there is no public key in {}: make one with "
                                                 "'ssh-keygen -t ed25519', or name one",
                                                 folder));
}

constexpr const char* kIdentityHelp =
    "public key that may log in (default: the first of ~/.ssh/id_ed25519.pub, id_ecdsa.pub and "
    "id_rsa.pub)";

// "'x'" as a word of the command in an ssh configuration, which a shell reads.
std::string proxy_word(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c == '%') {
      quoted += "%%";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

int run_jobs_ssh_proxy(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  std::optional<std::string> identity;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 1, "the running job")
      .option("--identity", identity, "FILE", kIdentityHelp);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto key = public_key(console.process_environment(), identity);
  if (!key) {
    return usage_error(console, fmt::format("{}: {}", key.error().field, key.error().message),
                       text.name);
  }
  const std::vector<std::string> command = {"/bin/sh", "-c", kServerScript, "sh", *key};
  boost::asio::io_context io;
  auto channel =
      client::Channel::open(io, *client, client::exec_target(ids.front(), command, std::nullopt));
  if (!channel) return client::as_run(report(console, channel.error(), false));
  return stay_with_command(console, io, *std::move(channel), false);
}

int run_jobs_ssh_config(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  std::optional<std::string> identity;
  Arguments arguments(text);
  client::ServerChoice choice;
  arguments.words("ID", ids, 1, 1, "the running job")
      .option("--identity", identity, "FILE", kIdentityHelp);
  add_server_options(arguments, choice);
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  if (!choice.server) choice.server = invocation.server;
  auto client = client_for(choice, console);
  if (!client) return client.error();
  const auto job = client->ask<v1::Job>("/v1/jobs/" + base::percent_encoded(ids.front()), "a job");
  if (!job) return report(console, job.error(), false);
  std::string proxy = "gpu-platform";
  if (choice.server) proxy += " --server " + proxy_word(*choice.server);
  proxy += fmt::format(" jobs ssh-proxy {}", proxy_word(ids.front()));
  if (identity) proxy += " --identity " + proxy_word(*identity);
  console.out(
      fmt::format("Host gpu-job-{}\n"
                  "  User {}\n"
                  "  ProxyCommand {}\n"
                  "  # The host key is new with each connection; the way to it is the daemon's.\n"
                  "  StrictHostKeyChecking no\n"
                  "  UserKnownHostsFile /dev/null\n"
                  "  LogLevel ERROR\n",
                  ids.front(), job->spec().user(), proxy));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
