#include "shims/views/usage_report.h"

#include <algorithm>

#include "cli/job_text.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr double kMib = 1024.0 * 1024.0;
constexpr std::string_view kWithoutTeam = "root";  // Slurm's account above all others

double seconds_within(const Json& attempt, const Period& period, base::Instant now) {
  const auto began = cli::time_at(attempt, "started_at");
  if (!began) return 0;
  const base::Instant ended = cli::time_at(attempt, "ended_at").value_or(now);
  const base::Instant from = std::max(*began, period.begin);
  const base::Instant to = std::min(ended, period.end);
  return to <= from ? 0 : static_cast<double>(base::whole_milliseconds(to - from)) / 1000;
}

}  // namespace

bool is_counted(std::string_view resource) {
  return std::ranges::find(kCountedResources, resource) != std::end(kCountedResources);
}

HeldBy usage_of(const std::vector<Json>& jobs, const Period& period, base::Instant now) {
  HeldBy usage;
  for (const Json& job : jobs) {
    const Json& spec = cli::spec_of(job);
    const std::string team = text_at(spec, "team");
    for (const Json& attempt : cli::list_at(job, "attempts")) {
      const double seconds = seconds_within(attempt, period, now);
      if (seconds <= 0) continue;
      Held& held = usage[{team.empty() ? std::string(kWithoutTeam) : team, text_at(spec, "user")}];
      held["cpu"] += seconds * cli::number_at(attempt, "cpus").value_or(0);
      held["mem"] += seconds * cli::number_at(attempt, "memory_bytes").value_or(0) / kMib;
      held["node"] += seconds * static_cast<double>(cli::list_at(attempt, "nodes").size());
      held["gres/gpu"] += seconds * static_cast<double>(cli::list_at(attempt, "gpus").size());
    }
  }
  return usage;
}

Held capacity_of(const Json& status) {
  Held held;
  for (const Json& node : cli::list_at(status, "nodes")) {
    held["cpu"] += cli::number_at(node, "cpus").value_or(0);
    held["mem"] += cli::number_at(node, "memory_bytes").value_or(0) / kMib;
    held["node"] += 1;
  }
  held["gres/gpu"] = static_cast<double>(cli::list_at(status, "gpus").size());
  return held;
}

}  // namespace gpu_platform::shims
