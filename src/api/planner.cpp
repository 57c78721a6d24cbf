#include "api/planner.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace gpu_platform::api {

base::Instant Planner::follow(const Snapshot& snapshot) {
  picture_.follow(snapshot);
  return std::max(os::wall_now(), snapshot->at);
}

controller::Explanation Planner::explain(const Snapshot& snapshot, model::JobId job,
                                         controller::Effort effort) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::explain_waiting(picture_, job, now, effort);
}

controller::Explanation Planner::explain(const Snapshot& snapshot,
                                         std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::explain_new(picture_, std::move(spec), now, controller::Effort::kThorough);
}

controller::Explanation Planner::foresee(const Snapshot& snapshot,
                                         std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::foresee_new(picture_, std::move(spec));
}

controller::PlaceInLine Planner::place_in_line(const Snapshot& snapshot, model::JobId job) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::place_in_line(picture_, job);
}

bool Planner::starts_now(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::starts_now(picture_, std::move(spec), now);
}

controller::StartEstimates Planner::estimates(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  follow(snapshot);
  return controller::estimate_starts(picture_);
}

scheduling::Forecast Planner::forecast(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  const base::Instant now = follow(snapshot);
  return controller::forecast_queue(picture_, now);
}

}  // namespace gpu_platform::api
