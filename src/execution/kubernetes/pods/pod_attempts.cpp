#include "execution/kubernetes/pods/pod_attempts.h"

#include <algorithm>
#include <utility>

#include "execution/kubernetes/pods/call_times.h"
#include "execution/kubernetes/pods/pod_attempt_state.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

using model::AttemptId;
using model::AttemptState;
using model::EndReason;

// An image that the registry does not give now: the kubelet tries again for so long.
constexpr base::Duration kImageTimeout = base::minutes(5);

// Clearly before it: Kubernetes tells whole seconds.
bool all_ended_before(const std::vector<RankEnd>& ends, base::Instant at) {
  return std::ranges::all_of(ends, [at](const RankEnd& end) {
    const bool is_known = !end.vanished && end.pod && end.pod->finished_at.is_set();
    return is_known && end.pod->finished_at + base::seconds(1) <= at;
  });
}

}  // namespace

PodAttempts::PodAttempts(KubernetesSettings settings, BootId boot_id)
    : settings_(std::move(settings)), attempts_(settings_.start_timeout, std::move(boot_id)) {}
PodAttempts::~PodAttempts() = default;

// ---- orders

// Ranks that were seen before keep what is known of them.
void PodAttempts::take_order(Attempt& attempt, const StartOrder& order) {
  if (attempt.has_order) return;
  attempt.order = order;
  attempt.has_order = true;
  attempt.shape = ranks_of(order);
  if (attempt.ranks.size() < attempt.shape.size()) attempt.ranks.resize(attempt.shape.size());
}

void PodAttempts::start(const StartOrder& order, std::string environment, base::Instant now) {
  Attempt& attempt = attempts_.entry(order.attempt);
  const bool has_started = attempt.has_order && attempt.started_at.is_set();
  take_order(attempt, order);
  if (has_started) return attempts_.repeat(attempt);
  if (attempts_.begin_start(attempt, now)) attempt.environment = std::move(environment);
}

void PodAttempts::stop(const StopOrder& order) {
  attempts_.stop(attempts_.entry(order.attempt), order);
}

void PodAttempts::set_limit(const LimitOrder& order) {
  attempts_.set_limit(order);
}

void PodAttempts::forget(const ForgetOrder& order) {
  attempts_.forget(order);
}

void PodAttempts::note_activity(model::AttemptId id, base::Instant now) {
  Attempt* attempt = attempts_.find(id);
  if (attempt != nullptr) attempt->active_at = now;
}

void PodAttempts::adopt(const std::vector<KnownAttempt>& known, base::Instant now) {
  attempts_.adopt(known, now, take_order, [now](Attempt& attempt, AttemptState state) {
    if (state != AttemptState::kRunning && state != AttemptState::kCleaning) {
      attempt.former_calls_until = now + kLatestArrival;
      return;
    }
    // All that it has was made long ago: what is missing is lost. One that was told to stop may
    // have been told before anything was made.
    for (Rank& rank : attempt.ranks) rank.is_pod_made = true;
  });
}

// ---- what is seen

void PodAttempts::begin_list() {
  not_in_list_.clear();
  for (const auto& [id, attempt] : attempts_) {
    for (std::uint32_t index = 0; index < attempt->ranks.size(); ++index) {
      const Rank& rank = attempt->ranks[index];
      if (rank.is_there || rank.awaits_sight) not_in_list_.insert({id, index});
    }
  }
}

void PodAttempts::listed() {
  for (const auto& [id, index] : std::exchange(not_in_list_, {})) {
    Attempt* attempt = attempts_.find(id);
    if (attempt == nullptr) continue;
    Rank& rank = attempt->ranks[index];
    rank.awaits_sight = false;
    rank.was_gone = rank.was_gone || rank.is_there;
    rank.is_there = false;
    attempts_.touch(id);
  }
  attempts_.listed();
}

void PodAttempts::see(const PodView& pod) {
  Attempt& attempt = attempts_.entry(pod.attempt);
  if (attempt.ranks.size() <= pod.rank) attempt.ranks.resize(pod.rank + 1);
  attempt.namespace_seen = pod.namespace_name;
  not_in_list_.erase({pod.attempt, pod.rank});
  Rank& rank = attempt.ranks[pod.rank];
  if (rank.pod && rank.pod->uid == pod.uid) {
    // What has ended does not run again and what is gone does not come back, in any order in which
    // events come.
    if (rank.was_gone || (rank.pod->is_over() && !pod.is_over())) return;
  } else if (rank.is_there && is_dead(pod)) {
    return;  // the last word about a pod that was replaced by hand
  }
  if (!rank.is_bound && !pod.node.empty()) attempts_.note_bound();
  rank.pod = pod;
  rank.is_there = true;
  rank.was_gone = false;
  rank.is_pod_made = true;
  rank.awaits_sight = false;
  rank.pod_uid = pod.uid;
  rank.is_gate_lifted = rank.is_gate_lifted || !pod.gang_gate_at;
  attempt.is_service_made = attempt.is_service_made || rank.is_gate_lifted;
  rank.is_bound = rank.is_bound || !pod.node.empty();
  rank.is_released = !pod.finalizer_at;
  attempts_.sweep_one(attempt);
  attempts_.touch(attempt.id);
}

