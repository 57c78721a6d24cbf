#include "controller/loop/meter.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "model/job_spec.h"
#include "os/clock.h"

namespace gpu_platform::controller {

namespace {

double in_seconds(base::Duration duration) {
  return static_cast<double>(duration.value()) / 1e9;
}

std::uint64_t* counter_of(model::JobTrigger how, Statistics& statistics) {
  switch (how) {
    case model::JobTrigger::kComplete:
      return &statistics.jobs_completed;
    case model::JobTrigger::kFail:
      return &statistics.jobs_failed;
    case model::JobTrigger::kCancel:
      return &statistics.jobs_cancelled;
    case model::JobTrigger::kTimeOut:
      return &statistics.jobs_timed_out;
    default:
      return nullptr;
  }
}

}  // namespace

Meter::Meter(base::Instant since) {
  counted_.since = since;
}

Statistics Meter::read() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

double Meter::seconds_since(std::int64_t begin_ns) const {
  return static_cast<double>(os::monotonic_ns() - begin_ns) / 1e9;
}

void Meter::begin_step(std::size_t inputs) {
  mark_ns_ = os::monotonic_ns();
  const std::lock_guard lock(mutex_);
  counted_.inputs.add(static_cast<double>(inputs));
}

void Meter::decided() {
  const double seconds = seconds_since(mark_ns_);
  mark_ns_ = os::monotonic_ns();
  const std::lock_guard lock(mutex_);
  counted_.decide_seconds.add(seconds);
}

void Meter::committed() {
  commit_seconds_ = seconds_since(mark_ns_);
}

void Meter::begin(scheduling::Stage stage) {
  stage_began_ns_ = os::monotonic_ns();
  if (stage == scheduling::kStages.front()) cycle_seconds_ = 0;
}

void Meter::end(scheduling::Stage stage) {
  const double seconds = seconds_since(stage_began_ns_);
  cycle_seconds_ += seconds;
  const std::lock_guard lock(mutex_);
  counted_.stage_seconds[static_cast<std::size_t>(stage)] += seconds;
}

void Meter::end_cycle(std::size_t considered) {
  const std::lock_guard lock(mutex_);
  counted_.cycle_seconds.add(cycle_seconds_);
  counted_.considered.add(static_cast<double>(considered));
}

void Meter::published(const std::shared_ptr<const Snapshot>& snapshot,
                      std::span<const model::EventRecord> events, const DepartedJobs&) {
  const std::lock_guard lock(mutex_);
  counted_.commit_seconds.add(commit_seconds_);
  for (const model::EventRecord& record : events) count(record, *snapshot);
}

void Meter::count(const model::EventRecord& record, const Snapshot& snapshot) {
  if (const auto* submitted = std::get_if<model::JobSubmitted>(&record.event)) {
    counted_.jobs_submitted +=
        submitted->spec->array ? model::member_count(*submitted->spec->array) : 1;
  } else if (const auto* start = std::get_if<model::StartRequested>(&record.event)) {
    ++counted_.attempts_started;
    if (start->why == model::StartWhy::kBackfill) ++counted_.backfilled;
    const model::Job* job = snapshot.jobs.find(start->attempt.job.value);
    if (job != nullptr) {
      const base::Instant since = std::max(job->eligible_at, job->submitted_at);
      counted_.wait_seconds.add(std::max(0.0, in_seconds(record.at - since)));
    }
  } else if (const auto* end = std::get_if<model::JobEnded>(&record.event)) {
    if (std::uint64_t* counter = counter_of(end->how, counted_)) ++*counter;
  } else if (std::holds_alternative<model::JobRequeued>(record.event)) {
    ++counted_.jobs_requeued;
  } else if (const auto* preemption = std::get_if<model::PreemptionDecided>(&record.event)) {
    ++counted_.preemptions[static_cast<std::size_t>(preemption->rule)];
  }
}

}  // namespace gpu_platform::controller
