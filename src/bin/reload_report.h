#pragma once

#include <string>
#include <vector>

#include "config/configuration.h"

namespace gpu_platform::bin {

// What a reload means, for the log: a line for each value that it changes, and one for each value
// that waits for the next start.
struct ReloadReport {
  std::vector<std::string> applied;
  std::vector<std::string> waiting;
};
// `before`: as last read; `now`: as read by the reload.
ReloadReport reload_report(const config::Configuration& at_start,
                           const config::Configuration& before, const config::Configuration& now);

}  // namespace gpu_platform::bin
