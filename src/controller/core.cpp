#include "controller/core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/parse.h"
#include "controller/quota_use.h"
#include "controller/use.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::AttemptState;
using model::Job;
using model::JobState;

void Core::replay(const model::EventRecord& record) {
  std::vector<Job> departed;
  apply(state_, record, departed);
}

void Core::emit(model::Event event, base::Instant now) {
  model::EventRecord record{model::EventSeq(state_.seq.value + 1), std::max(now, state_.at),
                            std::move(event)};
  const std::size_t departed_before = batch_.ended_jobs.size();
  apply(state_, record, batch_.ended_jobs);
  for (std::size_t i = departed_before; i < batch_.ended_jobs.size(); ++i) {
    const Job& job = batch_.ended_jobs[i];
    // Members of an array share theirs: it goes with the last.
    const bool is_shared = job.is_member() && state_.arrays.find(job.array_id.value) != nullptr;
    const std::string& ref = job.spec->environment_ref;
    if (!ref.empty() && !is_shared) batch_.dropped_environments.push_back(ref);
  }
  if (std::holds_alternative<model::NodeSeen>(record.event)) {
    feasible_.clear();
    empty_.reset();
  }
  effects_of(record.event);
  batch_.events.push_back(std::move(record));
}

void Core::effects_of(const model::Event& event) {
  if (const auto* start = std::get_if<model::StartRequested>(&event)) {
    const Job* job = find_job(start->attempt.job);
    effect(start_order(*job, job->attempts.back()));
  } else if (const auto* stop = std::get_if<model::StopRequested>(&event)) {
    effect(execution::StopOrder{stop->attempt, stop->without_grace, state_.policy->stop_grace,
                                stop->reason});
  } else if (const auto* change = std::get_if<model::JobChanged>(&event)) {
    const Job* job = find_job(change->job);
    if (change->time_limit && model::is_active(job->state)) {
      const Attempt& attempt = job->attempts.back();
      effect(execution::LimitOrder{{job->id, attempt.number}, time_limit_of(*job, attempt)});
    }
  } else if (const auto* released = std::get_if<model::AttemptReleased>(&event)) {
    effect(execution::ForgetOrder{released->attempt});
  }
}

execution::StartOrder Core::start_order(const Job& job, const Attempt& attempt) const {
  execution::StartOrder order;
  order.attempt = {job.id, attempt.number};
  order.spec = job.spec;
  order.boot_id = attempt.boot_id;
  order.time_limit = time_limit_of(job, attempt);
  order.array_id = job.array_id;
  order.array_index = job.array_index;
  order.stop_grace = state_.policy->stop_grace;
  for (const auto& part : attempt.allocation.nodes) {
    const model::Node* node = state_.nodes.find(part.node.value);
    CHECK(node != nullptr);
    execution::LaunchNode launch{part.node, node->name, node->emulated, {}, part.cpus, part.memory,
                                 {},        {}};
    for (const auto& claim : part.claims) {
      launch.gpus.push_back(node->gpus.at(claim.gpu_index).info);
      launch.gpu_indices.push_back(claim.gpu_index);
    }
    launch.near = model::numa_nodes_near(*node, launch.gpu_indices);
    order.nodes.push_back(std::move(launch));
  }
  return order;
}

std::vector<execution::KnownAttempt> Core::known_attempts() const {
  std::vector<execution::KnownAttempt> known;
  for (const model::AttemptId id : state_.held_attempts) {
    const Job* job = find_job(id.job);
    const Attempt& attempt = job->attempts.at(id.attempt - 1);
    known.push_back({start_order(*job, attempt), attempt.state});
  }
  return known;
}

std::vector<Effect> Core::pending_effects() const {
  std::vector<Effect> effects;
  for (const model::AttemptId id : state_.held_attempts) {
    const Job* job = find_job(id.job);
    const Attempt& attempt = job->attempts.at(id.attempt - 1);
    if (attempt.state == AttemptState::kRequested) effects.push_back(start_order(*job, attempt));
    const bool runs = attempt.state == AttemptState::kRunning;
    if (runs && state_.relimited.contains(id)) {
      effects.push_back(execution::LimitOrder{id, time_limit_of(*job, attempt)});
    }
    if (attempt.state == AttemptState::kStopping) {
      effects.push_back(execution::StopOrder{id, attempt.kill_requested, state_.policy->stop_grace,
                                             attempt.stop_reason});
    }
    // Given up as lost, but perhaps alive behind a broken connection: it must not come back.
    if (attempt.state == AttemptState::kCleaning && attempt.exit.lost != model::Lost::kNo) {
      effects.push_back(execution::StopOrder{id, true, {}, attempt.reason});
    }
  }
  return effects;
}

const Attempt* Core::find_attempt(model::AttemptId id) const {
  const Job* job = find_job(id.job);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return nullptr;
  return &job->attempts[id.attempt - 1];
}

