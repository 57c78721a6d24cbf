#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>

#include <cerrno>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "bin/daemon.h"
#include "bin/kubernetes_site.h"
#include "bin/site_policy.h"
#include "bin/verbs.h"
#include "cli/arguments.h"
#include "client/exit_code.h"
#include "client/places.h"
#include "client/session.h"
#include "config/yaml/reader.h"
#include "logging/harmless_sink.h"
#include "logging/json_lines.h"
#include "os/clock.h"
#include "os/service_manager.h"

namespace gpu_platform::bin {

namespace {

int exit_code_for(const base::Error& error) {
  switch (error.code) {
    case base::ErrorCode::kInvalidArgument:
      return client::kUsage;
    case base::ErrorCode::kAlreadyExists:
    case base::ErrorCode::kFailedPrecondition:
      return client::kRefused;
    default:
      return client::kFailure;
  }
}

// The signals that end or reload the daemon come through this descriptor and nowhere else.
int watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

// A signal stays pending until the descriptor is read.
bool is_told_to_end() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

void start_log(spdlog::level::level_enum level, bool is_json) {
  auto logger = std::make_shared<spdlog::logger>(
      "serve", logging::harmless(std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  if (is_json) {
    logger->set_formatter(logging::json_lines());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  }
  logger->set_level(level);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

// An empty path stays empty.
std::string absolute_path(const std::string& path) {
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(path, ignored);
  return absolute.empty() ? path : absolute;
}

// The configuration of a file, or its problems as lines on stderr.
std::optional<config::Configuration> read_configuration(const std::string& path,
                                                        client::Console& console) {
  if (path.empty()) return config::Configuration();
  auto checked = config::read_configuration(path);
  if (checked) {
    for (const config::Problem& note : checked->notes) {
      console.err("note: " + config::describe(note, path) + "\n");
    }
    return std::move(*checked);
  }
  for (const config::Problem& problem : checked.error()) {
    console.error(config::describe(problem, path));
  }
  return std::nullopt;
}

void reload(Daemon& daemon, const std::string& path, const ActingProcess& sender,
            client::Console& console) {
  const auto refuse = [&](std::string why) {
    daemon.refuse_reload({base::ErrorCode::kFailedPrecondition, std::move(why), {}}, sender);
  };
  if (path.empty()) {
    spdlog::warn("reload asked for, but there is no configuration file (--config)");
    return refuse("there is no configuration file");
  }
  if (const auto configuration = read_configuration(path, console)) {
    daemon.reload(*configuration, sender);
    spdlog::info("configuration reloaded file={} uid={} pid={}", path, sender.uid, sender.pid);
  } else {
    spdlog::error("configuration not reloaded, the former one stays in force file={} uid={} pid={}",
                  path, sender.uid, sender.pid);
    refuse("the configuration file has errors; the daemon's log lists them");
  }
}

// Waits for that time. Returns false once a signal says that the process shall end.
bool wait_for_signal(int signal_fd, base::Duration time) {
  const std::int64_t end_ns = os::monotonic_ns() + time.value();
  while (true) {
    const std::int64_t left =
        base::whole_milliseconds(base::nanoseconds(end_ns - os::monotonic_ns()));
    if (left <= 0) return true;
    pollfd waiting{signal_fd, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    signalfd_siginfo info{};
    const bool is_read = read(signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    if (is_read && info.ssi_signo != SIGHUP) return false;  // the configuration is read anew later
  }
}

// Waits until the cluster of the site has no other controller. Returns the name by which this one
// has its lease; empty: the process was told to end before.
base::Result<std::string> stand_by(const config::Configuration& configuration, int signal_fd,
                                   client::Console& console) {
  return stand_by_for_kubernetes(
      configuration, [&](base::Duration time) { return wait_for_signal(signal_fd, time); },
      is_told_to_end,
      [&](const std::string& why) {
        spdlog::info("standby: {}", why);
        console.err("standby " + why + "\n");
        os::notify_service_manager("READY=1\nSTATUS=Standby: " + why);
      });
}

int serve_until_told(Daemon& daemon, int signal_fd, const std::string& config_path,
                     client::Console& console) {
  while (true) {
    signalfd_siginfo info{};
    const ssize_t n = read(signal_fd, &info, sizeof info);
    if (n < 0 && errno == EINTR) continue;
    if (n == static_cast<ssize_t>(sizeof info) && info.ssi_signo == SIGHUP) {
      reload(daemon, config_path, {info.ssi_uid, static_cast<std::int32_t>(info.ssi_pid)}, console);
      continue;
    }
    spdlog::info("stopping, running jobs go on");
    daemon.stop();
    return client::kOk;
  }
}

std::optional<spdlog::level::level_enum> parse_level(const std::string& name) {
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warn") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return std::nullopt;
}

}  // namespace

std::string default_data_dir() {
  return client::default_data_dir(client::environment_of_process());
}

std::string default_socket() {
  return client::socket_to_serve(client::environment_of_process());
}

int serve_main(int argc, char** argv) {
  const client::ProcessEnvironment process_environment = client::environment_of_process();
  client::Console console(process_environment);
  std::optional<std::string> data_dir;
  std::optional<std::string> socket;
  std::optional<std::string> emulate;
  std::optional<std::string> launcher;
  std::optional<std::string> config_path;
  std::optional<std::string> log_level;
  std::optional<std::string> log_format;
  bool is_standby = false;
  bool accept_loss = false;
  cli::Arguments arguments(
      {"serve", "[options]",
       "Run the daemon in the foreground. SIGTERM ends it and leaves jobs running; SIGHUP reads "
       "the "
       "configuration again",
       "  gpu-platform serve --emulate dgx-h100\n"
       "  gpu-platform serve --data-dir /var/lib/gpu-platform --config /etc/gpu-platform.yaml\n"
       "  gpu-platform serve --emulate 16xdgx-h100 --data-dir /tmp/demo --socket "
       "/tmp/demo.sock\n"});
  arguments
      .option("--data-dir", data_dir, "DIR",
              "directory for all durable data (default " + default_data_dir() + ")")
      .option("--socket", socket, "PATH",
              "Unix socket to answer on (default " + default_socket() + ")")
      .option("--emulate", emulate, "SPEC",
              "emulated nodes instead of this host's GPUs: [Nx]BOARD, comma separated")
      .option("--launcher", launcher, "PATH",
              "socket of a launcher that runs as a service of its own (default: one is started)")
      .option("--config", config_path, "FILE", "configuration (docs/configuration.md)")
      .flag("--standby", is_standby,
            "wait while another daemon has the site's Kubernetes cluster, then take over")
      .flag("--accept-loss", accept_loss,
            "start although the store is older than the work that was acknowledged here, as after "
            "a backup was put back; use it once, not in a unit file")
      .option("--log-level", log_level, "LEVEL", "debug, info (default), warn or error")
      .option("--log-format", log_format, "FORMAT",
              "text (default), or json: one object for each line");
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto code = arguments.parse(words, console)) return *code;
  const auto level = parse_level(log_level.value_or("info"));
  if (!level) {
    return cli::usage_error(console, "--log-level: debug, info, warn or error", "serve");
  }
  if (log_format.value_or("text") != "text" && log_format != "json") {
    return cli::usage_error(console, "--log-format: text or json", "serve");
  }
  if (emulate.has_value() && emulate->empty()) {
    return cli::usage_error(
        console, "--emulate: the value is empty; write [Nx]BOARD, or leave --emulate out", "serve");
  }
  auto configuration = read_configuration(config_path.value_or(""), console);
  if (!configuration) return client::kUsage;
  if (is_standby && !has_kubernetes(*configuration)) {
    return cli::usage_error(console,
                            "--standby: the configuration names no Kubernetes cluster "
                            "(engines.kubernetes.kubeconfig or engines.kubernetes.in_cluster)",
                            "serve");
  }

  // Nothing that the daemon makes is for others to write to, whatever it was started from.
  umask(022);
  start_log(*level, log_format == "json");
  const int signal_fd = watched_signals();
  DaemonOptions options{data_dir.value_or(default_data_dir()), socket.value_or(default_socket()),
                        emulate.value_or(""), absolute_path(config_path.value_or("")),
                        launcher.value_or("")};
  options.must_end = is_told_to_end;
  options.accept_loss = accept_loss;
  for (const std::string& path : {options.data_dir, options.socket}) {
    if (const auto made = client::make_fallback_folder(process_environment, path); !made) {
      console.error(made.error().message);
      return exit_code_for(made.error());
    }
  }
  if (is_standby) {
    auto holder = stand_by(*configuration, signal_fd, console);
    if (!holder) {
      console.error(holder.error().message);
      return exit_code_for(holder.error());
    }
    if (holder->empty()) return client::kOk;
    options.lease_holder = *std::move(holder);
    spdlog::info("taking over as {}", options.lease_holder);
    configuration = read_configuration(config_path.value_or(""), console);
    if (!configuration) return client::kUsage;
  }
  const auto daemon = Daemon::start(options, *configuration);
  if (!daemon) {
    if (is_standby)
      release_kubernetes_lease(*configuration, options.data_dir, options.lease_holder);
    if (is_told_to_end()) {
      spdlog::info("stopping before the start was complete: {}", daemon.error().message);
      return client::kOk;
    }
    console.error(daemon.error().message);
    return exit_code_for(daemon.error());
  }
  if (!is_told_to_end()) {
    console.err("ready " + options.socket + "\n");
    os::notify_service_manager("READY=1\nSTATUS=");
  }
  const int code = serve_until_told(**daemon, signal_fd, config_path.value_or(""), console);
  os::notify_service_manager("STOPPING=1");
  close(signal_fd);
  return code;
}

}  // namespace gpu_platform::bin
