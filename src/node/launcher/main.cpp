#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "model/user_range.h"
#include "node/launcher/launcher.h"
#include "node/local_user.h"
#include "node/ranks/ranks.h"
#include "os/small_file.h"

// gpu-platform-node: the node part as one small static program. It starts as the launcher;
// supervisors are forked from it and never execute another program of ours.

namespace {

using gpu_platform::model::max_uid_in;
using gpu_platform::node::find_local_user;
using gpu_platform::node::LauncherOptions;
using gpu_platform::node::SiteHooks;
using gpu_platform::os::read_small_file;

constexpr int kUsage = 2;
constexpr std::string_view kHelp =
    "usage: gpu-platform-node launcher --root DIR (--socket-fd N | --listen PATH)\n"
    "                                  [--client-uid N] [--client-gid N] [--client-user NAME]\n"
    "                                  [--jobs-scope SCOPE] [--root-jobs allow|refuse]\n"
    "                                  [--min-uid N] [--max-uid N] [--mode-setting allow|refuse]\n"
    "                                  [--seccomp default|off] [--containers RULES]\n"
    "                                  [--containers-patience TIME] [--driver RULES]\n"
    "                                  [--prolog FILE] [--prolog-timeout TIME]\n"
    "                                  [--epilog FILE] [--epilog-timeout TIME]\n"
    "       gpu-platform-node ranks GRACE_MS VARIABLES... -- COMMAND...\n"
    "launcher: starts jobs for gpu-platform serve, which runs it, or for a serve that runs as\n"
    "  another user and connects to PATH; NAME is a user of /etc/passwd, for both numbers.\n"
    "  DIR is its own folder, for files that it must trust: as root every folder of its "
    "path\n"
    "  belongs to root. Jobs run as users from uid --min-uid (default: 1000) to --max-uid\n"
    "  (default: UID_MAX of /etc/login.defs, else 60000), which it looks up itself, never as\n"
    "  NAME, 65534 or 65535; as root only with --root-jobs allow. --mode-setting allow: jobs with\n"
    "  GPUs may open /dev/nvidia-modeset.\n"
    "  FILE: the site's program, run as the launcher's user before and after each attempt: an\n"
    "  absolute path, owned by root and writable by no other user. TIME: 90s, 5m, 1h (default: "
    "5m).\n"
    "  SCOPE: the name of the systemd scope in which jobs' cgroups are made: lower-case letters,\n"
    "  digits and '-'. Without it root's launcher asks for a scope if that adds guards.\n"
    "  --seccomp off: jobs may make every system call that their rights allow; default: some of\n"
    "  them are refused to all jobs.\n"
    "  RULES: a file with the rules for jobs with an image, owned like FILE (docs/containers.md).\n"
    "  After --containers-patience (default: 90s) the process that calls the container engine\n"
    "  for a job that is killed is itself killed, if it has not ended by then.\n"
    "  --driver RULES: a file, owned like FILE, with what the daemon may have done to GPUs, a "
    "line\n"
    "  each: allow reset, allow check, allow power (docs/isolation.md). Without it root's "
    "launcher\n"
    "  that listens at PATH resets nothing.\n"
    "ranks: starts the processes of a job that has several, within it.\n"
    "Do not run either by hand; gpu-platform-launcher.service runs the first.\n";

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "90s", "5m", "1h" or seconds; more than nothing, at most a day.
bool parse_time(std::string_view text, std::uint64_t& ms) {
  constexpr std::uint64_t kDay = 86'400;
  std::uint64_t unit = 1;
  if (text.ends_with('m')) unit = 60;
  if (text.ends_with('h')) unit = 3600;
  if (text.ends_with('s') || unit != 1) text.remove_suffix(1);
  std::uint64_t count = 0;
  if (!parse_number(text, count) || count == 0 || count > kDay / unit) return false;
  ms = count * unit * 1000;
  return true;
}

bool parse_hook(std::string_view name, std::string_view value, SiteHooks& hooks) {
  if (name == "--prolog" || name == "--epilog") {
    (name == "--prolog" ? hooks.prolog : hooks.epilog) = value;
    return value.starts_with('/');
  }
  if (name == "--prolog-timeout") return parse_time(value, hooks.prolog_timeout_ms);
  return name == "--epilog-timeout" && parse_time(value, hooks.epilog_timeout_ms);
}

bool is_scope_name(std::string_view text) {
  constexpr std::size_t kMaxLength = 100;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLength && !text.starts_with('-') &&
         std::ranges::all_of(text, is_allowed);
}

bool parse_option(std::string_view name, std::string_view value, LauncherOptions& options) {
  if (name == "--root") {
    options.root = value;
    return value.starts_with('/');
  }
  if (name == "--jobs-scope") {
    options.jobs_scope = value;
    return is_scope_name(value);
  }
  if (name == "--root-jobs") {
    options.identities.allow_root = value == "allow";
    return value == "allow" || value == "refuse";
  }
  if (name == "--seccomp") {
    options.filter_syscalls = value == "default";
    return value == "default" || value == "off";
  }
  if (name == "--containers") {
    options.containers = value;
    return value.starts_with('/');
  }
  if (name == "--driver") {
    options.driver_rules = value;
    return value.starts_with('/');
  }
  if (name == "--containers-patience") return parse_time(value, options.container_timeout_ms);
  if (name == "--mode-setting") {
    options.mode_setting = value == "allow";
    return value == "allow" || value == "refuse";
  }
  if (name == "--min-uid") {
    auto& least = options.identities.users.min_uid;
    return parse_number(value, least) && least > 0;
  }
  if (name == "--max-uid") return parse_number(value, options.identities.users.max_uid);
  if (name == "--client-user") {
    const auto user = find_local_user(read_small_file(AT_FDCWD, "/etc/passwd"), value);
    if (!user) return false;
    options.client_uid = user->uid;
    options.client_gid = user->gid;
    return true;
  }
  if (name == "--listen") {
    options.listen_path = value;
    return value.starts_with('/');
  }
  if (name == "--socket-fd") return parse_number(value, options.socket_fd) && options.socket_fd > 2;
  if (name == "--client-uid") return parse_number(value, options.client_uid);
  if (name == "--client-gid") {
    return parse_number(value, options.client_gid) && options.client_gid >= 0;
  }
  return parse_hook(name, value, options.hooks);
}

std::optional<LauncherOptions> parse(int argc, char** argv) {
  LauncherOptions options;
  auto& users = options.identities.users;
  users.max_uid = max_uid_in(read_small_file(AT_FDCWD, "/etc/login.defs")).value_or(users.max_uid);
  if (argc < 2 || std::string_view(argv[1]) != "launcher" || argc % 2 != 0) return std::nullopt;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!parse_option(argv[i], argv[i + 1], options)) return std::nullopt;
  }
  const bool one_source = (options.socket_fd >= 0) != !options.listen_path.empty();
  if (options.root.empty() || !one_source || users.min_uid > users.max_uid) return std::nullopt;
  if (options.client_uid != 0) users.of_platform.push_back(options.client_uid);
  // The arguments lie one after the other; supervisors write their own name over them.
  options.title = {argv[0],
                   static_cast<std::size_t>(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0])};
  return options;
}