void Core::apply_policy(const model::Policy& policy, std::string by, base::Instant now,
                        const model::Origin& origin) {
  const bool is_new = !state_.seq.valid() || policy != *state_.policy;
  if (is_new) {
    emit(model::PolicyApplied{policy, std::move(by)}, now);
    judge_strangers_again(now);
  }
  const bool is_asked_for = origin.door == model::Door::kSignal;
  if (is_asked_for || (is_new && origin.door != model::Door::kNone)) {
    model::AuditedCall call;
    call.by = origin;
    call.action = model::AuditAction::kConfigure;
    emit(model::CallAudited{std::move(call)}, now);
  }
}

void Core::advance(base::Instant now) {
  end_windows(now);
  end_hopeless(now);
  let_in_who_is_due(now);
  if (const auto count_at = next_count(state_); count_at && *count_at <= now) {
    emit(model::UseCounted{}, now);
  }
  if (const auto end = period_end(state_); end && *end <= now) {
    emit(model::QuotaPeriodBegan{model::begin_of(state_.policy->organisation->period, now)}, now);
  }
  tell_overdue(now);
  const std::vector<model::JobId> decided = claims_to_carry_out();
  run_cycle(now);
  stop_victims(decided, now);
  advanced_to_ = now;
}

// Of jobs with victims that are not told to stop yet.
std::vector<model::JobId> Core::claims_to_carry_out() const {
  std::vector<model::JobId> beneficiaries;
  for (const auto& [job, claim] : state_.books->claims.all()) {
    const bool all_told = std::ranges::all_of(
        claim.victims, [&](model::AttemptId id) { return is_told_to_stop(state_, id); });
    if (!all_told) beneficiaries.push_back(job);
  }
  return beneficiaries;
}

// Those decided before this step, whose decision is durable and whose beneficiary still waits,
// although everything that came in meanwhile and a cycle have had their say.
void Core::stop_victims(const std::vector<model::JobId>& beneficiaries, base::Instant now) {
  for (const model::JobId beneficiary : beneficiaries) {
    const model::Claim* claim = state_.books->claims.find(beneficiary);
    if (claim == nullptr) continue;
    for (const model::AttemptId id : std::vector(claim->victims)) {
      if (is_told_to_stop(state_, id)) continue;
      emit(model::StopRequested{id, model::EndReason::kPreempted, false,
                                fmt::format("job {}", beneficiary.value)},
           now);
    }
  }
}

// Jobs that can never run as they asked to: no job waits for ever. The end of one may decide about
// others.
void Core::end_hopeless(base::Instant now) {
  const auto end = [&](model::JobId id, model::EndReason reason, std::string detail) {
    emit(model::JobEnded{id, model::JobTrigger::kCancel, reason, {}, std::move(detail)}, now);
  };
  while (!state_.gates.hopeless().empty() || is_one_too_late(now)) {
    if (!state_.gates.hopeless().empty()) {
      const model::JobId id = *state_.gates.hopeless().begin();
      end(id, model::EndReason::kDependencyFailed, find_job(id)->dependency_failure);
    } else {
      const model::JobId id = state_.gates.last_starts().begin()->second;
      const model::JobSpec& spec = *find_job(id)->spec;
      const base::Instant for_deadline = model::last_start_for_deadline(spec);
      if (for_deadline.is_set() && for_deadline < now) {
        end(id, model::EndReason::kDeadline,
            "it could no longer end by its deadline within its time limit");
      } else {
        end(id, model::EndReason::kWaitTimeout,
            fmt::format("it had not started within the {} that it was willing to wait",
                        base::written(spec.wait_timeout)));
      }
    }
  }
}

bool Core::is_one_too_late(base::Instant now) const {
  const Gates::Times& times = state_.gates.last_starts();
  return !times.empty() && times.begin()->first < now;
}

// One that comes in may make place for a sibling behind it.
void Core::let_in_who_is_due(base::Instant now) {
  const Gates::Times& times = state_.gates.becoming_eligible();
  for (auto next = times.begin(); next != times.end() && next->first <= now;) {
    const auto key = *next;
    make_eligible_if_due(key.second, now);
    next = times.upper_bound(key);
  }
}

// A job goes back to the queue when its time has come and nothing of its earlier attempts is left,
// unless such an attempt is lost with its node: that node may never tell.
void Core::make_eligible_if_due(model::JobId id, base::Instant now) {
  const Job* job = find_job(id);
  if (job == nullptr || job->eligible_at > now) return;
  if (!state_.gates.becoming_eligible().contains({job->eligible_at, id})) return;
  const bool leftovers = std::ranges::any_of(job->attempts, [](const Attempt& a) {
    return model::holds_resources(a.state) && a.exit.lost != model::Lost::kNodeLost;
  });
  if (!leftovers) emit(model::JobEligible{id}, now);
}

