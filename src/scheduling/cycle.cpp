#include "scheduling/cycle.h"

#include <algorithm>
#include <utility>

#include "scheduling/backfill/yielding.h"
#include "scheduling/predict/expected_run.h"

namespace gpu_platform::scheduling {

namespace {

const ExpectedTimes kNothingExpected;

}  // namespace

Cycle::Cycle(Books& books, const model::Policy& policy, const CycleOptions& options)
    : Cycle(books, books->queue, books->running, kNothingExpected, policy, options) {}

Cycle::Cycle(Books& books, const Supposition& supposed, const model::Policy& policy,
             const CycleOptions& options)
    : Cycle(books, supposed.queue, supposed.running, supposed.expected, policy, options) {}

Cycle::Cycle(Books& books, const WaitingQueue& queue, const RunningEnds& running,
             const ExpectedTimes& expected, const model::Policy& policy,
             const CycleOptions& options)
    : books_(books),
      queue_(queue),
      running_(running),
      expected_(expected),
      trial_(books.cluster_for_trial()),
      timeline_(trial_, running, books->windows,
                {options.now, policy.stop_grace, options.most_changes}),
      policy_(policy),
      depth_(policy.reservation_depth),
      options_(options),
      victim_search_(trial_, books->victims, {options.now, policy.preempt_min_runtime}),
      walk_(queue.classes()),
      organisation_(policy.organisation) {}

// The one list of stages. defragment belongs before lend, with what the earlier ones left in the
// trial and the plan.
const Cycle::Row Cycle::kRows[] = {
    {Stage::kOrder, &Cycle::order},          {Stage::kQuota, &Cycle::quota},
    {Stage::kPlace, &Cycle::place_in_order}, {Stage::kBackfill, &Cycle::backfill},
    {Stage::kPreempt, &Cycle::preempt},      {Stage::kLend, &Cycle::lend},
};

Plan Cycle::run() {
  for (const auto& [stage, run_stage] : kRows) {
    if (!options_.stages.has(stage)) continue;
    if (options_.observer != nullptr) options_.observer->begin(stage);
    (this->*run_stage)();
    if (options_.observer != nullptr) options_.observer->end(stage);
  }
  judge_those_who_yield();
  look_again_at(books_->windows.next_change(options_.now));
  return std::move(plan_);
}

// Its beneficiary would meet a window there, were it to start only now.
bool Cycle::is_void(const model::Claim& claim, const WaitingJob& job) const {
  return !timeline_.windows_allow(job.spec->request, {options_.now, claim.allocation},
                                  job.spec->time_limit);
}

// The one that is kept in this cycle.
const model::Claim* Cycle::claim_of(const WaitingJob& job) const {
  const bool is_dropped = std::ranges::binary_search(plan_.void_claims, job.id);
  return is_dropped ? nullptr : books_->claims.find(job.id);
}

// Whoever is promised something gets it before anybody else is looked at; what is not free yet is
// kept from now on, and counts against limits as if it were there. A limit lowered since keeps the
// job back, and its claim.
void Cycle::start_or_keep_claims() {
  ClaimedAmounts claimed;
  for (const auto& [id, claim] : books_->claims.all()) claimed.add(claim.allocation);
  for (const auto& [id, claim] : books_->claims.all()) {
    const WaitingJob* job = queue_.find(id);
    if (job != nullptr && is_void(claim, *job)) {
      plan_.void_claims.push_back(id);
      claimed.remove(claim.allocation);
      continue;
    }
    const bool may_start =
        job != nullptr && !is_over_limits(*job) && !is_kept_back_by_pools(*job, true);
    if (may_start && is_free_beside(claimed, claim.allocation) && has_room_for_starts()) {
      start(*job, claim.allocation, model::StartWhy::kPreempted);
      started_by_claim_.insert(id);
      claimed.remove(claim.allocation);
    } else {
      keep(claim);
    }
  }
}

// Whether it is free without what others have claimed on the same nodes: of CPUs and memory any may
// be free, and theirs are not to be taken with what only looks like this one's.
bool Cycle::is_free_beside(const ClaimedAmounts& claimed, const model::Allocation& allocation) {
  if (!is_free(trial_.cluster(), allocation)) return false;
  const Trial::Mark mark = trial_.mark();
  for (const model::NodeAllocation& part : allocation.nodes) {
    trial_.withhold(part.node, claimed.beside(part));
  }
  const bool is_free_beside = is_free(trial_.cluster(), allocation);
  trial_.rollback_to(mark);
  return is_free_beside;
}

void Cycle::keep(const model::Claim& claim) {
  const WaitingJob* job = queue_.find(claim.beneficiary);
  if (job == nullptr) return;
  keep_from_now(kept_slot(claim), held_for(*job));
  if (!is_over_limits(*job)) count_start(*job);
}

// Nobody else may have it from the present on, although the job comes to it only then.
void Cycle::keep_from_now(const Slot& slot, base::Duration time_limit) {
  timeline_.book({options_.now, slot.allocation}, time_limit + (slot.start - options_.now));
}

// By then the victims are gone, or at any moment where that has passed.
Slot Cycle::kept_slot(const model::Claim& claim) const {
  return {std::max(options_.now, claim.decided_at + policy_.stop_grace), claim.allocation};
}

bool Cycle::is_started_by_claim(const WaitingJob& job) const {
  return !started_by_claim_.empty() && started_by_claim_.contains(job.id);
}

void Cycle::quota() {
  keeps_limits_ = limits_starts(*organisation_);
  pools_ = books_->lending.balance();
}

void Cycle::place_in_order() {
  start_or_keep_claims();
  if (!is_ordered_) {
    queue_.for_each_by_id_while(
        [this](const WaitingJob& job) { return consider(job) != Next::kStop; });
    return;
  }
  while (const Rank* rank = walk_.next()) {
    const Next next = consider(queue_.find(*rank));
    if (next == Next::kStop) return;
    if (next == Next::kSkipClass) walk_.drop_class();
  }
}

// Away from the nodes that the job is to avoid, or there where no other has room.
template <class Place>
std::optional<model::Allocation> Cycle::place_for(const WaitingJob& job, const Place& place_it) {
  if (!job.avoid.empty()) {
    const Trial::Mark mark = trial_.mark();
    for (const model::NodeId node : job.avoid) trial_.shut(node);
    std::optional<model::Allocation> allocation = place_it();
    trial_.rollback_to(mark);
    if (allocation) return allocation;
  }
  return place_it();
}

Cycle::Next Cycle::consider(const WaitingJob& job) {
  if (!has_room_for_starts()) return Next::kStop;
  if (is_started_by_claim(job)) return Next::kGoOn;
  const model::ResourceRequest& request = job.spec->request;
  if (is_known_unplaceable(request) || is_over_quota(job)) return Next::kSkipClass;
  if (comes_last(job)) return Next::kSkipClass;
  std::optional<model::Allocation> allocation = start_of(job);
  if (!allocation) return pass_or_block(job);
  start(job, *std::move(allocation), model::StartWhy::kImmediate);
  return Next::kGoOn;
}

Cycle::Next Cycle::pass_or_block(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (options_.pass_unplaceable && !some_node_up_could_hold(trial_.cluster(), request)) {
    unplaceable_.push_back(&request);
    return Next::kSkipClass;
  }
  blocked_ = &job;
  plan_.blocked_head = job.id;
  return Next::kStop;
}

// Goes on with the walk where placing in order has stopped, at the blocked head.
void Cycle::backfill() {
  if (depth_ == 0 || !is_ordered_ || blocked_ == nullptr) return;
  Next next = reserve_for(*blocked_);
  while (next != Next::kStop) {
    if (next == Next::kSkipClass) walk_.drop_class();
    const Rank* rank = walk_.next();
    if (rank == nullptr) return;
    next = backfill_one(queue_.find(*rank));
  }
}

Cycle::Next Cycle::backfill_one(const WaitingJob& job) {
  if (!has_room_for_starts()) return Next::kStop;
  if (is_started_by_claim(job)) return Next::kGoOn;
  if (is_over_quota(job) || comes_last(job)) return Next::kSkipClass;
  const bool passes_somebody = !plan_.reservations.empty();
  const auto why = passes_somebody ? model::StartWhy::kBackfill : model::StartWhy::kImmediate;
  if (std::optional<model::Allocation> allocation = start_of(job)) {
    start(job, *std::move(allocation), why);
    return Next::kGoOn;
  }
  if (std::optional<TrustedStart> trusted = trusted_start_of(job)) {
    start(job, std::move(trusted->allocation), why, trusted->yields_at);
    return Next::kGoOn;
  }
  const Next next = reserve_for(job);
  // Others of its class may be trusted where it may not.
  return next == Next::kSkipClass && job.preemptions > 0 ? Next::kGoOn : next;
}

// Once it was stopped for others it waits for a place of its own.
bool Cycle::may_be_trusted(const WaitingJob& job) const {
  return policy_.backfill_by_prediction && job.preemptions == 0 &&
         policy_.max_preemptions_per_job > 0 && timeline_.bookings() > 0 &&
         model::may_borrow(*job.spec, policy_);
}

std::optional<Cycle::TrustedStart> Cycle::trusted_start_of(const WaitingJob& job) {
  if (!may_be_trusted(job)) return std::nullopt;
  const base::Duration limit = job.spec->time_limit;
  const auto expected = expected_run(*job.spec, {}, books_->history);
  if (!expected || expected->p90 >= limit) return std::nullopt;
  std::optional<model::Allocation> allocation =
      place_for(job, [&] { return timeline_.place_now(job.spec->request, limit, expected->p90); });
  if (!allocation) return std::nullopt;
  const auto touched = timeline_.first_touched(*allocation, limit);
  return TrustedStart{*std::move(allocation),
                      touched ? grace_before(*touched, policy_.stop_grace) : base::Instant()};
}

// Those that are to yield by now stop if they stand in a place that is kept; else not.
void Cycle::judge_those_who_yield() {
  if (!plan_.complete || !options_.stages.has(Stage::kBackfill)) return;
  plan_.yields =
      judge_yielding(timeline_, running_, plan_.reservations, options_.now, policy_.stop_grace);
  const auto next =
      std::ranges::upper_bound(running_.yielding(), options_.now, {}, &RunningEnds::Key::end);
  if (next != running_.yielding().end()) look_again_at(next->end);
}

Cycle::Next Cycle::reserve_for(const WaitingJob& job) {
  if (plan_.reservations.size() >= depth_) return reclaim_for(job);
  if (const model::Claim* claim = claim_of(job)) {
    plan_.reservations.push_back({job.id, kept_slot(*claim)});
    return Next::kGoOn;
  }
  std::optional<Slot> slot = slot_of(job);
  if (std::optional<Slot> room = make_room_for(job, slot)) {
    keep_from_now(*room, held_for(job));
    slot = std::move(room);
  } else if (slot) {
    timeline_.book(*slot, held_for(job));
  } else {
    return Next::kSkipClass;
  }
  plan_.reservations.push_back({job.id, *std::move(slot)});
  return Next::kGoOn;
}

// Behind those with places: what is guaranteed to it waits for nobody's turn.
Cycle::Next Cycle::reclaim_for(const WaitingJob& job) {
  if (claim_of(job) != nullptr) return Next::kGoOn;
  if (reclaims_left_ == 0 || !may_reclaim(job)) return Next::kSkipClass;
  --reclaims_left_;
  const std::optional<Slot> room = make_room_for(job, slot_of(job));
  if (!room) return Next::kSkipClass;
  keep_from_now(*room, job.spec->time_limit);
  return Next::kGoOn;
}

std::optional<model::Allocation> Cycle::start_of(const WaitingJob& job) {
  return place_for(job,
                   [&] { return timeline_.place_now(job.spec->request, job.spec->time_limit); });
}

std::optional<Slot> Cycle::slot_of(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (!some_node_up_could_hold(trial_.cluster(), request)) return std::nullopt;
  return timeline_.earliest(request, job.spec->time_limit);
}

// What was reserved for a moment that has passed since is there at any moment.
void Cycle::keep_places(std::span<const Reservation> reservations, const Rank& before) {
  for (const auto& [id, claim] : books_->claims.all()) keep(claim);
  for (const Reservation& each : reservations) {
    const Rank* rank = queue_.find_rank(each.job);
    if (rank != nullptr && *rank < before) keep_place(each);
  }
}

void Cycle::keep_all_places(std::span<const Reservation> reservations) {
  for (const auto& [id, claim] : books_->claims.all()) keep(claim);
  for (const Reservation& each : reservations) keep_place(each);
}

void Cycle::keep_place(const Reservation& reservation) {
  const WaitingJob* job = queue_.find(reservation.job);
  if (job == nullptr) return;
  Slot slot = reservation.slot;
  slot.start = std::max(slot.start, options_.now + kNextMoment);
  timeline_.book(slot, job->spec->time_limit);
}

// The first that does not fit, where no places are kept.
void Cycle::preempt() {
  const bool has_place = depth_ > 0 && options_.stages.has(Stage::kBackfill);
  if (has_place || !is_ordered_ || blocked_ == nullptr || books_->victims.size() == 0) return;
  if (claim_of(*blocked_) != nullptr) return;
  make_room_for(*blocked_, slot_of(*blocked_));
}

// `slot`: when it starts anyhow. Room within the grace of others is not worth stopping them.
std::optional<Slot> Cycle::make_room_for(const WaitingJob& job, const std::optional<Slot>& slot) {
  if (!options_.stages.has(Stage::kPreempt) || !policy_.allow_preemption) return std::nullopt;
  if (books_->victims.size() == 0) return std::nullopt;
  const base::Instant room_at = options_.now + policy_.stop_grace;
  // Whoever is owed room does not wait for what somebody of higher rank may get.
  const bool reclaims = may_reclaim(job);
  if (!reclaims && slot && slot->start <= room_at) return std::nullopt;
  // What is borrowed goes first, whatever it costs: else work that is its holder's own would.
  std::optional<Room> room = reclaims ? find_room(job, true) : std::nullopt;
  const bool is_reclaimed = room.has_value();
  const bool comes_soon = slot && slot->start <= room_at;
  if (!room && !comes_soon) room = find_room(job, false);
  if (!room) {
    look_again_at(books_->victims.next_of_age(options_.now, policy_.preempt_min_runtime,
                                              job.spec->priority.priority_class));
    return std::nullopt;
  }
  // Nobody is stopped for a place that a window takes before the job can have it.
  const model::JobSpec& spec = *job.spec;
  if (!timeline_.windows_allow(spec.request, {room_at, room->allocation}, spec.time_limit)) {
    return std::nullopt;
  }
  count_start(job);  // as if it were there: others behind are judged beside it
  plan_.preemptions.push_back({job.id, room->allocation, std::move(room->victims), is_reclaimed});
  return Slot{room_at, std::move(room->allocation)};
}

std::optional<Preemption> Cycle::preemption_for(const WaitingJob& job) {
  if (!make_room_for(job, slot_of(job))) return std::nullopt;
  return plan_.preemptions.back();
}

std::optional<Room> Cycle::find_room(const WaitingJob& job, bool reclaims) {
  return victim_search_.find({job.spec->request, job.spec->priority.priority_class, reclaims},
                             [&] { return start_of(job); });
}

bool Cycle::may_reclaim(const WaitingJob& job) const {
  return options_.stages.has(Stage::kPreempt) && pools_.is_active() &&
         books_->victims.has_borrowed() && model::total_gpus(job.spec->request) > 0 &&
         pools_.judge(pool_ask_of(job)).standing == PoolStanding::kOwn;
}

PoolAsk Cycle::pool_ask_of(const WaitingJob& job) const {
  return pool_ask(pools_.guarantees(), policy_, *job.spec);
}

// Whoever has a claim was judged when it was made, and what others lend may be less by now.
bool Cycle::is_kept_back_by_pools(const WaitingJob& job, bool has_claim) const {
  if (!pools_.is_active()) return false;
  const Judgement found = pools_.judge(pool_ask_of(job));
  const bool is_of_lending = found.limit == model::QuotaKind::kLendLimit;
  return found.standing == PoolStanding::kKeptBack && !(has_claim && is_of_lending);
}

bool Cycle::would_borrow(const WaitingJob& job) const {
  return pools_.is_active() && pools_.judge(pool_ask_of(job)).standing == PoolStanding::kBorrows;
}

bool Cycle::comes_last(const WaitingJob& job) {
  const bool borrows = would_borrow(job);
  someone_borrows_ = someone_borrows_ || borrows;
  return borrows;
}

// In order, but behind all others: what these leave, and touching no place that is kept.
void Cycle::lend() {
  const bool is_stopped = depth_ == 0 && blocked_ != nullptr;
  if (!someone_borrows_ || !is_ordered_ || is_stopped) return;
  walk_ = WaitingClasses::Walk(queue_.classes());
  while (const Rank* rank = walk_.next()) {
    if (!has_room_for_starts()) return;
    const WaitingJob& job = queue_.find(*rank);
    if (started_.contains(job.id)) continue;
    std::optional<model::Allocation> allocation;
    if (!is_over_quota(job) && would_borrow(job)) allocation = start_of(job);
    if (allocation) {
      start(job, *std::move(allocation),
            plan_.reservations.empty() ? model::StartWhy::kImmediate : model::StartWhy::kBackfill);
    } else {
      walk_.drop_class();
    }
  }
}

void Cycle::look_again_at(std::optional<base::Instant> at) {
  if (at && (!plan_.look_again_at || *at < *plan_.look_again_at)) plan_.look_again_at = at;
}

// The same of all of a class, and for the rest of the cycle: nothing that it starts gives back.
bool Cycle::is_over_quota(const WaitingJob& job) const {
  return is_over_limits(job) || is_kept_back_by_pools(job, false);
}

bool Cycle::is_over_limits(const WaitingJob& job) const {
  return keeps_limits_ &&
         excess_if_started(*organisation_, *job.spec, books_->quotas, &added_).has_value();
}

// From its start on, the grace left out.
base::Duration Cycle::held_for(const WaitingJob& job) const {
  const auto expected = expected_.find(job.id);
  return expected == expected_.end() ? job.spec->time_limit : expected->second;
}

bool Cycle::has_room_for_starts() {
  plan_.complete = plan_.starts.size() < options_.max_starts;
  return plan_.complete;
}

void Cycle::count_start(const WaitingJob& job) {
  if (keeps_limits_) added_.add(*organisation_, *job.spec, use_of_start(*job.spec));
  if (pools_.is_active()) pools_.add(pool_ask_of(job));
}

void Cycle::start(const WaitingJob& job, model::Allocation allocation, model::StartWhy why,
                  base::Instant yields_at) {
  std::optional<base::Instant> gone_by;
  if (yields_at.is_set()) gone_by = yields_at + policy_.stop_grace;
  timeline_.start(allocation, held_for(job), gone_by);
  count_start(job);
  if (pools_.is_active()) started_.insert(job.id);
  const bool passes = why == model::StartWhy::kBackfill;
  const model::JobId passed = passes ? plan_.reservations.front().job : model::JobId();
  plan_.starts.push_back({job.id, std::move(allocation), why, passed, yields_at});
}

bool Cycle::is_known_unplaceable(const model::ResourceRequest& request) const {
  return std::ranges::any_of(unplaceable_, [&](const auto* known) { return *known == request; });
}

}  // namespace gpu_platform::scheduling
