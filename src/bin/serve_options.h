#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

#include <spdlog/common.h>

#include "client/session.h"
#include "config/configuration.h"

namespace gpu_platform::bin {

// What `gpu-platform serve` was asked for. What was not given has its default.
struct ServeOptions {
  std::string data_dir;
  std::string socket;
  std::string emulate;      // empty: this host
  std::string launcher;     // empty: one is started
  std::string config_path;  // as it was written; empty: none
  bool is_standby = false;
  bool accept_loss = false;
  spdlog::level::level_enum log_level = spdlog::level::info;
  bool is_json_log = false;
  std::optional<config::MetricNames> metric_names;  // it goes before the configuration
};

// Reads the words behind "serve". Otherwise the exit code: 0 after --help, 2 after a mistake, which
// has been reported.
std::expected<ServeOptions, int> read_serve_options(std::span<const std::string> words,
                                                    client::Console& console);

}  // namespace gpu_platform::bin
