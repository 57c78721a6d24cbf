#include "scheduling/cycle/preemptor.h"

#include <utility>

namespace gpu_platform::scheduling {

Preemptor::Preemptor(Ground& ground, Limits& limits)
    : ground_(ground),
      limits_(limits),
      search_(ground.trial, ground.books->victims,
              {ground.options.now, ground.policy.preempt_min_runtime}) {}

bool Preemptor::may_stop_somebody() const {
  return ground_.options.stages.has(Stage::kPreempt) && ground_.policy.allow_preemption &&
         ground_.books->victims.size() > 0;
}

bool Preemptor::may_reclaim(const WaitingJob& job) const {
  return ground_.options.stages.has(Stage::kPreempt) && limits_.may_reclaim(job);
}

std::optional<Slot> Preemptor::make_for(const WaitingJob& job, const std::optional<Slot>& slot) {
  if (!may_stop_somebody()) return std::nullopt;
  const base::Instant fits_at = ground_.options.now + ground_.policy.stop_grace;
  // Whoever is owed room does not wait for what somebody of higher rank may get.
  const bool reclaims = may_reclaim(job);
  if (!reclaims && slot && slot->start <= fits_at) return std::nullopt;
  // What is borrowed goes first, whatever it costs: else work that is its holder's own would.
  std::optional<Fit> fit = reclaims ? find(job, true) : std::nullopt;
  const bool is_reclaimed = fit.has_value();
  const bool comes_soon = slot && slot->start <= fits_at;
  if (!fit && !comes_soon) fit = find(job, false);
  if (!fit) {
    ground_.look_again_at(ground_.books->victims.next_of_age(ground_.options.now,
                                                             ground_.policy.preempt_min_runtime,
                                                             job.spec->priority.priority_class));
    return std::nullopt;
  }
  // Nobody is stopped for a place that a reservation takes before the job can have it.
  const model::JobSpec& spec = *job.spec;
  if (!ground_.timeline.reservations_allow(spec.request, {fits_at, fit->allocation},
                                           spec.time_limit)) {
    return std::nullopt;
  }
  limits_.count(job);
  ground_.plan.preemptions.push_back(
      {job.id, fit->allocation, std::move(fit->victims), is_reclaimed});
  return Slot{fits_at, std::move(fit->allocation)};
}

std::optional<Slot> Preemptor::reclaim_for(const WaitingJob& job) {
  if (reclaims_left_ == 0 || !may_reclaim(job)) return std::nullopt;
  --reclaims_left_;
  return make_for(job, ground_.slot_of(job));
}

std::optional<Fit> Preemptor::find(const WaitingJob& job, bool reclaims) {
  return search_.find({job.spec->request, job.spec->priority.priority_class, reclaims},
                      [&] { return ground_.start_of(job); });
}

}  // namespace gpu_platform::scheduling