// Closes every descriptor that our parent left open, except for the socket: supervisors outlive the
// parent by far.
bool shed_descriptors(int& socket) {
  if (socket >= 0) {
    const int moved = 3;
    if (socket != moved) {
      if (dup2(socket, moved) < 0) return false;
      close(socket);
    }
    socket = moved;
    if (fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) return false;
  }
  const unsigned first = socket >= 0 ? 4 : 3;
  if (syscall(SYS_close_range, first, ~0U, 0) != 0) return false;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return false;
  for (int fd = 0; fd < 2; ++fd) {
    if (dup2(null, fd) < 0) return false;
  }
  return chdir("/") == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 2 && std::string_view(argv[1]) == "ranks") {
    return gpu_platform::node::run_ranks(argc, argv);
  }
  auto options = parse(argc, argv);
  if (!options) {
    fwrite(kHelp.data(), 1, kHelp.size(), stderr);
    return kUsage;
  }
  // Errors of the set-up go to a copy of stderr that no supervisor inherits.
  if (!shed_descriptors(options->socket_fd)) {
    perror("gpu-platform-node");
    return 1;
  }
  options->error_fd = fcntl(2, F_DUPFD_CLOEXEC, 10);
  dup2(0, 2);
  std::string error;
  const int code = gpu_platform::node::run_launcher(*options, error);
  if (code != 0) dprintf(options->error_fd, "gpu-platform-node: %s\n", error.c_str());
  return code;
}
