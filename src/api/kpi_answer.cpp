#include "api/kpi_answer.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/convert/enums.h"
#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
// Their answers begin when something has happened to a job.
constexpr std::string_view kWaitingCall = "JobService.WaitJob";

// The utilization that is aimed at, in percent.
struct KpiTarget {
  std::optional<double> least;
  std::optional<double> most;
};

KpiTarget target_of(model::JobKind kind) {
  switch (kind) {
    case model::JobKind::kTraining:
      return {90, {}};
    case model::JobKind::kInference:
      return {30, 50};
    case model::JobKind::kInteractive:
      return {10, 30};
    case model::JobKind::kBatch:
      return {};
  }
  return {};
}

void put_times(const telemetry::KpiTimes& times, v1::KpiTimes& out) {
  out.set_count(times.count());
  out.set_mean_seconds(times.mean_seconds());
  out.set_p50_seconds(times.percentile_seconds(0.5));
  out.set_p95_seconds(times.percentile_seconds(0.95));
}

std::optional<double> percent_of(double part, double whole) {
  return whole > 0 ? std::optional(part * 100 / whole) : std::nullopt;
}

void put_kind(model::JobKind kind, const telemetry::KpiGpuTime& time, v1::KpiKind& out) {
  out.set_kind(to_proto(kind));
  to_proto(time, *out.mutable_gpus());
  const KpiTarget target = target_of(kind);
  if (target.least) out.set_min_target_percent(*target.least);
  if (target.most) out.set_max_target_percent(*target.most);
  const auto utilization = time.utilization_percent();
  if (!utilization || (!target.least && !target.most)) return;
  out.set_target_met((!target.least || *utilization >= *target.least) &&
                     (!target.most || *utilization <= *target.most));
}

void put_causes(const telemetry::KpiFigures& figures, v1::Kpi& out) {
  for (std::size_t i = 1; i < telemetry::kKpiCauses; ++i) {
    const auto cause = static_cast<telemetry::KpiCause>(i);
    v1::KpiCause& row = *out.add_causes();
    row.set_cause(std::string(to_string(cause)));
    row.set_jobs(figures.jobs[i]);
    row.set_attempts(figures.attempts[i]);
    const auto percent =
        percent_of(static_cast<double>(figures.jobs[i]), static_cast<double>(figures.all.ended));
    if (percent) row.set_jobs_percent(*percent);
  }
  out.set_hardware_failures(
      figures.attempts[static_cast<std::size_t>(telemetry::KpiCause::kHardware)]);
}

void put_jobs(const telemetry::KpiFigures& figures, double seconds, v1::Kpi& out) {
  const telemetry::KpiGroup& all = figures.all;
  const auto completed = static_cast<double>(all.completed);
  out.set_jobs_ended(all.ended);
  out.set_jobs_completed(all.completed);
  out.set_jobs_failed(all.failed());
  if (seconds >= kHour) out.set_completed_per_hour(completed / (seconds / kHour));
  if (seconds >= kDay) out.set_completed_per_day(completed / (seconds / kDay));
  const auto failed =
      percent_of(static_cast<double>(all.failed()), static_cast<double>(all.ended - all.cancelled));
  if (failed) out.set_failure_percent(*failed);
  out.set_interrupted_jobs(figures.interrupted);
  out.set_recovered_jobs(figures.recovered);
  const auto recovered =
      percent_of(static_cast<double>(figures.recovered), static_cast<double>(figures.interrupted));
  if (recovered) out.set_recovery_percent(*recovered);
}

void put_capacity(const telemetry::KpiFigures& figures, double available, v1::Kpi& out) {
  out.set_available_gpu_hours(available);
  const auto allocated = percent_of(figures.all.gpus.hours(), available);
  if (!allocated) return;
  out.set_allocation_percent(*allocated);
  const auto utilization = figures.all.gpus.utilization_percent();
  if (utilization) out.set_compute_efficiency_percent(*allocated * *utilization / 100);
}

void put_teams(const telemetry::KpiFigures& figures, v1::Kpi& out) {
  for (const auto& [name, group] : figures.teams) {
    v1::KpiTeam& team = *out.add_teams();
    team.set_team(name);
    team.set_jobs_ended(group.ended);
    team.set_jobs_completed(group.completed);
    team.set_jobs_failed(group.failed());
    to_proto(group.gpus, *team.mutable_gpus());
    const auto percent = percent_of(group.gpus.hours(), out.available_gpu_hours());
    if (percent) team.set_allocation_percent(*percent);
  }
}

// The least bound that this share of the values does not exceed.
std::optional<double> bound_of(const std::vector<std::uint64_t>& counts, std::uint64_t count,
                               double share) {
  const std::span<const double> bounds = controller::kWorkTimes;
  double below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    below += static_cast<double>(counts[i]);
    if (below >= share * static_cast<double>(count)) return bounds[i];
  }
  return std::nullopt;
}

}  // namespace

void to_proto(const telemetry::KpiGpuTime& time, v1::KpiGpuTime& out) {
  out.set_gpu_hours(time.hours());
  if (const auto percent = time.measured_percent()) out.set_measured_percent(*percent);
  if (const auto percent = time.utilization_percent()) out.set_utilization_percent(*percent);
  if (const auto percent = time.memory_percent()) out.set_memory_percent(*percent);
}

void put_figures(const telemetry::KpiFigures& figures, double seconds,
                 std::optional<double> available_hours, v1::Kpi& out) {
  if (figures.completion.count() > 0) put_times(figures.completion, *out.mutable_completion_time());
  if (figures.wait.count() > 0) put_times(figures.wait, *out.mutable_queue_wait());
  if (figures.allocation.count() > 0) put_times(figures.allocation, *out.mutable_allocation_time());
  put_jobs(figures, seconds, out);
  put_causes(figures, out);
  to_proto(figures.all.gpus, *out.mutable_gpus());
  if (available_hours) put_capacity(figures, *available_hours, out);
  for (std::size_t i = 0; i < telemetry::kKpiKinds; ++i) {
    put_kind(static_cast<model::JobKind>(i), figures.kinds[i], *out.add_kinds());
  }
  put_teams(figures, out);
}

void put_responses(std::span<const CallMeter::Row> rows, base::Instant since, v1::Kpi& out) {
  std::vector<std::uint64_t> counts(std::size(controller::kWorkTimes) + 1);
  std::uint64_t count = 0;
  double seconds = 0;
  for (const CallMeter::Row& row : rows) {
    if (row.call == kWaitingCall) continue;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += row.seconds.counts()[i];
    count += row.seconds.count();
    seconds += row.seconds.sum();
  }
  if (count == 0) return;
  v1::KpiResponses& responses = *out.mutable_response_time();
  if (since.is_set()) to_proto(since, *responses.mutable_since());
  responses.set_count(count);
  responses.set_mean_seconds(seconds / static_cast<double>(count));
  if (const auto bound = bound_of(counts, count, 0.5)) responses.set_p50_seconds(*bound);
  if (const auto bound = bound_of(counts, count, 0.95)) responses.set_p95_seconds(*bound);
}

}  // namespace gpu_platform::api
