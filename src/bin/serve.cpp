#include <sys/stat.h>

#include <filesystem>
#include <utility>
#include <vector>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "bin/alert_settings.h"
#include "bin/daemon.h"
#include "bin/daemon_signals.h"
#include "bin/kubernetes_site.h"
#include "bin/progress_pace.h"
#include "bin/serve_options.h"
#include "bin/site_policy.h"
#include "bin/verbs.h"
#include "cli/words/arguments.h"
#include "client/exit_code.h"
#include "client/places.h"
#include "client/session.h"
#include "config/yaml/reader.h"
#include "logging/harmless_sink.h"
#include "logging/json_lines.h"
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
    auto wrong = problem_in_rules(*checked);
    if (!wrong) wrong = problem_in_alerts(*checked);
    if (!wrong) return std::move(*checked);
    console.error(config::describe(*wrong, path));
    return std::nullopt;
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
    spdlog::warn("reload requested, but there is no configuration file (--config)");
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

// Waits until the cluster of the site has no other controller. Returns the name by which this one
// has its lease; empty: the process was told to end before.
base::Result<std::string> stand_by(const config::Configuration& configuration,
                                   const DaemonSignals& signals, client::Console& console) {
  return stand_by_for_kubernetes(
      configuration, [&](base::Duration time) { return signals.pause(time); },
      DaemonSignals::is_told_to_end,
      [&](const std::string& why) {
        spdlog::info("standby: {}", why);
        console.err("standby " + why + "\n");
        os::notify_service_manager("READY=1\nSTATUS=Standby: " + why);
      });
}

void serve_until_told(Daemon& daemon, const DaemonSignals& signals, const std::string& config_path,
                      client::Console& console) {
  while (const auto sender = signals.next()) reload(daemon, config_path, *sender, console);
  spdlog::info("stopping, running jobs go on");
  daemon.stop();
}

// Prints the error; returns its exit code.
int fail(client::Console& console, const base::Error& error) {
  console.error(error.message);
  return exit_code_for(error);
}

// The daemon did not start.
int fail_to_start(client::Console& console, const base::Error& error) {
  if (!DaemonSignals::is_told_to_end()) return fail(console, error);
  spdlog::info("stopping before the start was complete: {}", error.message);
  return client::kOk;
}

// Tells of a start that takes long: a person at a terminal and the service manager each second,
// which also gives it more time, and the log now and again.
class RecoveryTeller {
 public:
  explicit RecoveryTeller(client::Console& console) : console_(console) {}

  void tell(std::uint64_t done, std::uint64_t all) {
    const base::Instant now = console_.process_environment().steady();
    if (done == all) return console_.progress({});
    if (!pace_.is_due(now)) return;
    const std::string text = fmt::format("recovering: {} of {} records", done, all);
    console_.progress(text);
    os::notify_service_manager("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=" + text);
    if (log_pace_.is_due(now)) spdlog::info("recovering done={} all={}", done, all);
  }

 private:
  client::Console& console_;
  const base::Instant began_ = console_.process_environment().steady();
  ProgressPace pace_{began_, base::seconds(2), base::seconds(1)};
  ProgressPace log_pace_{began_, base::seconds(2), base::seconds(10)};
};

int serve(const ServeOptions& asked, config::Configuration configuration,
          const DaemonSignals& signals, client::Console& console) {
  DaemonOptions options{asked.data_dir, asked.socket, asked.emulate,
                        absolute_path(asked.config_path), asked.launcher};
  options.must_end = DaemonSignals::is_told_to_end;
  RecoveryTeller recovery(console);
  options.recovering = [&](std::uint64_t done, std::uint64_t all) { recovery.tell(done, all); };
  options.accept_loss = asked.accept_loss;
  if (asked.is_standby) {
    auto holder = stand_by(configuration, signals, console);
    if (!holder) return fail(console, holder.error());
    if (holder->empty()) return client::kOk;
    options.lease_holder = *std::move(holder);
    spdlog::info("taking over as {}", options.lease_holder);
    auto read_again = read_configuration(asked.config_path, console);
    if (!read_again) return client::kUsage;
    configuration = *std::move(read_again);
  }
  if (asked.metric_names) configuration.metrics.names = *asked.metric_names;
  const auto daemon = Daemon::start(options, configuration);
  if (!daemon) {
    if (asked.is_standby) {
      release_kubernetes_lease(configuration, options.data_dir, options.lease_holder);
    }
    return fail_to_start(console, daemon.error());
  }
  if (!DaemonSignals::is_told_to_end()) {
    console.err("ready " + options.socket + "\n");
    os::notify_service_manager("READY=1\nSTATUS=");
  }
  serve_until_told(**daemon, signals, asked.config_path, console);
  os::notify_service_manager("STOPPING=1");
  return client::kOk;
}

}  // namespace

std::string default_data_dir() {
  return client::default_data_dir(client::environment_of_process());
}

int serve_main(int argc, char** argv) {
  const client::ProcessEnvironment process_environment = client::environment_of_process();
  client::Console console(process_environment);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto options = read_serve_options(words, console);
  if (!options) return options.error();
  auto configuration = read_configuration(options->config_path, console);
  if (!configuration) return client::kUsage;
  if (options->is_standby && !has_kubernetes(*configuration)) {
    return cli::usage_error(console,
                            "--standby: the configuration sets no Kubernetes cluster "
                            "(engines.kubernetes.kubeconfig or engines.kubernetes.in_cluster)",
                            "serve");
  }

  // Nothing that the daemon makes is for others to write to, with any mask of its parent.
  umask(022);
  start_log(options->log_level, options->is_json_log);
  const DaemonSignals signals;
  for (const std::string& path : {options->data_dir, options->socket}) {
    const auto made = client::make_fallback_folder(process_environment, path);
    if (!made) return fail(console, made.error());
  }
  return serve(*options, *std::move(configuration), signals, console);
}

}  // namespace gpu_platform::bin
