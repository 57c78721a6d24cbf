#include "scheduling/predict/predicted_starts.h"

#include <algorithm>
#include <limits>
#include <set>

#include "model/job_spec.h"
#include "scheduling/book_entries.h"

namespace gpu_platform::scheduling {

namespace {

using model::PredictionBasis;

// The two quantiles that predictions are made for.
using Quantile = base::Duration PredictedRun::*;

class Predictor {
 public:
  explicit Predictor(const PredictionInputs& inputs) : in_(inputs) {}

  PredictedStarts run() {
    expect_of_running();
    expect_of_waiting();
    if (found_.basis == PredictionBasis::kHardLimits) return {};
    for (const auto& [job, start] : starts_at(&PredictedRun::p50)) found_.starts[job].p50 = start;
    const Starts late = starts_at(&PredictedRun::p90);
    for (auto start = found_.starts.begin(); start != found_.starts.end();) {
      const auto other = late.find(start->first);
      if (other == late.end()) {
        start = found_.starts.erase(start);
        continue;
      }
      // If all jobs take longer, a job may find another gap; that does not promise a later start.
      start->second.p90 = std::max(other->second, start->second.p50);
      ++start;
    }
    return std::move(found_);
  }

  using Starts = std::map<model::JobId, base::Instant>;

  // Without expectations the times of all jobs are their limits.
  Starts by_limits() {
    running_.resize(in_.running.size());
    waiting_.resize(in_.waiting.size());
    return starts_at(&PredictedRun::p90);
  }

 private:
  void expect_of_running() {
    for (const RunningJob& job : in_.running) {
      const base::Duration ran = std::max(in_.options.now - job.since, base::Duration());
      const bool runs = job.latest_end != RunningEnds::kAnyTime;
      running_.push_back(runs ? predicted_run(*job.spec, at_full_speed(ran, job.allocation->speed),
                                              in_.books->history)
                              : std::nullopt);
      note(running_.back());
    }
  }

  // The run time of the last job in the queue affects no other job.
  void expect_of_waiting() {
    for (const WaitingJob& job : in_.waiting) {
      waiting_.push_back(predicted_run(*job.spec, {}, in_.books->history));
      if (&job != &in_.waiting.back()) note(waiting_.back());
    }
  }

  void note(const std::optional<PredictedRun>& predicted) {
    if (!predicted) return;
    found_.basis = std::max(found_.basis, predicted->basis);
    if (!predicted->history || !sources_.insert(predicted->history->source).second) return;
    found_.runs += predicted->history->runs;
  }

  // A job that ends as predicted ends without the grace, which the timeline adds to every end.
  base::Duration without_grace(base::Duration time) const {
    return std::max(time - in_.policy.stop_grace, base::Duration());
  }

  RunningEnds running_ends(Quantile quantile) const {
    RunningEnds ends;
    for (std::size_t i = 0; i < in_.running.size(); ++i) {
      const RunningJob& job = in_.running[i];
      base::Instant end = job.latest_end;
      if (const auto& predicted = running_[i]) {
        const auto run = model::limit_at_speed((*predicted).*quantile, job.allocation->speed);
        end = std::min(end, job.since + without_grace(run));
      }
      ends.put(job.attempt, end, *job.allocation);
    }
    return ends;
  }

  Starts starts_at(Quantile quantile) const {
    Supposition supposed{.queue = WaitingQueue(in_.books->queue.basis()),
                         .running = running_ends(quantile),
                         .predicted = {}};
    for (std::size_t i = 0; i < in_.waiting.size(); ++i) {
      supposed.queue.put(in_.waiting[i], in_.policy);
      if (!waiting_[i]) continue;
      supposed.predicted[in_.waiting[i].id] = without_grace((*waiting_[i]).*quantile);
    }
    model::Policy policy = in_.policy;
    policy.backfill_depth = std::numeric_limits<std::uint32_t>::max();
    // No job is let in by its prediction here: all jobs run as predicted anyway.
    policy.backfill_by_prediction = false;
    CycleOptions options = in_.options;
    options.observer = nullptr;
    options.stages = options.stages.without(Stage::kPreempt);
    const Plan plan = plan_supposed(in_.books, supposed, policy, options);
    Starts starts;
    for (const Start& start : plan.starts) starts[start.job] = options.now;
    for (const PlannedStart& each : plan.planned_starts) starts[each.job] = each.slot.start;
    return starts;
  }

  const PredictionInputs& in_;
  PredictedStarts found_;
  std::set<std::uint64_t> sources_;
  std::vector<std::optional<PredictedRun>> running_;  // beside in_.running
  std::vector<std::optional<PredictedRun>> waiting_;  // beside in_.waiting
};

}  // namespace

RunningJob running_job(const model::Job& job, const model::Attempt& attempt) {
  const bool is_seen = attempt.started_at.is_set();
  return {{job.id, attempt.number},
          job.spec.get(),
          &attempt.allocation,
          is_seen ? attempt.started_at : attempt.requested_at,
          latest_end(job, attempt)};
}

PredictedStarts predict_starts(const PredictionInputs& inputs) {
  return Predictor(inputs).run();
}

std::map<model::JobId, base::Instant> plan_starts(const PredictionInputs& inputs) {
  return Predictor(inputs).by_limits();
}

}  // namespace gpu_platform::scheduling
