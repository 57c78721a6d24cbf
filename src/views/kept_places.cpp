#include "views/kept_places.h"

#include <algorithm>

#include "model/job_spec.h"
#include "scheduling/backfill/timeline.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/trial.h"

namespace gpu_platform::views {

// Planned starts are in the order of ranks. A job that would be submitted now is behind them all.
std::size_t KeptPlaces::planned_before(const scheduling::Rank* rank) const {
  if (snapshot().planned_starts == nullptr) return 0;
  const auto& planned = *snapshot().planned_starts;
  if (rank == nullptr) return planned.size();
  const auto behind = std::ranges::find_if(planned, [&](const scheduling::PlannedStart& each) {
    const model::Job* job = snapshot().jobs.find(each.job.value);
    return job != nullptr && !(scheduling::rank_of(*job, *snapshot().order) < *rank);
  });
  return static_cast<std::size_t>(behind - planned.begin());
}

std::optional<KeptPlace> KeptPlaces::kept_from(const model::JobSpec& spec,
                                               const scheduling::Rank* rank, bool comes_last) {
  const std::size_t ahead = planned_before(comes_last ? nullptr : rank);
  if (ahead == 0 && snapshot().holds == nullptr) return std::nullopt;
  for (const Known& known : known_) {
    if (known.request == spec.request && known.time_limit == spec.time_limit &&
        known.planned_ahead == ahead)
      return known.kept;
  }
  known_.push_back({spec.request, spec.time_limit, ahead, find(spec, ahead)});
  return known_.back().kept;
}

// The first of them beside which, and those before it, the request has no place now: without it the
// answer is another. By the scheduler's own rule for what is kept (backfill/timeline.h).
std::optional<KeptPlace> KeptPlaces::find(const model::JobSpec& spec, std::size_t planned_ahead) {
  const base::Instant now = snapshot().at;
  const scheduling::Reservations none;
  scheduling::Trial trial(books_->cluster());
  scheduling::Timeline timeline(trial, books_->running(),
                                snapshot().reservations ? *snapshot().reservations : none,
                                {.now = now, .grace = snapshot().policy->stop_grace});
  const auto is_in_the_way = [&](const model::Job& job, const scheduling::Slot& slot) {
    timeline.book(slot, job.spec->time_limit);
    return !timeline.place_now(spec.request, spec.time_limit);
  };
  const auto kept = [&](model::JobId job, base::Instant start) {
    return KeptPlace{job, start > now + scheduling::kNextInstant ? start : base::Instant()};
  };
  if (snapshot().holds != nullptr) {
    for (const auto& [id, hold] : snapshot().holds->all()) {
      const model::Job* job = snapshot().jobs.find(id.value);
      if (job == nullptr || !is_in_the_way(*job, {now, hold.allocation})) continue;
      return kept(id, hold.decided_at + snapshot().policy->stop_grace);
    }
  }
  for (std::size_t i = 0; i < planned_ahead; ++i) {
    const auto& [id, slot, kept_from] = (*snapshot().planned_starts)[i];
    const model::Job* job = snapshot().jobs.find(id.value);
    if (job == nullptr) continue;
    const base::Instant start = std::max(kept_from, now + scheduling::kNextInstant);
    if (is_in_the_way(*job, {start, slot.allocation})) return kept(id, start);
  }
  return std::nullopt;
}

}  // namespace gpu_platform::views