void PodAttempts::see_gone(const PodView& pod) {
  Attempt* attempt = attempts_.find(pod.attempt);
  if (attempt == nullptr || attempt->ranks.size() <= pod.rank) return;
  Rank& rank = attempt->ranks[pod.rank];
  if (rank.pod && rank.pod->uid != pod.uid) return;
  if (!rank.pod || !rank.pod->is_over()) rank.pod = pod;
  rank.is_there = false;
  rank.awaits_sight = false;
  rank.was_gone = true;
  attempts_.touch(attempt->id);
}

void PodAttempts::begin_claim_list() {
  claims_not_in_list_.clear();
  for (const auto& [id, attempt] : attempts_) {
    for (std::uint32_t index = 0; index < attempt->ranks.size(); ++index) {
      if (attempt->ranks[index].is_claim_there) claims_not_in_list_.insert({id, index});
    }
  }
}

void PodAttempts::claims_listed() {
  for (const auto& [id, index] : std::exchange(claims_not_in_list_, {})) {
    if (Attempt* attempt = attempts_.find(id)) {
      attempt->ranks[index].is_claim_there = false;
      attempts_.touch(id);
    }
  }
}

void PodAttempts::see_claim(const ClaimSeen& claim) {
  claims_not_in_list_.erase({claim.attempt, claim.rank});
  Attempt* known = attempts_.find(claim.attempt);
  if (known == nullptr && !claim.is_there) return;
  Attempt& attempt = attempts_.entry(claim.attempt);
  if (attempt.ranks.size() <= claim.rank) attempt.ranks.resize(claim.rank + 1);
  attempt.namespace_seen = claim.namespace_name;
  Rank& rank = attempt.ranks[claim.rank];
  rank.is_claim_there = claim.is_there;
  rank.is_claim_made = rank.is_claim_made || claim.is_there;
  attempts_.sweep_one(attempt);
  attempts_.touch(claim.attempt);
}

// ---- time

void PodAttempts::advance(base::Instant now) {
  attempts_.advance(now, [&](Attempt& attempt) { step(attempt, now); });
}

base::Instant PodAttempts::next_due() const {
  return attempts_.next_due();
}

void PodAttempts::step(Attempt& attempt, base::Instant now) {
  if (!attempt.ended) {
    judge_start(attempt, now);
    judge_limits(attempt, now);
    judge_end(attempt, now);
  }
  if (attempt.ended && !attempt.is_cleaned) judge_clean(attempt);
  make_calls(attempt, now);
  judge_gone(attempt);
}

void PodAttempts::judge_start(Attempt& attempt, base::Instant now) {
  if (attempt.started_at.is_set() || attempt.ranks.empty()) return;
  base::Instant latest;
  std::string step;
  bool all = true;
  for (Rank& rank : attempt.ranks) {
    const bool runs = rank.pod && rank.pod->started_at.is_set();
    all = all && runs;
    if (runs) latest = std::max(latest, rank.pod->started_at);
    if (runs || !rank.pod) continue;
    if (step.empty()) step = rank.pod->waiting;
    if (!rank.pod->is_image_error) {
      rank.image_since = {};
      continue;
    }
    if (!rank.image_since.is_set()) rank.image_since = now;
    const bool is_over = is_final_image_error(*rank.pod) || now >= rank.image_since + kImageTimeout;
    if (is_over && attempt.failed_start.empty()) attempt.failed_start = rank.pod->waiting;
    if (!is_over) attempts_.wake_at(attempt, rank.image_since + kImageTimeout);
  }
  if (all) return attempts_.started(attempt, latest);
  if (!step.empty()) attempts_.set_step(attempt, std::move(step));
}

void PodAttempts::judge_limits(Attempt& attempt, base::Instant now) {
  if (attempt.stop || !attempt.failed_start.empty() || !attempt.has_order) return;
  if (!attempt.started_at.is_set()) {
    return attempts_.judge_start_time(attempt, places_of(attempt), now);
  }
  judge_idleness(attempt, now);
  attempts_.judge_time_limit(attempt, now);
}

StartPlaces PodAttempts::places_of(const Attempt& attempt) const {
  StartPlaces places;
  places.all_bound =
      std::ranges::all_of(attempt.ranks, [](const Rank& rank) { return rank.is_bound; });
  places.is_in_queue =
      settings_.devices != DeviceMode::kOwned &&
      std::ranges::all_of(attempt.ranks, [](const Rank& rank) {
        return rank.is_bound || (rank.pod && !rank.pod->gang_gate_at && rank.pod->waiting.empty());
      });
  return places;
}

void PodAttempts::judge_idleness(Attempt& attempt, base::Instant now) {
  const base::Duration timeout = attempt.order.spec->idle_timeout.value_or(base::Duration());
  if (timeout == base::Duration()) return;
  if (!attempt.active_at.is_set()) attempt.active_at = now;
  const base::Instant end = attempt.active_at + timeout;
  if (now < end) return attempts_.wake_at(attempt, end);
  attempt.begin_stop({attempt.id, false, attempt.order.stop_grace, EndReason::kIdleTimeout});
}

