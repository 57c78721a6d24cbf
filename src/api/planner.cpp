#include "api/planner.h"

#include <algorithm>
#include <utility>

#include "model/job_spec.h"
#include "os/clock.h"

namespace gpu_platform::api {

base::Instant Planner::follow(const Snapshot& snapshot) {
  view_.follow(snapshot);
  return std::max(os::wall_now(), snapshot->at);
}

views::Explanation Planner::explain(const Snapshot& snapshot, model::JobId job,
                                    views::Effort effort) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return views::explain_waiting(view_, job, now, effort);
}

views::Explanation Planner::explain(const Snapshot& snapshot,
                                    std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return views::explain_new(view_, std::move(spec), now, views::Effort::kThorough);
}

views::Explanation Planner::plan_new(const Snapshot& snapshot,
                                     std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return views::plan_new(view_, std::move(spec));
}

views::PlaceInLine Planner::place_in_line(const Snapshot& snapshot, model::JobId job) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return views::place_in_line(view_, job);
}

views::WaitExplainer& Planner::explainer(const Snapshot& snapshot) {
  follow(snapshot);
  if (explained_ != snapshot) {
    explained_ = snapshot;
    explainer_.emplace(view_);
  }
  return *explainer_;
}

namespace {

model::JobId first_of(const views::PlaceInLine& line) {
  return line.jobs_ahead == 0 ? model::JobId() : line.first_ahead.front();
}

}  // namespace

model::WaitReason Planner::wait_reason(const Snapshot& snapshot, const model::Job& job,
                                       const views::PlaceInLine& line) {
  const std::lock_guard lock(mutex_);
  return explainer(snapshot).explain_behind(job, line.jobs_ahead, first_of(line));
}

model::WaitReason Planner::wait_reason(const Snapshot& snapshot, const model::JobSpec& spec,
                                       const views::PlaceInLine& line) {
  const std::lock_guard lock(mutex_);
  return explainer(snapshot).explain_behind(spec, line.jobs_ahead, first_of(line));
}

bool Planner::starts_now(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return views::starts_now(view_, std::move(spec), now);
}

views::PlannedStarts Planner::planned_starts(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return views::plan_all_starts(view_);
}

views::PredictedQueue Planner::predicted_starts(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return views::predict_queue(view_, now);
}

}  // namespace gpu_platform::api
