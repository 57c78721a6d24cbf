#include "bin/reload_report.h"

#include <fmt/format.h>

#include "config/effective.h"

namespace gpu_platform::bin {

ReloadReport reload_report(const config::Configuration& at_start,
                           const config::Configuration& before, const config::Configuration& now) {
  const auto values = [](const config::Difference& each) {
    return each.before == each.after
               ? std::string()
               : fmt::format(" before=\"{}\" after=\"{}\"", each.before, each.after);
  };
  ReloadReport report;
  for (const config::Difference& each : config::differences(before, now)) {
    if (each.effect != config::Effect::kAnytime) continue;
    report.applied.push_back(
        fmt::format("configuration key={}{} applied=now", each.key, values(each)));
  }
  for (const config::Difference& each : config::differences(at_start, now)) {
    if (each.effect != config::Effect::kRestart) continue;
    report.waiting.push_back(fmt::format("configuration key={}{} applied=\"at the next start\"",
                                         each.key, values(each)));
  }
  return report;
}

}  // namespace gpu_platform::bin
