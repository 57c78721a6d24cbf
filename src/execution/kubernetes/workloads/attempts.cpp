#include "execution/kubernetes/workloads/attempts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "execution/kubernetes/workloads/attempt_state.h"
#include "execution/kubernetes/workloads/end.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

using model::AttemptId;
using model::AttemptState;
using model::EndReason;

// What makes the pods is asked again after this time whether it has finished.
constexpr base::Duration kOwnerAskPause = base::seconds(1);
// A pod that was perhaps admitted, and of which no watch tells, is given up after this time.
constexpr base::Duration kSightTimeout = base::seconds(30);

bool is_older(const WorkloadPod& a, const WorkloadPod& b) {
  return std::pair(a.created_at, a.name) < std::pair(b.created_at, b.name);
}

}  // namespace

WorkloadAttempts::WorkloadAttempts(KubernetesSettings settings, BootId boot_id, Waiting waiting)
    : settings_(std::move(settings)),
      waiting_(std::move(waiting)),
      attempts_(settings_.start_timeout, std::move(boot_id)) {}
WorkloadAttempts::~WorkloadAttempts() = default;

const WorkloadAttempts::Attempt* WorkloadAttempts::latest_of(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : attempts_.find(found->second);
}

// ---- orders

void WorkloadAttempts::take_order(Attempt& attempt, const StartOrder& order) {
  if (attempt.has_order) return;
  attempt.order = order;
  attempt.has_order = true;
  attempt.key = order.spec->workload;
  attempt.namespace_name = workload_of_key(attempt.key).value_or(WorkloadRef()).namespace_name;
  by_key_[attempt.key] = attempt.id;
  for (std::uint32_t rank = 0; rank < attempt.holders(); ++rank) attempt.slots[rank].rank = rank;
  attempt.drop_foreign();
}

void WorkloadAttempts::start(const StartOrder& order, base::Instant now) {
  Attempt& attempt = attempts_.entry(order.attempt);
  take_order(attempt, order);
  attempts_.begin_start(attempt, now);
}

void WorkloadAttempts::stop(const StopOrder& order) {
  if (Attempt* attempt = attempts_.find(order.attempt)) attempts_.stop(*attempt, order);
}

void WorkloadAttempts::set_limit(const LimitOrder& order) {
  attempts_.set_limit(order);
}

void WorkloadAttempts::forget(const ForgetOrder& order) {
  attempts_.forget(order);
}

void WorkloadAttempts::adopt(const std::vector<KnownAttempt>& known, base::Instant now) {
  const auto take = [this](Attempt& attempt, const StartOrder& order) {
    take_order(attempt, order);
  };
  attempts_.adopt(known, now, take, [](Attempt& attempt, AttemptState state) {
    if (state == AttemptState::kRequested) return;  // its start is repeated
    attempt.may_begin = true;
    attempt.was_admitted = true;
  });
}

bool WorkloadAttempts::knows(AttemptId id) const {
  const Attempt* attempt = attempts_.find(id);
  return attempt != nullptr && attempt->has_order;
}

// ---- what is seen

void WorkloadAttempts::begin_list() {
  not_in_list_.clear();
  const auto put = [this](AttemptId id, const PodSlot& slot) {
    if (slot.is_there) not_in_list_.insert({id, slot.pod->uid});
    if (!slot.awaited.empty()) not_in_list_.insert({id, slot.awaited});
  };
  for (const auto& [id, attempt] : attempts_) {
    for (const auto& [rank, slot] : attempt->slots) put(id, slot);
    for (const PodSlot& slot : attempt->surplus) put(id, slot);
  }
}

void WorkloadAttempts::listed() {
  for (const auto& [id, uid] : std::exchange(not_in_list_, {})) {
    Attempt* attempt = attempts_.find(id);
    if (attempt == nullptr) continue;
    const auto lose = [&](PodSlot& slot) {
      if (slot.awaited == uid) slot.awaited.clear();
      if (slot.is_there && slot.pod->uid == uid) slot.is_there = false;
    };
    for (auto& [rank, slot] : attempt->slots) lose(slot);
    std::ranges::for_each(attempt->surplus, lose);
    attempt->gone.insert(uid);
    attempt->is_changed = true;
    attempts_.touch(id);
  }
  attempts_.listed();
}