// When the oldest of those not told so yet is overdue; nothing while nobody waits.
std::optional<base::Instant> Core::next_overdue() const {
  const auto turn = state_.books->turns.next();
  const base::Duration after = state_.policy->overdue_after;
  if (!turn || after == base::Duration()) return std::nullopt;
  return turn->since + after;
}

void Core::tell_overdue(base::Instant now) {
  while (true) {
    const auto at = next_overdue();
    if (!at || *at > now) return;
    emit(model::JobOverdue{state_.books->turns.next()->job}, now);
  }
}

void Core::run_cycle(base::Instant now) {
  options_.now = now;
  const scheduling::Plan plan = cycle_cache_.plan(state_.books, *state_.policy, options_);
  if (reservations_ == nullptr || *reservations_ != plan.reservations) {
    reservations_ = std::make_shared<const std::vector<scheduling::Reservation>>(plan.reservations);
  }
  // First: what was claimed may be given to others in the same plan.
  for (const model::JobId job : plan.void_claims) emit(model::ClaimDropped{job}, now);
  for (const scheduling::Start& start : plan.starts) {
    const Job* job = find_job(start.job);
    CHECK(job != nullptr && job->state == JobState::kQueued && !start.allocation.nodes.empty());
    const model::Node* node = state_.nodes.find(start.allocation.nodes.front().node.value);
    const auto number = static_cast<std::uint32_t>(job->attempts.size() + 1);
    emit(model::StartRequested{{start.job, number},
                               start.allocation,
                               start.why,
                               "on_demand",
                               node->boot_id,
                               start.passed,
                               start.yields_at},
         now);
  }
  for (const scheduling::Preemption& each : plan.preemptions) {
    emit(model::PreemptionDecided{each.job, each.claimed, each.victims, each.reclaims}, now);
  }
  for (const scheduling::Yield& each : plan.yields) yield(each, now);
  if (!plan.unchanged || foresee_at_) foresee(plan.reservations, now);
  look_again_at_ = plan.look_again_at;
}

// One that was let in front of others by what was expected of it, and is still there.
void Core::yield(const scheduling::Yield& yield, base::Instant now) {
  if (yield.to.valid()) {
    emit(model::StopRequested{yield.attempt, model::EndReason::kPreempted, false,
                              fmt::format("job {}", yield.to.value)},
         now);
  } else {
    emit(model::YieldPutOff{yield.attempt, yield.yields_at}, now);
  }
}

namespace {

// As a value to share, the same as long as it does not change; null: nothing.
template <class T>
std::shared_ptr<const T> share(const T& value, std::shared_ptr<const T>& shared) {
  if (value.empty()) {
    shared.reset();
  } else if (shared == nullptr || *shared != value) {
    shared = std::make_shared<const T>(value);
  }
  return shared;
}

}  // namespace

std::shared_ptr<const Snapshot> Core::snapshot() {
  return std::make_shared<const Snapshot>(
      Snapshot{.seq = state_.seq,
               .at = state_.at,
               .jobs = state_.jobs.freeze(),
               .nodes = state_.nodes.freeze(),
               .policy = state_.policy,
               .counts = state_.counts,
               .reservations = reservations_,
               .order = state_.books->queue.basis(),
               .claims = share(state_.books->claims, shared_claims_),
               .arrays = state_.arrays.freeze(),
               .period_use = state_.books->period_use,
               .windows = share(state_.books->windows, shared_windows_),
               .runs = state_.books.freeze_history(),
               .scores = state_.scores});
}

Batch Core::take_batch() {
  return std::exchange(batch_, {});
}

// Jobs that are due but wait for leftovers are woken by the observation that these are gone.
std::optional<base::Instant> Core::next_wakeup() const {
  constexpr base::Duration kNextMoment = base::nanoseconds(1);
  if (!claims_to_carry_out().empty()) return advanced_to_ + kNextMoment;
  std::optional<base::Instant> wakeup = next_count(state_);
  const auto consider = [&wakeup](base::Instant at) { wakeup = std::min(wakeup.value_or(at), at); };
  if (look_again_at_) consider(*look_again_at_);
  if (foresee_at_) consider(*foresee_at_);
  const Gates::Times& times = state_.gates.becoming_eligible();
  const auto next = times.upper_bound({advanced_to_, model::JobId(UINT64_MAX)});
  if (next != times.end()) consider(next->first);
  const Gates::Times& last_starts = state_.gates.last_starts();
  if (!last_starts.empty()) {
    consider(last_starts.begin()->first + base::nanoseconds(1));
  }
  for (const auto& [name, window] : state_.books->windows.all()) consider(window.end);
  // Another period lets jobs start that wait for its GPU-hours.
  const auto end = state_.books->queue.empty() ? std::nullopt : period_end(state_);
  if (end) consider(*end);
  if (const auto overdue = next_overdue()) consider(std::max(*overdue, advanced_to_ + kNextMoment));
  return wakeup;
}

}  // namespace gpu_platform::controller
