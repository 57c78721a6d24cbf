#include "bin/serve_options.h"

#include <optional>

#include "cli/words/arguments.h"
#include "client/places.h"

namespace gpu_platform::bin {

namespace {

constexpr cli::CommandText kServe = {
    "serve", "[options]",
    "Run the daemon in the foreground. SIGTERM ends it and leaves jobs running; SIGHUP reads the "
    "configuration again",
    "  gpu-platform serve --emulate dgx-h100\n"
    "  gpu-platform serve --data-dir /var/lib/gpu-platform --config /etc/gpu-platform.yaml\n"
    "  gpu-platform serve --emulate 16xdgx-h100 --data-dir /tmp/demo --socket /tmp/demo.sock\n"};

// As they were written.
struct ServeTexts {
  std::optional<std::string> data_dir, socket, emulate, launcher, config_path;
  std::optional<std::string> log_level, log_format, metrics_names;
  bool is_standby = false;
  bool accept_loss = false;
};

std::optional<spdlog::level::level_enum> parse_level(const std::string& name) {
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warn") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return std::nullopt;
}

std::optional<config::MetricNames> parse_metric_names(const std::string& name) {
  if (name == "dcgm") return config::MetricNames::kDcgm;
  if (name == "otel") return config::MetricNames::kOtel;
  if (name == "both") return config::MetricNames::kBoth;
  return std::nullopt;
}

std::optional<int> read_texts(std::span<const std::string> words, const ServeOptions& defaults,
                              ServeTexts& texts, client::Console& console) {
  cli::Arguments arguments(kServe);
  arguments
      .option("--data-dir", texts.data_dir, "DIR",
              "directory for all durable data (default " + defaults.data_dir + ")")
      .option("--socket", texts.socket, "PATH",
              "Unix socket to answer on (default " + defaults.socket + ")")
      .option("--emulate", texts.emulate, "SPEC",
              "emulated nodes instead of this host's GPUs: [Nx]BOARD, comma separated")
      .option("--launcher", texts.launcher, "PATH",
              "socket of a launcher that runs as a service of its own (default: one is started)")
      .option("--config", texts.config_path, "FILE", "configuration (docs/configuration.md)")
      .flag("--standby", texts.is_standby,
            "wait while another daemon has the site's Kubernetes cluster, then take over")
      .flag("--accept-loss", texts.accept_loss,
            "start although the store is older than the work that was acknowledged here, as after "
            "a backup was put back; use it once, not in a unit file")
      .option("--log-level", texts.log_level, "LEVEL", "debug, info (default), warn or error")
      .option("--log-format", texts.log_format, "FORMAT",
              "text (default), or json: one object for each line")
      .option("--metrics-names", texts.metrics_names, "NAMES",
              "names of GPU readings in /metrics: dcgm, otel or both (default: api.metrics.names)");
  return arguments.parse(words, console);
}

}  // namespace

std::expected<ServeOptions, int> read_serve_options(std::span<const std::string> words,
                                                    client::Console& console) {
  ServeOptions options;
  options.data_dir = client::default_data_dir(console.process_environment());
  options.socket = client::socket_to_serve(console.process_environment());
  ServeTexts texts;
  if (const auto code = read_texts(words, options, texts, console)) return std::unexpected(*code);
  const auto mistake = [&](std::string_view message) {
    return std::unexpected(cli::usage_error(console, message, kServe.name));
  };
  const auto level = parse_level(texts.log_level.value_or("info"));
  if (!level) return mistake("--log-level: debug, info, warn or error");
  if (texts.log_format.value_or("text") != "text" && texts.log_format != "json") {
    return mistake("--log-format: text or json");
  }
  if (texts.emulate.has_value() && texts.emulate->empty()) {
    return mistake("--emulate: the value is empty; write [Nx]BOARD, or leave --emulate out");
  }
  if (texts.metrics_names) {
    options.metric_names = parse_metric_names(*texts.metrics_names);
    if (!options.metric_names) return mistake("--metrics-names: dcgm, otel or both");
  }
  if (texts.data_dir) options.data_dir = *texts.data_dir;
  if (texts.socket) options.socket = *texts.socket;
  options.emulate = texts.emulate.value_or("");
  options.launcher = texts.launcher.value_or("");
  options.config_path = texts.config_path.value_or("");
  options.is_standby = texts.is_standby;
  options.accept_loss = texts.accept_loss;
  options.log_level = *level;
  options.is_json_log = texts.log_format == "json";
  return options;
}

}  // namespace gpu_platform::bin
