#include "telemetry/kpi_runs.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace gpu_platform::telemetry {

namespace {

using model::EndReason;
using model::JobState;

constexpr std::array<std::string_view, kKpiCauses> kNames = {
    "NONE", "APPLICATION", "HARDWARE", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_LOSS", "PLATFORM",
};

KpiCause cause_of_reason(EndReason reason) {
  switch (reason) {
    case EndReason::kTimeLimit:
    case EndReason::kIdleTimeout:
    case EndReason::kDeadline:
    case EndReason::kWaitTimeout:
      return KpiCause::kTimeout;
    case EndReason::kCancelledBy:
    case EndReason::kKilledBy:
    case EndReason::kRequeuedBy:
    case EndReason::kDependencyFailed:
    case EndReason::kReservationEnded:
    case EndReason::kIdle:
    case EndReason::kBudget:
      return KpiCause::kCancelled;
    case EndReason::kPreempted:
      return KpiCause::kPreempted;
    case EndReason::kNodeLost:
    case EndReason::kSupervisorLost:
    case EndReason::kGpuOffline:
      return KpiCause::kNodeLoss;
    case EndReason::kGpuFault:
      return KpiCause::kHardware;
    case EndReason::kPrologFailed:
    case EndReason::kEnvironmentLost:
      return KpiCause::kPlatform;
    case EndReason::kNone:
    case EndReason::kOutOfMemory:
    case EndReason::kLaunchFailed:
    case EndReason::kHung:
    case EndReason::kGpuMemory:
      return KpiCause::kApplication;
  }
  CHECK(false);
  return KpiCause::kApplication;
}

bool interrupts(KpiCause cause) {
  return cause == KpiCause::kPreempted || cause == KpiCause::kHardware ||
         cause == KpiCause::kNodeLoss;
}

bool was_interrupted(const model::Job& job) {
  return std::ranges::any_of(job.attempts, [](const model::Attempt& attempt) {
    return interrupts(telemetry::cause_of(attempt));
  });
}

// A later wait overwrites the time at which the job began to wait.
base::Instant queued_at(const model::Job& job) {
  const base::Instant begin = std::max(job.submitted_at, job.spec->begin);
  if (job.attempts.empty()) return job.eligible_at.is_set() ? job.eligible_at : begin;
  const base::Instant requested = job.attempts.front().requested_at;
  const bool is_first_wait = job.eligible_at.is_set() && job.eligible_at <= requested;
  return std::min(is_first_wait ? job.eligible_at : begin, requested);
}

// Part of the readings that were to be expected.
double measured_share(const LevelUse& level, std::uint64_t expected) {
  return std::min(1.0, static_cast<double>(level.count) / static_cast<double>(expected));
}

// What a job makes of its part of a GPU is set against the part.
void put_use(const UseSummary& use, const model::Allocation& allocation, KpiRun& run) {
  const double part = model::is_part(allocation)
                          ? static_cast<double>(share_of(allocation).value()) /
                                static_cast<double>(base::kWholeGpu.value())
                          : 1;
  const RunUse made = run_use_of(use, part);
  run.utilization = static_cast<float>(made.utilization);
  run.memory = static_cast<float>(made.memory);
  run.measured = static_cast<float>(made.measured);
  run.memory_measured = static_cast<float>(made.memory_measured);
}

void put_attempt(const model::Attempt& attempt, KpiRun& run) {
  run.requested = attempt.requested_at;
  run.started = attempt.started_at;
  run.ended = attempt.ended_at;
  run.released = attempt.released_at;
  run.gpus = model::share_of(attempt.allocation);
  if (attempt.ended_at.is_set()) run.cause = cause_of(attempt);
}

}  // namespace

std::string_view to_string(KpiCause cause) {
  return kNames[static_cast<std::size_t>(cause)];
}

