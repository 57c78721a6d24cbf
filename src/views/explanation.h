#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "scheduling/explain/counterfactuals.h"
#include "scheduling/predict/predicted_starts.h"
#include "views/planning_view.h"

// Explains why a job waits, until when, and what would start it at once, for waiting jobs and for
// jobs that are not submitted.

namespace gpu_platform::views {

inline constexpr std::size_t kMaxNamed = 5;  // jobs that an explanation names of each kind

// A start that hard limits alone bound; see planned_starts.h.
struct PlannedStartDetail {
  base::Instant start;
  model::Allocation allocation;  // where
  // Jobs that have something of it before, or of what such a job waits for: running ones, and
  // waiting ones with planned starts. Those that end last first, at most kMaxNamed.
  std::vector<model::JobId> after;
  // How far it can be trusted. Nothing if it is promised, and as long as too few starts are known.
  std::optional<scheduling::PlannedTrust> trust = {};

  friend bool operator==(const PlannedStartDetail&, const PlannedStartDetail&) = default;
};

// The jobs that the scheduler considers before it.
struct PlaceInLine {
  std::uint64_t jobs_ahead = 0;
  std::vector<model::JobId> first_ahead;  // in order, at most kMaxNamed

  friend bool operator==(const PlaceInLine&, const PlaceInLine&) = default;
};

// A start that follows from the predicted run times of other jobs; see predicted_starts.h.
struct PredictedStart {
  scheduling::StartQuantiles start;
  model::PredictionBasis basis = model::PredictionBasis::kHistory;
  std::uint64_t runs = 0;

  friend bool operator==(const PredictedStart&, const PredictedStart&) = default;
};

struct Explanation {
  // The place at which it would start, or starts, in this very cycle.
  std::optional<model::Allocation> starts_now;
  PlaceInLine line;
  // Absent if no end of other jobs makes room, and for jobs so far behind that the places of the
  // jobs before them are not computed.
  std::optional<PlannedStartDetail> planned;
  // The changes to its request that would start it at once. Empty if it starts anyway, and if a
  // budget bars it: then it is planned as if its budgets renewed at once, but not before they do.
  std::vector<scheduling::Counterfactual> counterfactuals;
  // The jobs that would be stopped for a job that is not submitted. A waiting job for which others
  // are stopped has a preemption hold.
  std::optional<scheduling::Preemption> preemption;
  // Only with Effort::kThorough. Absent if there are no predictions.
  std::optional<PredictedStart> predicted;
  bool too_many_ahead = false;  // for that: kMaxPredictedInQueue
};

// The effort that an estimate may take.
enum class Effort : std::uint8_t {
  kQuick,  // only behind the planned starts of the scheduler's last cycle
  // Also places for all jobs ahead, in about a second on one core, and what is expected of them.
  kThorough,
};

// Returns whether the job would start if it were submitted now. Cost: a placement.
bool starts_now(PlanningView& view, std::shared_ptr<const model::JobSpec> spec, base::Instant now);

// The job must be QUEUED in the planning view's snapshot. Cost: a step for each job ahead.
PlaceInLine place_in_line(const PlanningView& view, model::JobId job);

// The job must be QUEUED in the planning view's snapshot. `now` is not before it.
Explanation explain_waiting(PlanningView& view, model::JobId job, base::Instant now, Effort effort);

// Returns where and when a job that is submitted now and begins later starts, by hard limits. Fills
// only the line and the estimate.
Explanation plan_new(PlanningView& view, std::shared_ptr<const model::JobSpec> spec);

// Explains the job as if it were submitted now.
Explanation explain_new(PlanningView& view, std::shared_ptr<const model::JobSpec> spec,
                        base::Instant now, Effort effort);

}  // namespace gpu_platform::views
