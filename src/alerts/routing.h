#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "alerts/alert.h"

namespace gpu_platform::alerts {

// Which channels are told of which alerts.
struct Route {
  std::optional<Severity> least;   // none: of all
  std::string team;                // of the job's alert; empty: of all, and of what has no team
  std::vector<std::string> rules;  // patterns of names; empty: all
  std::vector<std::string> channels;

  friend bool operator==(const Route&, const Route&) = default;
};

// Returns the channels of all routes that match, each once, ascending. Without routes they are all
// channels.
std::vector<std::string> channels_for(const Alert& alert, std::span<const Route> routes,
                                      std::span<const std::string> all);

}  // namespace gpu_platform::alerts