void WorkloadAttempts::see(const PodView& pod) {
  const bool may_be_needed = !is_dead(pod) || !attempts_.is_settled();
  if (attempts_.find(pod.attempt) == nullptr && !may_be_needed)
    return;  // what was left of a forgotten one
  Attempt& attempt = attempts_.entry(pod.attempt);
  not_in_list_.erase({pod.attempt, pod.uid});
  if (attempt.gone.contains(pod.uid) || attempt.is_foreign(pod.namespace_name)) return;
  attempts_.touch(attempt.id);
  attempt.was_admitted = true;
  for (PodSlot& slot : attempt.surplus) {
    if (slot.pod->uid == pod.uid) {
      slot.pod = pod;
      return;
    }
  }
  PodSlot& slot = attempt.slots[pod.rank];
  slot.rank = pod.rank;
  if (slot.awaited == pod.uid) slot.awaited.clear();
  if (slot.offer && slot.offer->uid == pod.uid) slot.offer.reset();
  const bool is_same = slot.pod && slot.pod->uid == pod.uid;
  if (is_same) {
    if (slot.pod->is_over() && !pod.is_over()) return;  // an older word
    attempt.is_changed = attempt.is_changed || is_dead(*slot.pod) != is_dead(pod);
  } else {
    if (slot.is_there && is_dead(pod)) return;  // the last word about one that had the slot before
    if (slot.is_alive()) {
      PodSlot other;
      other.rank = pod.rank;
      other.pod = pod;
      other.is_there = true;
      attempt.surplus.push_back(std::move(other));
      return;
    }
    slot.is_delete_sent = false;
    slot.tries = 0;
    attempt.is_changed = true;
  }
  if (is_same && slot.pod->node.empty() && !pod.node.empty()) attempts_.note_bound();
  const bool had_ended = is_same && slot.pod->is_over() && !slot.pod->is_being_deleted;
  slot.pod = pod;
  // It had ended by itself before it was deleted.
  if (had_ended) slot.pod->is_being_deleted = false;
  slot.is_there = true;
  attempts_.sweep_one(attempt);
}

void WorkloadAttempts::see_gone(const PodView& pod) {
  Attempt* attempt = attempts_.find(pod.attempt);
  if (attempt == nullptr || attempt->is_foreign(pod.namespace_name)) return;
  attempt->gone.insert(pod.uid);
  attempts_.touch(attempt->id);
  attempt->is_changed = true;
  std::erase_if(attempt->surplus, [&](const PodSlot& slot) {
    return slot.pod->uid == pod.uid && slot.under_way == 0;
  });
  for (PodSlot& slot : attempt->surplus) slot.is_there = slot.is_there && slot.pod->uid != pod.uid;
  const auto found = attempt->slots.find(pod.rank);
  if (found == attempt->slots.end()) return;
  PodSlot& slot = found->second;
  if (slot.awaited == pod.uid) slot.awaited.clear();
  if (slot.pod && slot.pod->uid != pod.uid) return;
  if (!slot.pod || !slot.pod->is_over()) slot.pod = pod;
  slot.is_there = false;
}

void WorkloadAttempts::begin_claim_list() {
  claims_not_in_list_.clear();
  for (const auto& [id, attempt] : attempts_) {
    for (const auto& [rank, slot] : attempt->slots) {
      if (!slot.claim.empty()) claims_not_in_list_.insert({id, rank});
    }
  }
}

void WorkloadAttempts::claims_listed() {
  for (const auto& [id, rank] : std::exchange(claims_not_in_list_, {})) {
    if (attempts_.find(id) != nullptr) see_claim({.attempt = id, .rank = rank}, false);
  }
}

void WorkloadAttempts::see_claim(const AdoptedClaim& claim, bool is_there) {
  claims_not_in_list_.erase({claim.attempt, claim.rank});
  if (attempts_.find(claim.attempt) == nullptr && !is_there) return;
  Attempt& attempt = attempts_.entry(claim.attempt);
  if (!claim.namespace_name.empty() && attempt.is_foreign(claim.namespace_name)) return;
  PodSlot& slot = attempt.slots[claim.rank];
  slot.rank = claim.rank;
  slot.is_claim_made = is_there;
  slot.claim = is_there ? claim.name : std::string();
  if (is_there) slot.claim_namespace = claim.namespace_name;
  attempts_.sweep_one(attempt);
  attempts_.touch(attempt.id);
}

void WorkloadAttempts::touch_workload(const std::string& key) {
  if (const Attempt* latest = latest_of(key)) attempts_.touch(latest->id);
}

// What came meanwhile is a change, and the owner is asked again.
void WorkloadAttempts::owner_ended(const std::string& key, OwnerEnd how) {
  const Attempt* latest = latest_of(key);
  if (latest == nullptr || latest->is_changed || !latest->owner_asked_at.is_set()) return;
  attempts_.find(latest->id)->owner_end = how;
  attempts_.touch(latest->id);
}

// ---- time

void WorkloadAttempts::advance(base::Instant now) {
  attempts_.advance(now, [&](Attempt& attempt) { step(attempt, now); });
}

