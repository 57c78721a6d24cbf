#include "alerts/routing.h"

#include <algorithm>

#include "model/job_selection.h"

namespace gpu_platform::alerts {

namespace {

bool matches(const Route& route, const Alert& alert) {
  if (route.least && alert.severity < *route.least) return false;
  if (!route.team.empty()) {
    const auto team = alert.labels.find("team");
    if (team == alert.labels.end() || team->second != route.team) return false;
  }
  return route.rules.empty() || std::ranges::any_of(route.rules, [&](const std::string& pattern) {
           return model::matches_pattern(pattern, alert.rule);
         });
}

}  // namespace

std::vector<std::string> channels_for(const Alert& alert, std::span<const Route> routes,
                                      std::span<const std::string> all) {
  std::vector<std::string> channels;
  if (routes.empty()) channels.assign(all.begin(), all.end());
  for (const Route& route : routes) {
    if (matches(route, alert)) {
      channels.insert(channels.end(), route.channels.begin(), route.channels.end());
    }
  }
  std::ranges::sort(channels);
  channels.erase(std::ranges::unique(channels).begin(), channels.end());
  return channels;
}

}  // namespace gpu_platform::alerts