RunUse run_use_of(const UseSummary& use, double part) {
  RunUse made;
  if (use.gpus.empty()) return made;
  const std::uint64_t expected = use.expected_samples();
  double utilization = 0;
  double memory = 0;
  for (const GpuUse& gpu : use.gpus) {
    const LevelUse& level = gpu.level("utilization_percent");
    const double share = measured_share(level, expected);
    made.measured += share;
    if (level.count > 0) utilization += share * std::min(100.0, level.mean() / part);
    const auto memory_share = memory_share_of(gpu);
    if (!memory_share) continue;
    const double of_memory = measured_share(gpu.level("memory_used_bytes"), expected);
    made.memory_measured += of_memory;
    memory += of_memory * memory_share->mean;
  }
  if (made.measured > 0) made.utilization = utilization / made.measured;
  if (made.memory_measured > 0) made.memory = memory / made.memory_measured;
  const auto gpus = static_cast<double>(use.gpus.size());
  made.measured /= gpus;
  made.memory_measured /= gpus;
  return made;
}

KpiCause cause_of(const model::Attempt& attempt) {
  if (!attempt.ended_at.is_set()) return KpiCause::kNone;
  const bool did_well = attempt.reason == EndReason::kNone && attempt.exit.code == 0;
  return did_well ? KpiCause::kNone : cause_of_reason(attempt.reason);
}

KpiCause cause_of(const model::Job& job) {
  switch (job.state) {
    case JobState::kCancelled:
      return KpiCause::kCancelled;
    case JobState::kTimedOut:
      return KpiCause::kTimeout;
    case JobState::kFailed:
      return cause_of_reason(job.reason);
    default:
      return KpiCause::kNone;
  }
}

std::uint32_t KpiRuns::place_of(const std::string& name) {
  const auto [place, is_new] = places_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return place->second;
}

void KpiRuns::add(const model::Job& job, const UseOf& use_of) {
  KpiRun base;
  base.job = job.id;
  base.submitted = job.submitted_at;
  base.queued = queued_at(job);
  base.team = place_of(job.spec->team);
  base.user = place_of(job.spec->user);
  base.kind = job.spec->kind;
  base.was_interrupted = was_interrupted(job);
  const std::size_t runs = std::max<std::size_t>(1, job.attempts.size());
  for (std::size_t i = 0; i < runs; ++i) {
    KpiRun run = base;
    run.is_first = i == 0;
    if (i < job.attempts.size()) {
      const model::Attempt& attempt = job.attempts[i];
      put_attempt(attempt, run);
      const bool has_use = use_of && attempt.started_at.is_set() && run.gpus > base::GpuShare();
      const auto use = has_use ? use_of({job.id, attempt.number}) : std::nullopt;
      if (use) put_use(*use, attempt.allocation, run);
    }
    if (i + 1 == runs && job.ended_at.is_set()) {
      run.job_ended = job.ended_at;
      run.job_cause = cause_of(job);
    }
    runs_.push_back(run);
  }
}

void KpiRuns::add(const KpiRuns& later) {
  std::vector<std::uint32_t> places;
  for (const std::string& name : later.names_) places.push_back(place_of(name));
  for (KpiRun run : later.runs_) {
    run.team = places[run.team];
    run.user = places[run.user];
    runs_.push_back(run);
  }
  complete_since_ = std::max(complete_since_, later.complete_since_);
}

void KpiRuns::forget(std::span<const model::JobId> jobs) {
  std::vector<model::JobId> sorted(jobs.begin(), jobs.end());
  std::ranges::sort(sorted);
  std::erase_if(runs_,
                [&](const KpiRun& run) { return std::ranges::binary_search(sorted, run.job); });
}

void KpiRuns::keep_newest(std::size_t max) {
  if (runs_.size() <= max) return;
  std::vector<model::JobId> ids;
  ids.reserve(runs_.size());
  for (const KpiRun& run : runs_) ids.push_back(run.job);
  const auto last_removed = ids.end() - static_cast<std::ptrdiff_t>(max) - 1;
  std::ranges::nth_element(ids, last_removed);
  std::erase_if(runs_, [&](const KpiRun& run) {
    if (run.job > *last_removed) return false;
    complete_since_ = std::max(complete_since_, run.job_ended);
    return true;
  });
}

}  // namespace gpu_platform::telemetry