base::Instant WorkloadAttempts::next_due() const {
  return attempts_.next_due();
}

void WorkloadAttempts::step(Attempt& attempt, base::Instant now) {
  if (!attempt.ended) {
    judge_start(attempt);
    judge_limits(attempt, now);
  }
  fill_slots(attempt, now);
  if (std::exchange(attempt.is_changed, false)) {
    attempt.changed_at = now;
    attempt.owner_asked_at = {};
    attempt.owner_end.reset();
  }
  if (!attempt.ended) judge_end(attempt, now);
  if (attempt.ended && !attempt.is_cleaned) judge_clean(attempt);
  make_calls(attempt, now);
  judge_gone(attempt);
}

// What waits takes the slots that are free. A pod that was offered a slot keeps it, so that of one
// slot there are never two pods.
void WorkloadAttempts::fill_slots(Attempt& attempt, base::Instant now) {
  std::vector<WorkloadPod> waiting;
  if (attempt.has_order) waiting = waiting_(attempt.key);
  std::erase_if(waiting, [&](const WorkloadPod& pod) { return !attempt.may_have_slot(pod); });
  std::ranges::sort(waiting, is_older);
  std::set<std::string> offered;
  for (auto& [rank, slot] : attempt.slots) {
    if (!slot.awaited.empty()) {
      if (now >= slot.awaited_since + kSightTimeout) {
        slot.awaited.clear();
        attempt.is_changed = true;
      } else {
        attempts_.wake_at(attempt, slot.awaited_since + kSightTimeout);
      }
    }
    if (!slot.offer || slot.under_way != 0) {
      if (slot.offer) offered.insert(slot.offer->uid);
      continue;
    }
    const auto now_so = std::ranges::find(waiting, slot.offer->uid, &WorkloadPod::uid);
    const bool is_waiting = now_so != waiting.end();
    if (is_waiting && !attempt.must_go()) {
      slot.offer = *now_so;
      offered.insert(slot.offer->uid);
      continue;
    }
    // It was perhaps admitted, and the answer was lost: then it will be seen.
    if (slot.tries > 0 && !is_waiting) {
      slot.awaited = slot.offer->uid;
      slot.awaited_since = now;
      attempts_.wake_at(attempt, now + kSightTimeout);
    }
    slot.offer.reset();
  }
  if (!attempt.may_begin || attempt.must_go() || !attempt.has_order) return;
  const auto is_holder = [&](const WorkloadPod& pod) { return attempt.holds(pod); };
  const auto holders = std::ranges::count_if(waiting, is_holder);
  if (!attempt.was_admitted && offered.empty() && std::cmp_less(holders, attempt.holders())) {
    return attempts_.set_step(attempt, fmt::format("{} of the {} pods of {} are there", holders,
                                                   attempt.holders(), attempt.key));
  }
  for (const WorkloadPod& pod : waiting) {
    const bool is_awaited = std::ranges::any_of(
        attempt.slots, [&](const auto& slot) { return slot.second.awaited == pod.uid; });
    if (!offered.contains(pod.uid) && !is_awaited) offer(attempt, pod, is_holder(pod));
  }
}

void WorkloadAttempts::offer(Attempt& attempt, const WorkloadPod& pod, bool is_holder) {
  std::uint32_t rank = is_holder ? 0 : attempt.holders();
  while (true) {
    const auto found = attempt.slots.find(rank);
    const bool is_beyond = is_holder && rank >= attempt.holders();
    if (is_beyond) return;  // the workload has grown; its job has not
    if (found == attempt.slots.end() || found->second.is_free()) break;
    ++rank;
  }
  PodSlot& slot = attempt.slots[rank];
  slot.rank = rank;
  slot.offer = pod;
  slot.tries = 0;
  slot.not_before = {};
  attempt.is_changed = true;
}

void WorkloadAttempts::judge_start(Attempt& attempt) {
  if (attempt.started_at.is_set() || !attempt.has_order) return;
  base::Instant latest;
  std::string step;
  bool all = true;
  for (const auto& [rank, slot] : attempt.slots) {
    if (rank >= attempt.holders()) break;
    const bool runs = slot.pod && slot.pod->started_at.is_set();
    all = all && runs;
    if (runs) latest = std::max(latest, slot.pod->started_at);
    if (!runs && slot.pod && step.empty()) step = slot.pod->waiting;
  }
  if (all) {
    attempts_.started(attempt, latest);
  } else if (!step.empty()) {
    attempts_.set_step(attempt, std::move(step));
  }
}

void WorkloadAttempts::judge_limits(Attempt& attempt, base::Instant now) {
  if (attempt.must_go() || !attempt.has_order) return;
  if (!attempt.started_at.is_set()) {
    return attempts_.judge_start_time(attempt, places_of(attempt), now);
  }
  attempts_.judge_time_limit(attempt, now);
}

