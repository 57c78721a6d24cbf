#include "scheduling/cycle/stages.h"

#include <algorithm>
#include <utility>

#include "scheduling/backfill/yielding.h"
#include "scheduling/placement/place.h"
#include "scheduling/predict/predicted_run.h"
#include "scheduling/preemption/amounts_on_hold.h"

namespace gpu_platform::scheduling {

namespace {

void start(Ground& ground, Limits& limits, const WaitingJob& job, model::Allocation allocation,
           model::StartWhy why, base::Instant yields_at = {}) {
  std::optional<base::Instant> gone_by;
  if (yields_at.is_set()) gone_by = yields_at + ground.policy.stop_grace;
  ground.timeline.start(allocation, ground.held_for(job), gone_by);
  limits.count(job);
  const bool passes = why == model::StartWhy::kBackfill;
  const model::JobId passed = passes ? ground.plan.planned_starts.front().job : model::JobId();
  ground.plan.starts.push_back({job.id, std::move(allocation), why, passed, yields_at});
}

// Of one that starts where places are kept, or none is.
model::StartWhy why_of(const Ground& ground) {
  return ground.plan.planned_starts.empty() ? model::StartWhy::kImmediate
                                            : model::StartWhy::kBackfill;
}

// Whether it is free without what others have held on the same nodes: of CPUs and memory any may
// be free, and theirs are not to be taken with what only looks like this one's.
bool is_free_beside(Trial& trial, const AmountsOnHold& held, const model::Allocation& allocation) {
  if (!is_free(trial.cluster(), allocation)) return false;
  const Trial::Mark mark = trial.mark();
  for (const model::NodeAllocation& part : allocation.nodes) {
    trial.withhold(part.node, held.beside(part));
  }
  const bool is_free_beside = is_free(trial.cluster(), allocation);
  trial.rollback_to(mark);
  return is_free_beside;
}

// Its beneficiary would meet a reservation there, were it to start only now.
bool is_void(const Ground& ground, const model::PreemptionHold& hold, const WaitingJob& job) {
  return !ground.timeline.reservations_allow(
      job.spec->request, {ground.options.now, hold.allocation}, job.spec->time_limit);
}

}  // namespace

// ---- placing

void Placing::run() {
  start_or_keep_holds();
  if (!line_.is_ordered) {
    ground_.queue.for_each_by_id_while(
        [this](const WaitingJob& job) { return consider(job) != Next::kStop; });
    return;
  }
  while (const Rank* rank = line_.walk.next()) {
    const Next next = consider(ground_.queue.find(*rank));
    if (next == Next::kStop) return;
    if (next == Next::kSkipClass) line_.walk.drop_class();
  }
}

// What is not free yet is kept from now on, and counts against limits as if it were there. A limit
// lowered since keeps the job back, and its preemption hold.
void Placing::start_or_keep_holds() {
  const PreemptionHolds::Map& holds = ground_.books->holds.all();
  AmountsOnHold held;
  for (const auto& [id, hold] : holds) held.add(hold.allocation);
  for (const auto& [id, hold] : holds) {
    const WaitingJob* job = ground_.queue.find(id);
    if (job != nullptr && is_void(ground_, hold, *job)) {
      ground_.plan.void_holds.push_back(id);
      held.remove(hold.allocation);
      continue;
    }
    const bool may_start = job != nullptr && limits_.may_have_held(*job);
    if (may_start && is_free_beside(ground_.trial, held, hold.allocation) &&
        ground_.may_start_more()) {
      start(ground_, limits_, *job, hold.allocation, model::StartWhy::kPreempted);
      started_by_hold_.insert(id);
      held.remove(hold.allocation);
    } else {
      keep(hold);
    }
  }
}

void Placing::keep(const model::PreemptionHold& hold) {
  const WaitingJob* job = ground_.queue.find(hold.beneficiary);
  if (job == nullptr) return;
  ground_.keep_from_now(ground_.kept_slot(hold), ground_.held_for(*job));
  if (!limits_.is_over_limits(*job)) limits_.count(*job);
}

// What was reserved for a moment that has passed since is there at any moment.
void Placing::keep(std::span<const PlannedStart> planned_starts) {
  for (const auto& [id, hold] : ground_.books->holds.all()) keep(hold);
  for (const PlannedStart& each : planned_starts) {
    const WaitingJob* job = ground_.queue.find(each.job);
    if (job == nullptr) continue;
    Slot slot = each.slot;
    slot.start = std::max(slot.start, ground_.options.now + kNextInstant);
    ground_.timeline.book(slot, job->spec->time_limit);
  }
}

bool Placing::has_started_by_hold(const WaitingJob& job) const {
  return !started_by_hold_.empty() && started_by_hold_.contains(job.id);
}

Next Placing::consider(const WaitingJob& job) {
  if (!ground_.may_start_more()) return Next::kStop;
  if (has_started_by_hold(job)) return Next::kGoOn;
  const bool is_unplaceable = std::ranges::any_of(
      unplaceable_, [&](const auto* known) { return *known == job.spec->request; });
  if (is_unplaceable || limits_.is_over_quota(job) || borrowers_.take(job)) {
    return Next::kSkipClass;
  }
  std::optional<model::Allocation> allocation = ground_.start_of(job);
  if (!allocation) return pass_or_block(job);
  start(ground_, limits_, job, *std::move(allocation), model::StartWhy::kImmediate);
  return Next::kGoOn;
}

Next Placing::pass_or_block(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (ground_.options.pass_unplaceable &&
      !some_node_up_could_hold(ground_.trial.cluster(), request)) {
    unplaceable_.push_back(&request);
    return Next::kSkipClass;
  }
  line_.blocked = &job;
  ground_.plan.blocked_head = job.id;
  return Next::kStop;
}

// ---- backfilling

void Backfilling::run() {
  Next next = reserve_for(*line_.blocked);
  while (next != Next::kStop) {
    if (next == Next::kSkipClass) line_.walk.drop_class();
    const Rank* rank = line_.walk.next();
    if (rank == nullptr) return;
    next = consider(ground_.queue.find(*rank));
  }
}

Next Backfilling::consider(const WaitingJob& job) {
  if (!ground_.may_start_more()) return Next::kStop;
  if (placing_.has_started_by_hold(job)) return Next::kGoOn;
  if (limits_.is_over_quota(job) || borrowers_.take(job)) return Next::kSkipClass;
  if (std::optional<model::Allocation> allocation = ground_.start_of(job)) {
    start(ground_, limits_, job, *std::move(allocation), why_of(ground_));
    return Next::kGoOn;
  }
  if (std::optional<TrustedStart> trusted = trusted_start_of(job)) {
    start(ground_, limits_, job, std::move(trusted->allocation), why_of(ground_),
          trusted->yields_at);
    return Next::kGoOn;
  }
  const Next next = reserve_for(job);
  // Others of its class may be trusted where it may not.
  return next == Next::kSkipClass && job.preemptions > 0 ? Next::kGoOn : next;
}

Next Backfilling::reserve_for(const WaitingJob& job) {
  const model::PreemptionHold* hold = ground_.hold_of(job);
  if (ground_.plan.planned_starts.size() >= ground_.depth) {
    if (hold != nullptr) return Next::kGoOn;
    const std::optional<Slot> fit = preemptor_.reclaim_for(job);
    if (!fit) return Next::kSkipClass;
    ground_.keep_from_now(*fit, job.spec->time_limit);
    return Next::kGoOn;
  }
  if (hold != nullptr) {
    ground_.plan.planned_starts.push_back({job.id, ground_.kept_slot(*hold)});
    return Next::kGoOn;
  }
  std::optional<Slot> slot = ground_.slot_of(job);
  if (std::optional<Slot> fit = preemptor_.make_for(job, slot)) {
    ground_.keep_from_now(*fit, ground_.held_for(job));
    slot = std::move(fit);
  } else if (slot) {
    ground_.timeline.book(*slot, ground_.held_for(job));
  } else {
    return Next::kSkipClass;
  }
  ground_.plan.planned_starts.push_back({job.id, *std::move(slot)});
  return Next::kGoOn;
}

// Once it was stopped for others it waits for a place of its own.
bool Backfilling::may_be_trusted(const WaitingJob& job) const {
  const model::Policy& policy = ground_.policy;
  return policy.backfill_by_prediction && job.preemptions == 0 &&
         policy.max_preemptions_per_job > 0 && ground_.timeline.bookings() > 0 &&
         model::may_borrow(*job.spec, policy);
}

std::optional<Backfilling::TrustedStart> Backfilling::trusted_start_of(const WaitingJob& job) {
  if (!may_be_trusted(job)) return std::nullopt;
  const base::Duration limit = job.spec->time_limit;
  const auto predicted = predicted_run(*job.spec, {}, ground_.books->history);
  if (!predicted || predicted->p90 >= limit) return std::nullopt;
  std::optional<model::Allocation> allocation = ground_.start_of(job, predicted->p90);
  if (!allocation) return std::nullopt;
  const auto touched = ground_.timeline.first_touched(*allocation, limit);
  return TrustedStart{
      *std::move(allocation),
      touched ? grace_before(*touched, ground_.policy.stop_grace) : base::Instant()};
}

// ---- those who borrow

bool Borrowers::take(const WaitingJob& job) {
  const bool borrows = limits_.would_borrow(job);
  has_any_ = has_any_ || borrows;
  return borrows;
}

void Borrowers::run() {
  std::set<model::JobId> started;
  for (const Start& each : ground_.plan.starts) started.insert(each.job);
  WaitingClasses::Walk walk(ground_.queue.classes());
  while (const Rank* rank = walk.next()) {
    if (!ground_.may_start_more()) return;
    const WaitingJob& job = ground_.queue.find(*rank);
    if (started.contains(job.id)) continue;
    std::optional<model::Allocation> allocation;
    if (!limits_.is_over_quota(job) && limits_.would_borrow(job)) {
      allocation = ground_.start_of(job);
    }
    if (allocation) {
      start(ground_, limits_, job, *std::move(allocation), why_of(ground_));
    } else {
      walk.drop_class();
    }
  }
}

}  // namespace gpu_platform::scheduling
