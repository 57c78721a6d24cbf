#include "scheduling/cycle/stages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/predict/run_history.h"
#include "scheduling/preemption/preemption_holds.h"

namespace gpu_platform::scheduling {

namespace {

void start(CycleState& cycle, Limits& limits, const WaitingJob& job, model::Allocation allocation,
           model::StartWhy why, base::Instant yields_at = {}) {
  std::optional<base::Instant> gone_by;
  if (yields_at.is_set()) gone_by = yields_at + cycle.policy.stop_grace;
  cycle.timeline.start(allocation, cycle.held_for(job), gone_by);
  limits.count(job, allocation);
  const bool passes = why == model::StartWhy::kBackfill;
  const model::JobId passed = passes ? cycle.plan.planned_starts.front().job : model::JobId();
  cycle.plan.starts.push_back({job.id, std::move(allocation), why, passed, yields_at});
}

// Returns the reason of a start: backfill if places are kept, else immediate.
model::StartWhy why_of(const CycleState& cycle) {
  return cycle.plan.planned_starts.empty() ? model::StartWhy::kImmediate
                                           : model::StartWhy::kBackfill;
}

// Returns whether the allocation is free beside what other holds have on the same nodes. Free CPUs
// and memory are not tied to a hold, so a beneficiary could take another one's share.
bool is_free_beside(Trial& trial, const AmountsOnHold& held, const model::Allocation& allocation,
                    Accepts accepts) {
  if (!is_free(trial.cluster(), allocation, accepts)) return false;
  const Trial::Mark mark = trial.mark();
  for (const model::NodeAllocation& part : allocation.nodes) {
    trial.withhold(part.node, held.beside(part));
  }
  const bool is_free_beside = is_free(trial.cluster(), allocation, accepts);
  trial.rollback_to(mark);
  return is_free_beside;
}

Accepts accepted_by(const WaitingJob& job) {
  return job.spec->request.accept_degraded ? Accepts::kDegraded : Accepts::kHealthy;
}

// Returns true if the beneficiary would meet a reservation there if it started only now.
bool is_void(const CycleState& cycle, const model::PreemptionHold& hold, const WaitingJob& job) {
  return !cycle.timeline.reservations_allow(job.spec->request, {cycle.options.now, hold.allocation},
                                            job.spec->time_limit);
}

// Returns the time at which an attempt that is to be gone at `at` is told to stop.
base::Instant grace_before(base::Instant at, base::Duration grace) {
  const base::Instant epoch;
  return epoch + (at - epoch - grace);
}

constexpr base::Instant kForEver(std::numeric_limits<std::int64_t>::max());

// The place that an attempt stands in the way of.
struct Found {
  const PlannedStart* place = nullptr;  // the first that would be free without it
  bool is_known = true;  // false: other victims of a beneficiary still hold what they give up
};

Found first_in_the_way_of(model::AttemptId attempt, Timeline& timeline,
                          const std::vector<PlannedStart>& kept, const Timeline::Staying& staying) {
  Timeline::Staying with_it = staying;
  with_it[attempt] = kForEver;
  Found found;
  for (const PlannedStart& each : kept) {
    const bool is_later = found.place != nullptr && found.place->slot.start <= each.slot.start;
    if (is_later || timeline.is_there_despite(with_it, each.slot)) continue;
    if (timeline.is_there_despite(staying, each.slot)) {
      found.place = &each;
    } else {
      found.is_known = false;
    }
  }
  return found;
}

}  // namespace

// ---- placing

void Placing::run() {
  start_or_keep_holds();
  if (!line_.is_ordered) {
    cycle_.queue.for_each_by_id_while(
        [this](const WaitingJob& job) { return consider(job) != Next::kStop; });
    return;
  }
  while (const Rank* rank = line_.next()) {
    const Next next = consider(cycle_.queue.find(*rank));
    if (next == Next::kStop) return;
    if (next == Next::kSkipClass) line_.walk.drop_class();
  }
}

// Resources that are not free yet are kept from now on and count against limits as if the job held
// them. If a limit was lowered since, it keeps the job back, and so its preemption hold.
void Placing::start_or_keep_holds() {
  const PreemptionHolds::Map& holds = cycle_.books->holds.all();
  AmountsOnHold held;
  for (const auto& [id, hold] : holds) held.add(hold.allocation);
  for (const auto& [id, hold] : holds) {
    const WaitingJob* job = cycle_.queue.find(id);
    if (job != nullptr && is_void(cycle_, hold, *job)) {
      cycle_.plan.void_holds.push_back(id);
      held.remove(hold.allocation);
      continue;
    }
    const bool may_start = job != nullptr && limits_.may_have_held(*job, hold.allocation);
    if (may_start && is_free_beside(cycle_.trial, held, hold.allocation, accepted_by(*job)) &&
        cycle_.may_start_more()) {
      start(cycle_, limits_, *job, hold.allocation, model::StartWhy::kPreempted);
      started_by_hold_.insert(id);
      held.remove(hold.allocation);
    } else {
      keep(hold);
    }
  }
}

void Placing::keep(const model::PreemptionHold& hold) {
  const WaitingJob* job = cycle_.queue.find(hold.beneficiary);
  if (job == nullptr) return;
  cycle_.keep_from_now(cycle_.kept_slot(hold), cycle_.held_for(*job));
  if (!limits_.is_over_limits(*job, hold.allocation)) limits_.count(*job, hold.allocation);
}

// A place planned for a moment that has passed may become free at any moment.
void Placing::keep(std::span<const PlannedStart> planned_starts) {
  for (const auto& [id, hold] : cycle_.books->holds.all()) keep(hold);
  for (const PlannedStart& each : planned_starts) {
    const WaitingJob* job = cycle_.queue.find(each.job);
    if (job == nullptr || cycle_.books->holds.find(each.job) != nullptr) continue;
    const base::Instant kept_from = std::max(each.kept_from, cycle_.options.now + kNextInstant);
    const base::Instant start = std::max(each.slot.start, kept_from);
    cycle_.timeline.book({kept_from, each.slot.allocation},
                         cycle_.held_for(*job) + (start - kept_from));
    cycle_.keeps_place_of_overdue |= job->overdue_since.is_set();
  }
}

bool Placing::has_started_by_hold(const WaitingJob& job) const {
  return !started_by_hold_.empty() && started_by_hold_.contains(job.id);
}

Next Placing::consider(const WaitingJob& job) {
  if (!cycle_.may_start_more()) return Next::kStop;
  if (has_started_by_hold(job)) return Next::kGoOn;
  const bool is_unplaceable = std::ranges::any_of(
      unplaceable_, [&](const auto* known) { return *known == job.spec->request; });
  if (is_unplaceable || limits_.is_over_limits(job)) return Next::kSkipClass;
  const WaitingJob* const narrowed = borrowers_.in_turn(job);
  if (narrowed == nullptr) return Next::kSkipClass;
  std::optional<model::Allocation> allocation = cycle_.start_of(*narrowed);
  if (!allocation) return pass_or_block(job);
  start(cycle_, limits_, job, *std::move(allocation), model::StartWhy::kImmediate);
  return Next::kGoOn;
}

Next Placing::pass_or_block(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (cycle_.options.pass_unplaceable &&
      !some_node_up_could_hold(cycle_.trial.cluster(), request)) {
    unplaceable_.push_back(&request);
    return Next::kSkipClass;
  }
  line_.blocked = &job;
  cycle_.plan.blocked_head = job.id;
  return Next::kStop;
}

// ---- backfilling

void Backfilling::run() {
  const WaitingJob* const head = limits_.narrowed(*line_.blocked, Purpose::kTurn);
  Next next = head == nullptr ? Next::kSkipClass : reserve_for(*head);
  while (next != Next::kStop) {
    if (next == Next::kSkipClass) line_.walk.drop_class();
    const Rank* rank = line_.next();
    if (rank == nullptr) return;
    next = consider(cycle_.queue.find(*rank));
  }
}

Next Backfilling::consider(const WaitingJob& waiting) {
  if (!cycle_.may_start_more()) return Next::kStop;
  if (placing_.has_started_by_hold(waiting)) return Next::kGoOn;
  if (limits_.is_over_limits(waiting)) return Next::kSkipClass;
  const WaitingJob* const narrowed = borrowers_.in_turn(waiting);
  if (narrowed == nullptr) return Next::kSkipClass;
  const WaitingJob& job = *narrowed;
  if (std::optional<model::Allocation> allocation = cycle_.start_of(job)) {
    start(cycle_, limits_, job, *std::move(allocation), why_of(cycle_));
    return Next::kGoOn;
  }
  if (std::optional<TrustedStart> trusted = trusted_start_of(job)) {
    start(cycle_, limits_, job, std::move(trusted->allocation), why_of(cycle_), trusted->yields_at);
    return Next::kGoOn;
  }
  const Next next = reserve_for(job);
  // Other jobs of its class may be trusted although this one may not.
  return next == Next::kSkipClass && job.preemptions > 0 ? Next::kGoOn : next;
}

Next Backfilling::reserve_for(const WaitingJob& job) {
  const model::PreemptionHold* hold = cycle_.hold_of(job);
  if (cycle_.plan.planned_starts.size() >= cycle_.depth) {
    if (hold != nullptr) return Next::kGoOn;
    const std::optional<Slot> fit = preemptor_.reclaim_for(job);
    if (!fit) return Next::kSkipClass;
    cycle_.keep_from_now(*fit, job.spec->time_limit);
    return Next::kGoOn;
  }
  if (hold != nullptr) {
    cycle_.plan_start(job, cycle_.kept_slot(*hold), cycle_.options.now);
    return Next::kGoOn;
  }
  const base::Duration grace = cycle_.policy.stop_grace;
  std::optional<Slot> slot = cycle_.slot_of(job);
  base::Instant kept_from = slot ? slot->start : base::Instant();
  if (std::optional<Slot> fit = preemptor_.make_for(job, slot)) {
    cycle_.keep_from_now(*fit, cycle_.held_for(job));
    slot = std::move(fit);
    kept_from = cycle_.options.now;
  } else if (std::optional<Slot> early = preemptor_.slot_with_stops(job);
             early && (!slot || early->start + grace < slot->start)) {
    cycle_.timeline.book(*early, cycle_.held_for(job) + grace);
    cycle_.count_on_stops.insert(job.id);
    kept_from = early->start;
    slot = Slot{early->start + grace, std::move(early->allocation)};
  } else if (slot) {
    cycle_.timeline.book(*slot, cycle_.held_for(job));
  } else {
    return Next::kSkipClass;
  }
  cycle_.plan_start(job, *std::move(slot), kept_from);
  return Next::kGoOn;
}

// Once it was stopped for others it waits for a place of its own, and so it does once others were
// stopped for it.
bool Backfilling::may_be_trusted(const WaitingJob& job) const {
  const model::Policy& policy = cycle_.policy;
  return policy.backfill_by_prediction && job.preemptions == 0 && !job.had_others_stopped &&
         cycle_.hold_of(job) == nullptr && !cycle_.keeps_place_of_overdue &&
         policy.max_preemptions_per_job > 0 && cycle_.timeline.bookings() > 0 &&
         model::may_borrow(*job.spec, policy);
}

std::optional<Backfilling::TrustedStart> Backfilling::trusted_start_of(const WaitingJob& job) {
  if (!may_be_trusted(job)) return std::nullopt;
  const base::Duration limit = job.spec->time_limit;
  const auto predicted = predicted_run(*job.spec, {}, cycle_.books->history);
  if (!predicted || predicted->p90 >= limit) return std::nullopt;
  std::optional<model::Allocation> allocation = cycle_.start_of(job, predicted->p90);
  if (!allocation) return std::nullopt;
  const auto touched = cycle_.timeline.first_touched(*allocation, limit);
  return TrustedStart{*std::move(allocation),
                      touched ? grace_before(*touched, cycle_.policy.stop_grace) : base::Instant()};
}

// ---- jobs that borrow

const WaitingJob* Borrowers::in_turn(const WaitingJob& job) {
  for (const Purpose purpose : kAfterAll) {
    has_any_ = has_any_ || limits_.narrowed(job, purpose) != nullptr;
  }
  return limits_.narrowed(job, Purpose::kTurn);
}

void Borrowers::run() {
  for (const Start& each : cycle_.plan.starts) served_.insert(each.job);
  for (const Preemption& each : cycle_.plan.preemptions) served_.insert(each.job);
  for (const Purpose purpose : kAfterAll) start_those(purpose);
}

// A job that waits for its turn in one pool may borrow in another one, unless others are stopped
// for it.
void Borrowers::start_those(Purpose purpose) {
  WaitingClasses::Walk walk(cycle_.queue.classes());
  while (const Rank* rank = walk.next()) {
    if (!cycle_.may_start_more()) return;
    const WaitingJob& job = cycle_.queue.find(*rank);
    if (served_.contains(job.id)) continue;
    const WaitingJob* const narrowed =
        limits_.is_over_limits(job) ? nullptr : limits_.narrowed(job, purpose);
    std::optional<model::Allocation> allocation;
    if (narrowed != nullptr) allocation = cycle_.start_of(*narrowed);
    if (allocation) {
      std::erase_if(cycle_.plan.planned_starts,
                    [&](const PlannedStart& each) { return each.job == job.id; });
      start(cycle_, limits_, job, *std::move(allocation), why_of(cycle_));
      served_.insert(job.id);
    } else {
      walk.drop_class();
    }
  }
}

// ---- yielding

void Yielding::run() {
  const base::Instant now = cycle_.options.now;
  const auto& yielding = cycle_.running.yielding();
  if (!yielding.empty() && yielding.begin()->end <= now) judge(places_to_yield_to());
  const auto next = std::ranges::upper_bound(yielding, now, {}, &RunningEnds::Key::end);
  if (next != yielding.end()) cycle_.look_again_at(next->end);
}

std::vector<PlannedStart> Yielding::places_to_yield_to() const {
  std::vector<PlannedStart> kept = cycle_.plan.planned_starts;
  std::erase_if(kept, [this](const PlannedStart& each) {
    const WaitingJob* job = cycle_.queue.find(each.job);
    return job == nullptr || cycle_.count_on_stops.contains(each.job) ||
           !limits_.may_have_others_stopped(*job, each.slot.allocation);
  });
  return kept;
}

void Yielding::judge(const std::vector<PlannedStart>& kept) {
  const base::Instant now = cycle_.options.now;
  Timeline::Staying staying;
  for (const RunningEnds::Key& due : cycle_.running.yielding()) {
    if (due.end > now) break;
    const Found found = first_in_the_way_of(due.attempt, cycle_.timeline, kept, staying);
    const base::Instant until = found.place == nullptr ? kForEver : found.place->slot.start;
    const base::Instant yields_at = grace_before(until, cycle_.policy.stop_grace);
    if (found.place != nullptr && yields_at <= now + kNextInstant) {
      cycle_.plan.yields.push_back({due.attempt, found.place->job, {}});
    } else if (found.is_known) {
      cycle_.plan.yields.push_back(
          {due.attempt, {}, found.place == nullptr ? base::Instant() : yields_at});
    }
    staying[due.attempt] = until;
  }
}

}  // namespace gpu_platform::scheduling