StartPlaces WorkloadAttempts::places_of(const Attempt& attempt) {
  const auto holds_for_all = [&](auto holds) {
    return std::ranges::all_of(attempt.slots, [&](const auto& entry) {
      return entry.first >= attempt.holders() || (entry.second.pod && holds(*entry.second.pod));
    });
  };
  StartPlaces places;
  places.all_bound = holds_for_all([](const PodView& pod) { return !pod.node.empty(); });
  places.is_in_queue =
      holds_for_all([](const PodView& pod) { return !pod.node.empty() || pod.waiting.empty(); });
  return places;
}

void WorkloadAttempts::judge_end(Attempt& attempt, base::Instant now) {
  if (!attempt.has_order && !attempt.is_orphan) return;
  if (!attempt.is_empty()) return;
  const WorkloadRef workload = workload_of_key(attempt.key).value_or(WorkloadRef());
  const bool is_alone = workload.is_single_pod();
  const bool had_pods = std::ranges::any_of(
      attempt.slots, [](const auto& slot) { return slot.second.pod.has_value(); });
  if (!attempt.must_go()) {
    const bool is_untouched = !had_pods && !attempt.was_admitted;
    if (is_untouched && attempts_.is_for_another_boot(attempt)) {
      return attempts_.end_without_node(attempt, now);
    }
    if (is_untouched) return;  // its pods have not come yet
    const base::Instant settled = attempt.changed_at + settings_.workload_settles;
    if (!is_alone && !attempt.owner_end && now < settled) {
      const bool is_due =
          !attempt.owner_asked_at.is_set() || now >= attempt.owner_asked_at + kOwnerAskPause;
      if (is_due) {
        attempt.owner_asked_at = now;
        owner_questions_.push_back(attempt.key);
      }
      return attempts_.wake_at(attempt, std::min(settled, attempt.owner_asked_at + kOwnerAskPause));
    }
  }
  std::vector<RankEnd> ends;
  for (const auto& [rank, slot] : attempt.slots) {
    const bool has_vanished =
        slot.pod && !slot.is_there && !is_dead(*slot.pod) && !slot.pod->is_being_deleted;
    if (slot.pod || !had_pods) ends.push_back({slot.pod, has_vanished});
  }
  const auto owner = workload.has_no_owner() ? OwnerEnd::kDeleted : attempt.owner_end;
  Ended ended = end_of_workload(attempt.id, ends,
                                {attempt.stop, attempt.at_limit, attempt.failed_start}, owner);
  attempts_.end_with(attempt, std::move(ended), now);
}

// Its devices are free when its pods are over and the claims on them are gone.
void WorkloadAttempts::judge_clean(Attempt& attempt) {
  if (!attempt.is_empty() || attempt.has_claims()) return;
  attempts_.clean(attempt);
}

void WorkloadAttempts::judge_gone(Attempt& attempt) {
  if (!attempt.is_forgotten || !attempt.is_empty() || attempt.has_claims()) return;
  const auto latest = by_key_.find(attempt.key);
  if (latest != by_key_.end() && latest->second == attempt.id) by_key_.erase(latest);
  attempts_.erase(attempt);
}

// ---- readers

std::vector<WorkloadCall> WorkloadAttempts::take_calls() {
  return std::exchange(calls_, {});
}
std::vector<Observation> WorkloadAttempts::take_observations() {
  return attempts_.take_observations();
}
std::vector<std::string> WorkloadAttempts::take_owner_questions() {
  return std::exchange(owner_questions_, {});
}

std::string WorkloadAttempts::step_of(AttemptId id) const {
  return attempts_.step_of(id);
}

std::vector<PodView> WorkloadAttempts::pods_of(AttemptId id) const {
  std::vector<PodView> pods;
  const Attempt* attempt = attempts_.find(id);
  if (attempt == nullptr) return pods;
  for (const auto& [rank, slot] : attempt->slots) {
    if (slot.pod) pods.push_back(*slot.pod);
  }
  return pods;
}

bool WorkloadAttempts::awaits_pods(const std::string& key) const {
  const Attempt* attempt = latest_of(key);
  return attempt != nullptr && !attempt->ended && !attempt->was_admitted && attempt->is_empty();
}

bool WorkloadAttempts::has_live_pods(const std::string& key) const {
  const Attempt* attempt = latest_of(key);
  return attempt != nullptr && !attempt->is_cleaned &&
         std::ranges::any_of(attempt->slots, [](const auto& slot) {
           return slot.second.is_alive() || !slot.second.awaited.empty();
         });
}

}  // namespace gpu_platform::execution
