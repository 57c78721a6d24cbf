#include "shims/views/usage_report.h"

#include <algorithm>

#include "client/answer.h"
#include "model/job_spec.h"

namespace gpu_platform::shims {

namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr std::string_view kWithoutTeam = "root";  // Slurm's account above all others

double seconds_within(const v1::Attempt& attempt, const Period& period, base::Instant now) {
  const auto began = client::time_of(attempt.started_at());
  if (!began) return 0;
  const base::Instant ended = client::time_of(attempt.ended_at()).value_or(now);
  const base::Instant from = std::max(*began, period.begin);
  const base::Instant to = std::min(ended, period.end);
  return to <= from ? 0 : static_cast<double>(base::whole_milliseconds(to - from)) / 1000;
}

// A part of a GPU counts as that. A daemon that knows no parts sends no shares.
double gpus_in(const v1::Attempt& attempt) {
  double gpus = 0;
  for (const v1::GpuUse& gpu : attempt.gpus()) gpus += gpu.share() > 0 ? gpu.share() : 1;
  return gpus;
}

}  // namespace

bool is_counted(std::string_view resource) {
  return std::ranges::find(kCountedResources, resource) != std::end(kCountedResources);
}

Period recorded_part(const Period& period, std::optional<base::Instant> since) {
  if (!since) return period;
  return {std::clamp(*since, period.begin, period.end), period.end};
}

HeldBy usage_of(const std::vector<v1::Job>& jobs, const Period& period, base::Instant now) {
  HeldBy usage;
  for (const v1::Job& job : jobs) {
    const v1::JobSpec& spec = job.spec();
    const std::string team = spec.team();
    for (const v1::Attempt& attempt : job.attempts()) {
      const double seconds = seconds_within(attempt, period, now);
      if (seconds <= 0) continue;
      Held& held = usage[{team.empty() ? std::string(kWithoutTeam) : team, spec.user()}];
      held["cpu"] += seconds * attempt.cpus();
      held["mem"] += seconds * static_cast<double>(attempt.memory_bytes()) / kMib;
      held["node"] += seconds * attempt.nodes().size();
      held["gres/gpu"] += seconds * gpus_in(attempt);
    }
  }
  return usage;
}

Held capacity_of(const v1::Status& status) {
  Held held;
  for (const v1::Node& node : status.nodes()) {
    held["cpu"] += node.cpus();
    held["mem"] += static_cast<double>(node.memory_bytes()) / kMib;
    held["node"] += 1;
  }
  held["gres/gpu"] = status.gpus().size();
  return held;
}

}  // namespace gpu_platform::shims
