#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "alerts/alert.h"
#include "base/result.h"
#include "base/units.h"

// Which readings and states people are told of, as data. A site changes the shipped rules by name,
// and adds others.

namespace gpu_platform::alerts {

// How the values of a signal are read.
enum class Kind : std::uint8_t {
  kLevel,
  kYesNo,    // 0 or 1
  kCounter,  // only its growth counts
};

struct SignalRow {
  Signal signal = Signal::kGpuTemperature;
  std::string_view name;  // "gpu_temperature", in configurations
  Kind kind = Kind::kLevel;
  std::string_view unit;      // " °C", behind a value; empty of kYesNo and counts
  bool is_bad_below = false;  // the usual rule of it is "below"
  std::int64_t most = 1;      // the greatest threshold that makes sense; the least is 0
};
// In the order of the enumeration.
std::span<const SignalRow> signals();
const SignalRow& row_of(Signal signal);
std::optional<Signal> parse_signal(std::string_view name);

// A rule. It fires for a subject when the value has been at the threshold or beyond it for `hold`,
// and is resolved when the value has come back to `clear`: what is between them changes nothing. A
// rule of a counter fires when the counter has grown by the threshold, and is resolved when it has
// not grown for `quiet`.
struct Rule {
  std::string name;  // "GpuHot"; unique
  Signal signal = Signal::kGpuTemperature;
  bool is_below = false;
  std::int64_t threshold = 1;
  std::int64_t clear = 0;
  base::Duration hold;
  base::Duration quiet = base::minutes(15);
  Severity severity = Severity::kWarning;
  bool is_enabled = true;
  std::string advice;
  // The rule is for these alone; patterns of names ("dgx-a*"). Empty: for all.
  std::vector<std::string> types;  // of GPUs; a family stands for its types
  std::vector<std::string> nodes;
  std::vector<std::string> teams;
  bool is_of_site = false;  // the configuration made or changed it

  friend bool operator==(const Rule&, const Rule&) = default;
};

bool fires(const Rule& rule, std::int64_t value);
bool is_clear(const Rule& rule, std::int64_t value);
bool applies(const Rule& rule, const Labels& labels);

// The shipped rules, in the order in which they are shown.
const std::vector<Rule>& shipped_rules();

// A change of a shipped rule, or a new one, in the words of a configuration. Empty: not given.
struct RuleWords {
  std::string name;
  std::string signal;  // of a new rule
  std::optional<std::int64_t> above;
  std::optional<std::int64_t> below;
  std::optional<std::int64_t> clear;
  std::optional<base::Duration> hold;
  std::string severity;
  std::optional<bool> is_enabled;
  std::string advice;
  std::vector<std::string> types;
  std::vector<std::string> nodes;
  std::vector<std::string> teams;

  friend bool operator==(const RuleWords&, const RuleWords&) = default;
};

// Returns the shipped rules with the changes of a site, and those that it adds. Errors say what is
// allowed; their field is "alerts.rules[2]".
base::Result<std::vector<Rule>> make_rules(std::span<const RuleWords> changes);

}  // namespace gpu_platform::alerts
