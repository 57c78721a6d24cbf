#include "controller/judge/foresight.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"
#include "controller/forecast.h"

namespace gpu_platform::controller {

namespace {

// Of the first so many reservations something is foreseen, and expected where so few run.
constexpr std::size_t kMostForeseen = 8;
constexpr std::size_t kMostRunning = 2000;
// While many start one after the other, most are gone before what is foreseen of them is of use:
// beyond a few at once it is done ten times a second.
constexpr base::Duration kForeseePause = base::milliseconds(100);
constexpr std::int64_t kForeseenAtOnce = 4;

scheduling::Forecast forecast_of(const State& state, scheduling::Books& books,
                                 std::span<const scheduling::Reservation> reservations,
                                 base::Instant now) {
  if (state.held_attempts.size() > kMostRunning) return {};
  std::vector<scheduling::RunningJob> running;
  for (const model::AttemptId id : state.held_attempts) {
    running.push_back(running_job(*find_job(state, id.job), *find_attempt(state, id)));
  }
  std::vector<scheduling::WaitingJob> waiting;
  for (const scheduling::Reservation& each : reservations) {
    waiting.push_back(*books->queue.find(each.job));
  }
  const scheduling::CycleOptions options{.now = now};
  return scheduling::forecast_starts({books, *state.policy, options, running, waiting});
}

// Those with the latest ends, in the order of their ids.
std::vector<model::JobId> jobs_holding(const State& state, const model::Allocation& allocation) {
  std::map<model::JobId, base::Instant> ends;
  for (const model::NodeAllocation& part : allocation.nodes) {
    const model::Node* node = state.nodes.find(part.node.value);
    CHECK(node != nullptr);
    for (const model::GpuClaim& claim : part.claims) {
      for (const model::GpuHolder& holder : node->gpus.at(claim.gpu_index).holders) {
        const model::JobId job = holder.attempt.job;
        ends[job] = latest_end(*find_job(state, job), *find_attempt(state, holder.attempt));
      }
    }
  }
  while (ends.size() > model::kMostNamedInForecast) {
    ends.erase(std::ranges::min_element(ends, {}, [](const auto& each) { return each.second; }));
  }
  std::vector<model::JobId> jobs;
  for (const auto& [job, end] : ends) jobs.push_back(job);
  return jobs;
}

}  // namespace

Events Foresight::judge(const State& state, scheduling::Books& books,
                        const std::vector<scheduling::Reservation>& reservations,
                        base::Instant now) {
  const std::span first(reservations.data(), std::min(reservations.size(), kMostForeseen));
  const auto is_new = [&](const scheduling::Reservation& each) {
    return !find_job(state, each.job)->forecast.has_value();
  };
  due_at_.reset();
  Events events;
  if (std::ranges::none_of(first, is_new)) return events;
  const base::Instant paid_until = std::max(paid_until_, now) + kForeseePause;
  const base::Duration debt = paid_until - now;
  const base::Duration most(kForeseePause.value() * kForeseenAtOnce);
  if (debt > most) {
    due_at_ = now + (debt - most);
    return events;
  }
  paid_until_ = paid_until;
  const scheduling::Forecast expected = forecast_of(state, books, first, now);
  for (const scheduling::Reservation& each : first) {
    if (!is_new(each)) continue;
    // What was reserved for a moment that has passed since is there at any moment.
    const base::Instant promised = std::max(each.slot.start, now + scheduling::kNextMoment);
    model::StartForecast forecast;
    forecast.by_limits = promised;
    forecast.after = jobs_holding(state, each.slot.allocation);
    if (const auto start = expected.starts.find(each.job); start != expected.starts.end()) {
      scheduling::ExpectedStart limited = start->second;
      limit_to(limited, promised);
      forecast.p50 = limited.p50;
      forecast.p90 = limited.p90;
      forecast.basis = expected.basis;
    }
    events.push_back(model::StartForeseen{each.job, std::move(forecast)});
  }
  return events;
}

}  // namespace gpu_platform::controller
