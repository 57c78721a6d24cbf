#include "views/predicted_starts.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::views {

namespace {

using scheduling::WaitingJob;

scheduling::PredictedStarts prediction(PlanningView& view, const std::vector<WaitingJob>& waiting,
                                       base::Instant now) {
  const controller::Snapshot& snapshot = view.snapshot();
  if (snapshot.policy->backfill_depth == 0) return {};
  std::vector<scheduling::RunningJob> running;
  for (const auto& [key, allocation] : view.books()->running.ends()) {
    const model::Job* job = snapshot.jobs.find(key.attempt.job.value);
    CHECK(job != nullptr);
    running.push_back(scheduling::running_job(*job, job->attempts.at(key.attempt.attempt - 1)));
  }
  const scheduling::CycleOptions options = PlanningView::options(now);
  return scheduling::predict_starts({view.books(), *snapshot.policy, options, running, waiting});
}

}  // namespace

PredictedQueue predict_queue(PlanningView& view, base::Instant now) {
  PredictedQueue found{.made_at = now, .prediction = {}, .jobs_ahead = {}};
  std::vector<WaitingJob> waiting;
  view.queue().for_each_while([&](const WaitingJob& job) {
    found.jobs_ahead.emplace(job.id, found.jobs_ahead.size());
    if (waiting.size() < kMaxPredictedInQueue) waiting.push_back(job);
    return true;
  });
  found.prediction = prediction(view, waiting, now);
  return found;
}

scheduling::PredictedStarts predict_one(PlanningView& view, const WaitingJob& job,
                                        const scheduling::Rank& rank, base::Instant now) {
  std::vector<WaitingJob> waiting;
  view.queue().for_each_while([&](const WaitingJob& ahead) {
    const bool is_ahead = *view.queue().find_rank(ahead.id) < rank;
    if (is_ahead) waiting.push_back(ahead);
    return is_ahead && waiting.size() < kMaxPredictedInQueue;
  });
  if (waiting.size() == kMaxPredictedInQueue) return {};
  waiting.push_back(job);
  scheduling::PredictedStarts found = prediction(view, waiting, now);
  std::erase_if(found.starts, [&](const auto& each) { return each.first != job.id; });
  return found;
}

}  // namespace gpu_platform::views
