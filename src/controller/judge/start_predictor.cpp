#include "controller/judge/start_predictor.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"
#include "controller/predicted_starts.h"

namespace gpu_platform::controller {

namespace {

// Only the first planned starts are predicted, and only while few enough jobs run.
constexpr std::size_t kMaxPredictedAtOnce = 8;
constexpr std::size_t kMaxRunning = 2000;
// While many jobs start one after the other, most are gone before their prediction is of use:
// beyond a few at once, predictions are made ten times a second.
constexpr base::Duration kPredictPause = base::milliseconds(100);
constexpr std::int64_t kPredictedAtOnce = 4;

scheduling::PredictedStarts predicted_starts_of(
    const State& state, scheduling::Books& books,
    std::span<const scheduling::PlannedStart> planned_starts, base::Instant now) {
  if (state.held_attempts.size() > kMaxRunning) return {};
  std::vector<scheduling::RunningJob> running;
  for (const model::AttemptId id : state.held_attempts) {
    running.push_back(running_job(*find_job(state, id.job), *find_attempt(state, id)));
  }
  std::vector<scheduling::WaitingJob> waiting;
  for (const scheduling::PlannedStart& each : planned_starts) {
    waiting.push_back(*books->queue.find(each.job));
  }
  const scheduling::CycleOptions options{.now = now};
  return scheduling::predict_starts({books, *state.policy, options, running, waiting});
}

// Returns the jobs on these GPUs with the latest ends, in the order of their ids.
std::vector<model::JobId> jobs_holding(const State& state, const model::Allocation& allocation) {
  std::map<model::JobId, base::Instant> ends;
  for (const model::NodeAllocation& part : allocation.nodes) {
    const model::Node* node = state.nodes.find(part.node.value);
    CHECK(node != nullptr);
    for (const model::GpuGrant& grant : part.grants) {
      for (const model::GpuHolder& holder : node->gpus.at(grant.gpu_index).holders) {
        const model::JobId job = holder.attempt.job;
        ends[job] = latest_end(*find_job(state, job), *find_attempt(state, holder.attempt));
      }
    }
  }
  while (ends.size() > model::kMaxNamedInPrediction) {
    ends.erase(std::ranges::min_element(ends, {}, [](const auto& each) { return each.second; }));
  }
  std::vector<model::JobId> jobs;
  for (const auto& [job, end] : ends) jobs.push_back(job);
  return jobs;
}

}  // namespace

Events StartPredictor::judge(const State& state, scheduling::Books& books,
                             const std::vector<scheduling::PlannedStart>& planned_starts,
                             base::Instant now) {
  const std::span first(planned_starts.data(),
                        std::min(planned_starts.size(), kMaxPredictedAtOnce));
  const auto is_new = [&](const scheduling::PlannedStart& each) {
    return !find_job(state, each.job)->prediction.has_value();
  };
  due_at_.reset();
  Events events;
  if (std::ranges::none_of(first, is_new)) return events;
  const base::Instant paid_until = std::max(paid_until_, now) + kPredictPause;
  const base::Duration debt = paid_until - now;
  const base::Duration most(kPredictPause.value() * kPredictedAtOnce);
  if (debt > most) {
    due_at_ = now + (debt - most);
    return events;
  }
  paid_until_ = paid_until;
  const scheduling::PredictedStarts expected = predicted_starts_of(state, books, first, now);
  for (const scheduling::PlannedStart& each : first) {
    if (!is_new(each)) continue;
    // A place planned for a moment that has passed may become free at any moment.
    const base::Instant promised = std::max(each.slot.start, now + scheduling::kNextInstant);
    model::StartPrediction prediction;
    prediction.by_limits = promised;
    prediction.after = jobs_holding(state, each.slot.allocation);
    if (const auto start = expected.starts.find(each.job); start != expected.starts.end()) {
      scheduling::StartQuantiles limited = start->second;
      limit_to(limited, promised);
      prediction.p50 = limited.p50;
      prediction.p90 = limited.p90;
      prediction.basis = expected.basis;
    }
    events.push_back(model::StartPredicted{each.job, std::move(prediction)});
  }
  return events;
}

}  // namespace gpu_platform::controller
