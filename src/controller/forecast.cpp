#include "controller/forecast.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "controller/state.h"

namespace gpu_platform::controller {

namespace {

using scheduling::WaitingJob;

scheduling::Forecast forecast(Picture& picture, const std::vector<WaitingJob>& waiting,
                              base::Instant now) {
  const Snapshot& snapshot = picture.snapshot();
  if (snapshot.policy->reservation_depth == 0) return {};
  std::vector<scheduling::RunningJob> running;
  for (const auto& [key, allocation] : picture.books()->running.ends()) {
    const model::Job* job = snapshot.jobs.find(key.attempt.job.value);
    CHECK(job != nullptr);
    running.push_back(running_job(*job, job->attempts.at(key.attempt.attempt - 1)));
  }
  const scheduling::CycleOptions options = Picture::options(now);
  return scheduling::forecast_starts(
      {picture.books(), *snapshot.policy, options, running, waiting});
}

}  // namespace

void limit_to(scheduling::ExpectedStart& expected, base::Instant promised) {
  expected.p50 = std::min(expected.p50, promised);
  expected.p90 = std::min(expected.p90, promised);
}

scheduling::RunningJob running_job(const model::Job& job, const model::Attempt& attempt) {
  const bool is_seen = attempt.started_at.is_set();
  return {{job.id, attempt.number},
          job.spec.get(),
          &attempt.allocation,
          is_seen ? attempt.started_at : attempt.requested_at,
          latest_end(job, attempt)};
}

scheduling::Forecast forecast_queue(Picture& picture, base::Instant now) {
  std::vector<WaitingJob> waiting;
  picture.queue().for_each_while([&](const WaitingJob& job) {
    waiting.push_back(job);
    return waiting.size() < kMostForecast;
  });
  return forecast(picture, waiting, now);
}

scheduling::Forecast forecast_one(Picture& picture, const WaitingJob& job,
                                  const scheduling::Rank& rank, base::Instant now) {
  std::vector<WaitingJob> waiting;
  picture.queue().for_each_while([&](const WaitingJob& ahead) {
    const bool is_ahead = *picture.queue().find_rank(ahead.id) < rank;
    if (is_ahead) waiting.push_back(ahead);
    return is_ahead && waiting.size() < kMostForecast;
  });
  if (waiting.size() == kMostForecast) return {};
  waiting.push_back(job);
  scheduling::Forecast found = forecast(picture, waiting, now);
  std::erase_if(found.starts, [&](const auto& each) { return each.first != job.id; });
  return found;
}

}  // namespace gpu_platform::controller
