#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

// What a site says about alerts, as words: which signals and kinds of channels there are is not
// known here.

namespace gpu_platform::config {

// What happens to a job that does not use its GPUs.
enum class IdleAction : std::uint8_t {
  kTell,  // an alert
  kWarn,  // and a line in the job's output
  kStop,  // and later the job is stopped
};

struct AlertRule {
  std::string name;
  std::string signal;
  std::optional<std::int64_t> above;
  std::optional<std::int64_t> below;
  std::optional<std::int64_t> clear;
  std::optional<base::Duration> hold;
  std::string severity;
  std::optional<bool> enabled;
  std::string advice;
  std::vector<std::string> types;
  std::vector<std::string> nodes;
  std::vector<std::string> teams;

  friend bool operator==(const AlertRule&, const AlertRule&) = default;
};

struct AlertRoute {
  std::string severity;
  std::string team;
  std::vector<std::string> rules;
  std::vector<std::string> channels;

  friend bool operator==(const AlertRoute&, const AlertRoute&) = default;
};

struct AlertChannel {
  std::string name;
  std::string kind;
  std::string url;
  std::string url_file;
  std::string secret_file;
  std::string user;
  std::string from;
  std::vector<std::string> to;
  std::string ca_file;
  std::string proxy;
  bool allow_plain_text = false;
  std::vector<std::string> command;
  std::optional<base::Duration> timeout;

  friend bool operator==(const AlertChannel&, const AlertChannel&) = default;
};

struct IdleSettings {
  std::uint32_t below_percent = 5;
  base::Duration after = base::minutes(30);
  base::Duration grace = base::minutes(30);
  base::Duration loading = base::hours(2);
  IdleAction action = IdleAction::kTell;
  base::Duration warn_before = base::minutes(10);

  friend bool operator==(const IdleSettings&, const IdleSettings&) = default;
};

}  // namespace gpu_platform::config
