#include "controller/judge/start_predictor.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/prng.h"
#include "controller/promised_start.h"
#include "scheduling/predict/predicted_starts.h"

namespace gpu_platform::controller {

namespace {

// Only the first planned starts are predicted, and only while few enough jobs run.
constexpr std::size_t kMaxPredictedAtOnce = 8;
constexpr std::size_t kMaxRunning = 2000;
// While many jobs start one after the other, most are gone before their prediction is of use:
// beyond a few at once, predictions are made ten times a second.
constexpr base::Duration kPredictPause = base::milliseconds(100);
constexpr std::int64_t kPredictedAtOnce = 4;
// Deep in the queue: a prediction includes all jobs ahead, so it is made rarely, for a few jobs.
constexpr std::size_t kDeepest = 256;
constexpr std::size_t kMaxDeepAtOnce = 8;
constexpr base::Duration kDeepPause = base::minutes(5);

std::vector<scheduling::RunningJob> running_jobs(const State& state) {
  std::vector<scheduling::RunningJob> running;
  for (const model::AttemptId id : state.held_attempts) {
    running.push_back(scheduling::running_job(*find_job(state, id.job), *find_attempt(state, id)));
  }
  return running;
}

scheduling::PredictedStarts predicted_starts_of(
    const State& state, scheduling::Books& books,
    std::span<const scheduling::PlannedStart> planned_starts, base::Instant now) {
  if (state.held_attempts.size() > kMaxRunning) return {};
  const std::vector<scheduling::RunningJob> running = running_jobs(state);
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

// Puts in what is told of the simulated start. `planned` is the time that is kept in the
// prediction.
void put_start(model::StartPrediction& prediction, const scheduling::SimulatedStart& simulated,
               model::PredictionBasis basis, const scheduling::StartCorrections& corrections) {
  const scheduling::StartQuantiles told = corrections.corrected(simulated);
  prediction.p50 = told.p50;
  prediction.p90 = told.p90;
  prediction.basis = basis;
  prediction.simulated_p50 = std::min(simulated.start.p50, simulated.planned);
  prediction.simulated_p90 = std::min(simulated.start.p90, simulated.planned);
}

// Returns whether the job is to be predicted with so many ahead of it. Each job is at one depth
// alone, which follows from its id: else those depths that jobs come through first would get all
// predictions.
bool is_its_depth(model::JobId job, std::size_t jobs_ahead) {
  base::Prng random(job.value);
  const std::size_t depth = 1 + random.below(scheduling::kDepths - 1);
  const std::size_t first = scheduling::kFirstOfDepth[depth];
  const std::size_t end =
      depth + 1 < scheduling::kDepths ? scheduling::kFirstOfDepth[depth + 1] : kDeepest;
  return jobs_ahead >= first && jobs_ahead <= first + random.below(end - first);
}

}  // namespace

Events StartPredictor::judge(const State& state, scheduling::Books& books,
                             const std::vector<scheduling::PlannedStart>& planned_starts,
                             base::Instant now) {
  Events events = judge_first(state, books, planned_starts, now);
  for (model::Event& event : judge_deep(state, books, now)) events.push_back(std::move(event));
  return events;
}

Events StartPredictor::judge_deep(const State& state, scheduling::Books& books, base::Instant now) {
  const bool is_due = now >= deep_at_ && state.policy->backfill_depth > 0 &&
                      books->queue.size() > scheduling::kFirstOfDepth[1] &&
                      state.held_attempts.size() <= kMaxRunning;
  if (!is_due) return {};
  std::vector<scheduling::WaitingJob> waiting;
  std::map<model::JobId, std::size_t> chosen;
  books->queue.for_each_while([&](const scheduling::WaitingJob& job) {
    const bool is_chosen = chosen.size() < kMaxDeepAtOnce && is_its_depth(job.id, waiting.size()) &&
                           !find_job(state, job.id)->early_prediction;
    if (is_chosen) chosen.emplace(job.id, waiting.size());
    waiting.push_back(job);
    return waiting.size() < kDeepest && chosen.size() < kMaxDeepAtOnce;
  });
  if (chosen.empty()) return {};
  // No job behind the last one changes anything.
  waiting.resize(std::ranges::max(chosen | std::views::values) + 1);
  deep_at_ = now + kDeepPause;
  const std::vector<scheduling::RunningJob> running = running_jobs(state);
  const scheduling::CycleOptions options{.now = now};
  const scheduling::PredictionInputs inputs{books, *state.policy, options, running, waiting};
  const auto planned = scheduling::plan_starts(inputs);
  const scheduling::PredictedStarts predicted = scheduling::predict_starts(inputs);
  const auto corrections = state.scores->calibration().corrections();
  Events events;
  for (const auto& [job, jobs_ahead] : chosen) {
    const auto slot = planned.find(job);
    if (slot == planned.end()) continue;
    model::StartPrediction prediction;
    prediction.by_limits = std::max(slot->second, now + scheduling::kNextInstant);
    prediction.jobs_ahead = jobs_ahead;
    if (const auto own = predicted.starts.find(job); own != predicted.starts.end()) {
      put_start(prediction, {now, jobs_ahead, own->second, prediction.by_limits, false},
                predicted.basis, corrections);
    }
    events.push_back(model::StartPredicted{job, std::move(prediction), true});
  }
  return events;
}

Events StartPredictor::judge_first(const State& state, scheduling::Books& books,
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
  const auto corrections = state.scores->calibration().corrections();
  const scheduling::PlannedStart* const promised_one = promised_start(state, planned_starts);
  for (const scheduling::PlannedStart& each : first) {
    if (!is_new(each)) continue;
    // A place planned for a moment that has passed may become free at any moment.
    const base::Instant promised = std::max(each.slot.start, now + scheduling::kNextInstant);
    model::StartPrediction prediction;
    prediction.by_limits = promised;
    prediction.after = jobs_holding(state, each.slot.allocation);
    prediction.jobs_ahead = static_cast<std::uint64_t>(&each - first.data());
    if (const auto start = expected.starts.find(each.job); start != expected.starts.end()) {
      put_start(prediction,
                {now, prediction.jobs_ahead, start->second, promised, &each == promised_one},
                expected.basis, corrections);
    }
    events.push_back(model::StartPredicted{each.job, std::move(prediction), false});
  }
  return events;
}

}  // namespace gpu_platform::controller
