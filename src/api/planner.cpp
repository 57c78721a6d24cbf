#include "api/planner.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace gpu_platform::api {

base::Instant Planner::follow(const Snapshot& snapshot) {
  view_.follow(snapshot);
  return std::max(os::wall_now(), snapshot->at);
}

controller::Explanation Planner::explain(const Snapshot& snapshot, model::JobId job,
                                         controller::Effort effort) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::explain_waiting(view_, job, now, effort);
}

controller::Explanation Planner::explain(const Snapshot& snapshot,
                                         std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::explain_new(view_, std::move(spec), now, controller::Effort::kThorough);
}

controller::Explanation Planner::plan_new(const Snapshot& snapshot,
                                          std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::plan_new(view_, std::move(spec));
}

controller::PlaceInLine Planner::place_in_line(const Snapshot& snapshot, model::JobId job) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::place_in_line(view_, job);
}

bool Planner::starts_now(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::starts_now(view_, std::move(spec), now);
}

controller::PlannedStarts Planner::planned_starts(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::plan_all_starts(view_);
}

controller::PredictedQueue Planner::predicted_starts(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::predict_queue(view_, now);
}

}  // namespace gpu_platform::api
