#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/units.h"
#include "views/explanation.h"
#include "views/planned_starts.h"
#include "views/predicted_starts.h"
#include "views/wait_explainer.h"

namespace gpu_platform::api {

// Answers what-if questions about the newest snapshot. From the first question on, it keeps a
// second index of nodes, waiting and running jobs.
//
// Thread: safe from any; one question at a time. Cost: what changed since the last question, and
// the question's own (controller/explanation.h).
class Planner {
 public:
  using Snapshot = std::shared_ptr<const controller::Snapshot>;

  // The job must be QUEUED in the snapshot.
  views::Explanation explain(const Snapshot& snapshot, model::JobId job, views::Effort effort);
  // Plans a job that is not submitted.
  views::Explanation explain(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec);
  // The same for a job that begins only later.
  views::Explanation plan_new(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec);
  views::PlaceInLine place_in_line(const Snapshot& snapshot, model::JobId job);
  // Returns why the job waits, which is QUEUED in the snapshot or not submitted. `line`: its place.
  model::WaitReason wait_reason(const Snapshot& snapshot, const model::Job& job,
                                const views::PlaceInLine& line);
  model::WaitReason wait_reason(const Snapshot& snapshot, const model::JobSpec& spec,
                                const views::PlaceInLine& line);
  bool starts_now(const Snapshot& snapshot, std::shared_ptr<const model::JobSpec> spec);
  views::PlannedStarts planned_starts(const Snapshot& snapshot);
  views::PredictedQueue predicted_starts(const Snapshot& snapshot);

 private:
  // The present, which is never before the snapshot.
  base::Instant follow(const Snapshot& snapshot);
  // Of the snapshot, which the view is at then.
  views::WaitExplainer& explainer(const Snapshot& snapshot);

  std::mutex mutex_;
  views::PlanningView view_;
  // The explainer of the latest snapshot: it remembers its results.
  Snapshot explained_;
  std::optional<views::WaitExplainer> explainer_;
};

}  // namespace gpu_platform::api