RankEnd PodAttempts::end_of_rank(const Rank& rank) {
  const bool is_known_dead = rank.pod && is_dead(*rank.pod);
  return {rank.pod, rank.is_pod_made && !rank.is_there && !rank.awaits_sight && !is_known_dead};
}

bool PodAttempts::is_failing(const Attempt& attempt) {
  return std::ranges::any_of(attempt.ranks,
                             [](const Rank& rank) { return has_failed(end_of_rank(rank)); });
}

// Nothing of it runs, nothing is being made, and nothing will be.
bool PodAttempts::has_ended(const Attempt& attempt) {
  const bool is_to_end =
      attempt.stop || !attempt.failed_start.empty() || is_failing(attempt) || !attempt.may_begin;
  return std::ranges::all_of(attempt.ranks, [&](const Rank& rank) {
    if (rank.under_way != 0) return false;
    if (!rank.is_pod_made) return is_to_end;
    return end_of_rank(rank).vanished || (rank.pod && is_dead(*rank.pod));
  });
}

// Another boot, or another node of the same name: what was decided for the former is void.
bool PodAttempts::is_for_another_boot(const Attempt& attempt) const {
  const bool is_untouched = std::ranges::none_of(
      attempt.ranks, [](const Rank& rank) { return rank.is_there || rank.awaits_sight; });
  return is_untouched && attempts_.is_for_another_boot(attempt);
}

void PodAttempts::judge_end(Attempt& attempt, base::Instant now) {
  if (!attempt.has_order && !attempt.is_orphan) return;
  if (is_for_another_boot(attempt)) return attempts_.end_without_node(attempt, now);
  if (is_failing(attempt) && attempt.stop_grace == 0) {
    attempt.stop_grace = grace_in_seconds(attempt.order.stop_grace);
  }
  if (!has_ended(attempt)) return;
  // Adopted as asked for, with nothing in the cluster: its start is repeated.
  const bool is_nothing =
      std::ranges::none_of(attempt.ranks, [](const Rank& rank) { return rank.is_pod_made; });
  if (is_nothing && attempt.has_order && !attempt.may_begin && !attempt.stop) return;
  std::vector<RankEnd> ends;
  ends.reserve(attempt.ranks.size());
  for (const Rank& rank : attempt.ranks) ends.push_back(end_of_rank(rank));
  EndCause cause{attempt.stop, attempt.at_limit, attempt.failed_start};
  if (attempt.at_limit && all_ended_before(ends, attempt.started_at + *attempt.at_limit)) {
    // It was stopped at its limit because its own end was not known yet.
    cause.stop.reset();
    cause.time_limit.reset();
    for (RankEnd& end : ends) end.pod->is_being_deleted = false;
  }
  attempts_.end_with(attempt, execution::end_of(attempt.id, ends, cause), now);
}

// Its devices are free when its pods are over and its claims are gone.
void PodAttempts::judge_clean(Attempt& attempt) {
  for (const Rank& rank : attempt.ranks) {
    if (rank.under_way != 0 && kinds_[rank.under_way] == CallKind::kMakePod) return;
    if (rank.is_there && rank.pod && !is_dead(*rank.pod)) return;
    if (rank.is_claim_there) return;
  }
  attempts_.clean(attempt);
}

// Nothing of it is left in the cluster, and the core has forgotten it.
void PodAttempts::judge_gone(Attempt& attempt) {
  if (!attempt.is_forgotten) return;
  for (const Rank& rank : attempt.ranks) {
    if (rank.is_there || rank.under_way != 0 || rank.is_claim_there) return;
  }
  attempts_.erase(attempt);
}

// ---- readers

std::vector<Call> PodAttempts::take_calls() {
  return std::exchange(calls_, {});
}

std::vector<Observation> PodAttempts::take_observations() {
  return attempts_.take_observations();
}

const StartOrder* PodAttempts::order_of(AttemptId id) const {
  const Attempt* attempt = attempts_.find(id);
  return attempt == nullptr || !attempt->has_order ? nullptr : &attempt->order;
}

const std::string* PodAttempts::environment_of(AttemptId id) const {
  const Attempt* attempt = attempts_.find(id);
  return attempt == nullptr ? nullptr : &attempt->environment;
}

std::string PodAttempts::step_of(AttemptId id) const {
  return attempts_.step_of(id);
}

std::vector<PodView> PodAttempts::pods_of(AttemptId id) const {
  std::vector<PodView> pods;
  const Attempt* attempt = attempts_.find(id);
  if (attempt == nullptr) return pods;
  for (const Rank& rank : attempt->ranks) {
    if (rank.pod) pods.push_back(*rank.pod);
  }
  return pods;
}

std::string PodAttempts::pod_uid_of(AttemptId id, std::uint32_t rank) const {
  const Attempt* attempt = attempts_.find(id);
  const bool is_known = attempt != nullptr && rank < attempt->ranks.size();
  return is_known ? attempt->ranks[rank].pod_uid : std::string();
}

}  // namespace gpu_platform::execution
