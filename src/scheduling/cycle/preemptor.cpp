#include "scheduling/cycle/preemptor.h"

#include <string>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/placement/place.h"

namespace gpu_platform::scheduling {

Preemptor::Preemptor(CycleState& cycle, Limits& limits)
    : cycle_(cycle),
      limits_(limits),
      search_(cycle.trial, cycle.books->victims, {cycle.options.now}) {}

bool Preemptor::may_stop_jobs() const {
  return cycle_.options.stages.has(Stage::kPreempt) && cycle_.policy.allow_preemption &&
         cycle_.books->victims.size() > 0;
}

bool Preemptor::may_reclaim(const WaitingJob& job) const {
  return cycle_.options.stages.has(Stage::kPreempt) && !limits_.pools_to_reclaim_in(job).empty();
}

std::optional<Preemption> Preemptor::stops_for(const WaitingJob& job,
                                               const std::optional<Slot>& slot) {
  const WaitingJob* const settled =
      may_stop_jobs() ? limits_.narrowed(job, Purpose::kStops) : nullptr;
  if (settled == nullptr) return std::nullopt;
  const base::Instant fits_at = cycle_.options.now + cycle_.policy.stop_grace;
  // A job that reclaims its guarantee does not wait for GPUs that a higher-ranked job may get.
  const VictimIndex::PoolNames pools = limits_.pools_to_reclaim_in(job);
  const bool comes_soon = slot && slot->start <= fits_at;
  if (pools.empty() && comes_soon) return std::nullopt;
  // Borrowed work is stopped first, at any cost: else a holder's own work would be.
  model::PreemptionRule rule = model::PreemptionRule::kReclaim;
  const WaitingJob* const own = pools.empty() ? nullptr : limits_.narrowed(job, Purpose::kReclaim);
  std::optional<Fit> fit = own == nullptr ? std::nullopt : find(*own, rule, pools);
  if (!fit && !comes_soon) {
    rule = job.overdue_since.is_set() ? model::PreemptionRule::kOverdue
                                      : model::PreemptionRule::kClass;
    fit = find(*settled, rule);
  }
  if (!fit) return std::nullopt;
  // No job is stopped for a place that a reservation takes before the job can have it.
  const model::JobSpec& spec = *job.spec;
  if (!cycle_.timeline.reservations_allow(spec.request, {fits_at, fit->allocation},
                                          spec.time_limit)) {
    return std::nullopt;
  }
  return Preemption{job.id, std::move(fit->allocation), std::move(fit->victims), rule};
}

std::optional<Slot> Preemptor::make_for(const WaitingJob& job, const std::optional<Slot>& slot) {
  std::optional<Preemption> stops = stops_for(job, slot);
  if (!stops) {
    look_again_for(job, slot);
    return std::nullopt;
  }
  search_.take(stops->victims);
  limits_.count_beneficiary(job, stops->held);
  cycle_.plan.preemptions.push_back(*stops);
  return Slot{cycle_.options.now + cycle_.policy.stop_grace, std::move(stops->held)};
}

std::optional<Slot> Preemptor::reclaim_for(const WaitingJob& job) {
  if (reclaims_left_ == 0 || !may_reclaim(job)) return std::nullopt;
  --reclaims_left_;
  return make_for(job, cycle_.slot_of(job));
}

// When others will have run for long enough to be stopped for it.
void Preemptor::look_again_for(const WaitingJob& job, const std::optional<Slot>& slot) {
  if (!may_stop_jobs() || limits_.narrowed(job, Purpose::kStops) == nullptr) return;
  const VictimIndex::PoolNames pools = limits_.pools_to_reclaim_in(job);
  const bool comes_soon = slot && slot->start <= cycle_.options.now + cycle_.policy.stop_grace;
  if (pools.empty() && comes_soon) return;
  const VictimIndex& victims = cycle_.books->victims;
  const base::Instant now = cycle_.options.now;
  const auto own = job.spec->priority.priority_class;
  const bool is_overdue = job.overdue_since.is_set();
  cycle_.look_again_at(
      victims.next_of_age(now, is_overdue ? VictimIndex::from(own) : VictimIndex::below(own)));
  if (!pools.empty()) cycle_.look_again_at(victims.next_to_reclaim(now, pools));
}

std::optional<Fit> Preemptor::find(const WaitingJob& job, model::PreemptionRule rule,
                                   const VictimIndex::PoolNames& pools) {
  const std::string team = StarvationQueue::team_of(*job.spec);
  return search_.find({job.spec->request, job.spec->priority.priority_class, rule, team, pools},
                      [&] { return cycle_.start_after_grace(job); });
}

std::optional<Slot> Preemptor::slot_with_stops(const WaitingJob& job) {
  if (!job.overdue_since.is_set() || !may_stop_jobs()) return std::nullopt;
  const WaitingJob* const settled = limits_.narrowed(job, Purpose::kStops);
  if (settled == nullptr ||
      !some_node_up_could_hold(cycle_.trial.cluster(), settled->spec->request)) {
    return std::nullopt;
  }
  const model::JobSpec& spec = *settled->spec;
  const std::string team = StarvationQueue::team_of(spec);
  const auto stoppable = search_.stoppable_from(
      {spec.request, spec.priority.priority_class, model::PreemptionRule::kOverdue, team});
  if (stoppable.empty()) return std::nullopt;
  return cycle_.timeline.earliest(spec.request, spec.time_limit, stoppable);
}

}  // namespace gpu_platform::scheduling
