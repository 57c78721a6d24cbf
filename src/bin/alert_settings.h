#pragma once

#include <optional>
#include <vector>

#include "alerts/alert_book.h"
#include "alerts/rendering.h"
#include "base/result.h"
#include "config/configuration.h"
#include "outbound/channel.h"
#include "telemetry/idleness.h"

namespace gpu_platform::bin {

// What a configuration says about alerts, checked.
struct AlertSettings {
  alerts::AlertBook::Settings book;
  std::vector<outbound::Channel> channels;
  alerts::Site site;
  telemetry::IdleRule idle;
  config::IdleAction idle_action = config::IdleAction::kTell;
  base::Duration warn_before;
};

// When a job counts as idle.
telemetry::IdleRule idle_rule_of(const config::Configuration& configuration);

// Reads the template of the site, too. The error's field is the place of the entry:
// "alerts.channels[1]".
base::Result<AlertSettings> alert_settings_of(const config::Configuration& configuration);

// The same as a problem of the file.
std::optional<config::Problem> problem_in_alerts(const config::Configuration& configuration);

}  // namespace gpu_platform::bin
