#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "controller/quota_use.h"
#include "controller/state.h"
#include "controller/use.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

namespace {

using model::Attempt;
using model::AttemptTrigger;
using model::GpuTrigger;
using model::Job;
using model::JobState;
using model::JobTrigger;
using model::Node;

// By itself and well, or at its time limit: what was stopped or failed says nothing of the next.
bool came_to_its_end(const Attempt& attempt) {
  if (!attempt.started_at.is_set() || attempt.exit.lost != model::Lost::kNo) return false;
  if (attempt.reason == model::EndReason::kTimeLimit) return true;
  return attempt.exit.code == 0 && attempt.stop_reason == model::EndReason::kNone &&
         attempt.reason == model::EndReason::kNone;
}

// At full speed.
base::Duration run_of(const Attempt& attempt) {
  const base::Duration run = std::max(attempt.ended_at - attempt.started_at, base::Duration());
  return scheduling::at_full_speed(run, attempt.allocation.speed);
}

bool is_on(const model::Allocation& allocation, model::NodeId node) {
  return std::ranges::find(allocation.nodes, node, &model::NodeAllocation::node) !=
         allocation.nodes.end();
}

// Carries one event into the state. Each overload of on() is one event's whole meaning.
class Application {
 public:
  Application(State& state, base::Instant at, std::vector<Job>& departed)
      : state_(state), at_(at), departed_(departed) {}

  void on(const model::PolicyApplied& event) {
    change_policy(state_, event.policy, at_);
    follow_limits(state_, at_);
    lend_anew();
    update_held_attempts();
    // Victims that may not be stopped any more are spared.
    drop_holds_that(
        [this](const model::PreemptionHold& hold) { return !is_outranking(state_, hold); });
  }
  void on(const model::QuotaPeriodBegan& event) { begin_period(state_, event.begin); }
  void on(const model::UseCounted&) { count_use(state_, at_); }

  void on(const model::NodeSeen& event);
  void on(const model::NodeStateChanged& event);
  void on(const model::GpuStateChanged& event);
  void on(const model::UnmanagedProcessesChanged& event);
  void on(const model::JobSubmitted& event);
  void on(const model::JobChanged& event);
  void on(const model::StartRequested& event);
  void on(const model::AttemptReleased& event);
  void on(const model::PreemptionDecided& event);

  // What was promised on its GPUs may last into it: room is made anew, elsewhere or in time.
  void on(const model::ReservationMade& event) {
    CHECK(state_.books->reservations.find(event.reservation.name) == nullptr);
    drop_holds_that([&](const model::PreemptionHold& hold) {
      return scheduling::touches(event.reservation, hold.allocation);
    });
    state_.books.put(event.reservation);
  }
  void on(const model::ReservationEnded& event) { state_.books.erase_reservation(event.name); }
  void on(const model::CallAudited&) {}  // for the archive alone
  void on(const model::PreemptionHoldDropped& event) { drop_hold(event.job); }

  void on(const model::JobOverdue& event) {
    Job& j = job(event.job);
    CHECK(j.state == JobState::kQueued && !j.overdue_since.is_set());
    state_.books.erase_waiting(j);
    j.overdue_since = at_;
    state_.books.put_waiting(j);
  }

  void on(const model::StartPredicted& event) {
    Job& j = job(event.job);
    CHECK(j.state == JobState::kQueued);
    j.prediction = event.prediction;
    j.prediction->made_at = at_;
  }

  void on(const model::YieldPutOff& event) {
    Job& j = job(event.attempt.job);
    Attempt& attempt = find_attempt(j, event.attempt);
    attempt.yields_at = event.yields_at;
    state_.books.update_held(j, attempt);
  }

  void on(const model::JobEligible& event) { move(job(event.job), JobTrigger::kBecameEligible); }

  void on(const model::AttemptStarted& event) {
    Job& j = job(event.attempt.job);
    Attempt& attempt = find_attempt(j, event.attempt);
    attempt.pid = event.pid;
    attempt.started_at = event.started_at;
    move_attempt(attempt, AttemptTrigger::kStarted);
    move(j, JobTrigger::kStarted);
    state_.books.update_held(j, attempt);
    trigger_gpus(attempt.allocation, GpuTrigger::kStart);
    j.prolog_failed_on.clear();
    prolog_did_well(attempt);
  }

  void on(const model::StopRequested& event) {
    Job& j = job(event.attempt.job);
    Attempt& attempt = find_attempt(j, event.attempt);
    attempt.stop_reason = event.reason;
    attempt.kill_requested = attempt.kill_requested || event.without_grace;
    attempt.by = event.by;
    move_attempt(attempt, AttemptTrigger::kStopRequested);
    move(j, JobTrigger::kStopRequested);
    state_.books.update_held(j, attempt);
  }

  void on(const model::AttemptEnded& event) {
    Job& j = job(event.attempt.job);
    Attempt& attempt = find_attempt(j, event.attempt);
    attempt.ended_at = event.ended_at;
    attempt.exit = event.exit;
    attempt.reason = event.reason;
    attempt.detail = event.detail;
    attempt.usage = event.usage;
    if (came_to_its_end(attempt)) state_.books.add_run(*j.spec, run_of(attempt));
    move_attempt(attempt, AttemptTrigger::kEnded);
    state_.relimited.erase(event.attempt);
    state_.books.update_held(j, attempt);
    trigger_gpus(attempt.allocation, GpuTrigger::kEnd);
    if (event.reason == model::EndReason::kPrologFailed) {
      node(attempt.first_node()).prolog_failed_for = event.attempt.job;
    }
  }

  void on(const model::JobRequeued& event) {
    Job& j = job(event.job);
    if (event.prolog_failed) {
      j.prolog_failed_on.push_back(j.attempts.back().first_node());
      if (event.holds && j.hold == model::Hold::kNone) j.hold = model::Hold::kByPlatform;
    } else if (event.preempted) {
      ++j.preemptions;
    } else if (!event.asked_for) {
      (event.counts_as_failure ? j.failures : j.losses) += 1;
    }
    j.eligible_at = event.eligible_at;
    move(j, event.preempted ? JobTrigger::kPreempt : JobTrigger::kRequeue);
    if (j.hold != model::Hold::kNone) move(j, JobTrigger::kHold);
  }

  void on(const model::JobHoldChanged& event) {
    Job& j = job(event.job);
    j.hold = event.hold;
    if (event.hold == model::Hold::kNone) j.prolog_failed_on.clear();
    if (model::is_active(j.state)) return;
    const bool is_held = j.state == JobState::kHeld;
    if (event.hold == model::Hold::kNone) {
      if (is_held) move(j, JobTrigger::kRelease);
    } else if (!is_held) {
      move(j, JobTrigger::kHold);
    }
  }

  void on(const model::JobEnded& event) {
    Job& j = job(event.job);
    j.ended_at = at_;
    j.reason = event.reason;
    j.by = event.by;
    j.detail = event.detail;
    j.hold = model::Hold::kNone;
    if (event.how == JobTrigger::kFail) count_last_attempt(j);
    move(j, event.how);
    note_end_of_member(j);
    resolve({j.id, false});
    start_request_expiry(j);
    depart_if_done(j);
  }

 private:
  Job& job(model::JobId id) {
    Job* found = state_.jobs.find_mutable(id.value);
    CHECK(found != nullptr);
    return *found;
  }

  // The attempt that a job failed with was not retried, so JobRequeued has not counted it.
  static void count_last_attempt(Job& j) {
    if (j.attempts.empty()) return;
    const Attempt& last = j.attempts.back();
    const bool by_itself =
        last.exit.lost == model::Lost::kNo && last.reason != model::EndReason::kLaunchFailed;
    (by_itself || last.exit.code.has_value() ? j.failures : j.losses) += 1;
  }

  static Attempt& find_attempt(Job& j, model::AttemptId id) {
    CHECK(id.attempt >= 1 && id.attempt <= j.attempts.size());
    return j.attempts[id.attempt - 1];
  }

  static void move_attempt(Attempt& attempt, AttemptTrigger trigger) {
    const auto to = model::next(attempt.state, trigger);
    CHECK(to.has_value());
    attempt.state = *to;
  }

  // Those who begin or cease to borrow with what comes and goes.
  void note_changes(const scheduling::Lending::Changes& changes) {
    for (const scheduling::Lending::Change& change : changes) {
      Job& j = job(change.attempt.job);
      Attempt& attempt = find_attempt(j, change.attempt);
      attempt.is_borrowed = change.is_borrowed;
      state_.books.update_held(j, attempt);
    }
  }
  // Other guarantees, other GPUs, or others who may be stopped.
  void lend_anew() {
    scheduling::Lending lending(
        scheduling::guarantees_of(organisation(), state_.books->cluster.totals().gpus()));
    if (!lending.is_active() && !state_.books->lending.is_active()) return;
    for (const model::AttemptId id : state_.held_attempts) {
      Job& j = job(id.job);
      Attempt& attempt = find_attempt(j, id);
      attempt.is_borrowed = false;
      for (const auto& [changed, is_borrowed] :
           lending.add(scheduling::held_of(lending, *state_.policy, j, attempt))) {
        find_attempt(job(changed.job), changed).is_borrowed = is_borrowed;
      }
    }
    state_.books.follow_guarantees(std::move(lending));
  }
  void follow_cluster_size(std::uint64_t gpus_before) {
    const bool is_same = state_.books->cluster.totals().gpus() == gpus_before;
    if (is_same || !state_.books->lending.is_active()) return;
    state_.limits_set_at = at_;
    lend_anew();
    update_held_attempts();
  }
  void update_held_attempts() {
    for (const model::AttemptId id : state_.held_attempts) update_held(id);
  }
  // Whoever has given everything back is none any more.
  void update_held(model::AttemptId id) {
    const Job* j = state_.jobs.find(id.job.value);
    if (j == nullptr) return;
    const Attempt& attempt = j->attempts.at(id.attempt - 1);
    if (model::holds_resources(attempt.state)) state_.books.update_held(*j, attempt);
  }

  // The preemption hold is over, whatever came of it: victims that were not told yet are spared.
  void drop_hold(model::JobId beneficiary) {
    const model::PreemptionHold* hold = state_.books->holds.find(beneficiary);
    if (hold == nullptr) return;
    const std::vector<model::AttemptId> victims = hold->victims;
    state_.books.erase_hold(beneficiary);
    for (const model::AttemptId id : victims) update_held(id);
  }
  template <class Is>
  void drop_holds_that(const Is& is_over) {
    std::vector<model::JobId> over;
    for (const auto& [job, hold] : state_.books->holds.all()) {
      if (is_over(hold)) over.push_back(job);
    }
    for (const model::JobId job : over) drop_hold(job);
  }
  void drop_holds_that_cannot_be_met(const Node& n);

  // The only place where a job's state changes; keeps the indices of waiting jobs and the counts.
  void move(Job& j, JobTrigger trigger) {
    const auto to = model::next(j.state, trigger);
    CHECK(to.has_value());
    leave(j);
    j.state = *to;
    enter(j);
  }

  const model::Organisation& organisation() const { return *state_.policy->organisation; }

  void leave(const Job& j) {
    if (scheduling::counts_as_waiting(j.state)) state_.load.end_waiting(j.spec->uid);
    if (std::uint64_t* counter = counter_of(j.state)) --*counter;
    state_.books.erase_waiting(j);
    if (j.state == JobState::kQueued) drop_hold(j.id);
    state_.admission_gates.leave(j);
  }

  void enter(Job& j) {
    if (scheduling::counts_as_waiting(j.state)) state_.load.begin_waiting(j.spec->uid);
    if (std::uint64_t* counter = counter_of(j.state)) ++*counter;
    j.overdue_since = {};
    if (j.state == JobState::kQueued) {
      j.prediction.reset();
      j.eligible_at = at_;
    }
    state_.books.put_waiting(j);
    state_.admission_gates.enter(j);
  }

  // What failed there before does well again.
  void prolog_did_well(const Attempt& attempt) {
    const model::NodeId id = attempt.first_node();
    if (state_.nodes.find(id.value)->prolog_failed_for.valid()) node(id).prolog_failed_for = {};
  }

  std::uint64_t* counter_of(JobState s) {
    if (s == JobState::kPending || s == JobState::kPreempted) return &state_.counts.pending;
    if (s == JobState::kQueued) return &state_.counts.queued;
    if (s == JobState::kHeld) return &state_.counts.held;
    if (s == JobState::kSuspended) return &state_.counts.suspended;
    return model::is_active(s) ? &state_.counts.active : nullptr;
  }

  Node& node(model::NodeId id) {
    Node* found = state_.nodes.find_mutable(id.value);
    CHECK(found != nullptr);
    return *found;
  }

  static void move_gpu(model::Gpu& gpu, GpuTrigger trigger) {
    const auto to = model::next(gpu.state, trigger);
    CHECK(to.has_value());
    gpu.state = *to;
  }

  void trigger_gpus(const model::Allocation& allocation, GpuTrigger trigger) {
    for (const auto& part : allocation.nodes) {
      Node& n = node(part.node);
      for (const auto& grant : part.grants) move_gpu(n.gpus.at(grant.gpu_index), trigger);
      state_.books.put(n);
    }
  }

  void start_request_expiry(const Job& j) {
    if (j.spec->request_id.empty()) return;
    const model::JobId answered = j.is_member() ? j.array_id : j.id;
    const bool is_last = !j.is_member() || state_.arrays.find(j.array_id.value)->outcome.open == 0;
    const std::pair key{j.spec->user, j.spec->request_id};
    const auto entry = state_.requests.find(key);
    if (!is_last || entry == state_.requests.end() || entry->second.job != answered) return;
    entry->second.expires = at_ + state_.policy->request_id_lifetime;
    state_.expiring_requests.put(entry->second.expires, key);
    while (state_.expiring_requests.count_of(key.first) > kMaxEndedRequests) {
      const auto [expires, oldest] = state_.expiring_requests.first_of(key.first);
      state_.requests.erase(oldest);
      state_.expiring_requests.erase(expires, oldest);
    }
  }

  void depart_if_done(Job& j) {
    if (!model::is_ended(j.state) || model::holds_resources(j)) return;
    const model::JobId id = j.id;
    const model::JobId array = j.array_id;
    state_.load.leave(*j.spec);
    departed_.push_back(j);
    state_.jobs.erase(id.value);
    if (!array.valid() || --state_.arrays.find_mutable(array.value)->members > 0) return;
    state_.arrays.erase(array.value);
    state_.admission_gates.erase_array(array);
  }

  std::vector<model::JobId> jobs_stopped_for(model::JobId beneficiary) const {
    std::vector<model::JobId> jobs;
    const model::PreemptionHold* hold = state_.books->holds.find(beneficiary);
    if (hold == nullptr) return jobs;
    for (const model::AttemptId id : hold->victims) jobs.push_back(id.job);
    return jobs;
  }
  void note_end_of_member(const Job& j);
  void resolve(const model::DependencyTarget& target);
  void resolve(Job& dependent, const model::DependencyTarget& target,
               const model::TargetOutcome& outcome);
  void postpone_if_gated(Job& j);
  JobState first_state(const model::JobSubmitted& event) const;

  void follow_holder(model::Gpu& gpu);
  static void note_epilog(const model::AttemptReleased& event, const Attempt& attempt, Node& n);

  State& state_;
  base::Instant at_;
  std::vector<Job>& departed_;
};

void Application::on(const model::NodeSeen& event) {
  const bool is_new = state_.nodes.find(event.node.value) == nullptr;
  const std::uint64_t gpus_before = state_.books->cluster.totals().gpus();
  if (is_new) {
    Node fresh;
    fresh.id = event.node;
    fresh.name = event.info.name;
    state_.nodes.put(event.node.value, std::move(fresh));
    state_.node_ids.emplace(event.info.name, event.node);
    state_.last_node_id = std::max(state_.last_node_id, event.node.value);
  }
  Node& n = node(event.node);
  model::describe(n, event.info);
  state_.books.put(n);
  follow_cluster_size(gpus_before);
  // Rare, and it may be smaller: room is made anew where there is some.
  drop_holds_that([&](const model::PreemptionHold& hold) { return is_on(hold.allocation, n.id); });
}

void Application::on(const model::NodeStateChanged& event) {
  Node& n = node(event.node);
  const auto to = model::next(n.state, event.trigger);
  CHECK(to.has_value());
  n.state = *to;
  if (event.trigger == model::NodeTrigger::kBringOnline) {
    n.prolog_failed_for = {};
    n.epilog_failed_for = {};
  }
  if (event.trigger == model::NodeTrigger::kLose) n.is_heard = false;
  if (event.trigger == model::NodeTrigger::kSeen) n.is_heard = true;
  const bool by_person =
      n.state == model::NodeState::kDraining || n.state == model::NodeState::kOffline;
  const bool is_news_of_it =
      event.trigger == model::NodeTrigger::kLose || event.trigger == model::NodeTrigger::kSeen;
  if (!by_person || !is_news_of_it) {
    n.cause = n.state == model::NodeState::kUp ? std::string() : event.cause;
  }
  state_.books.put(n);
  drop_holds_that_cannot_be_met(n);
}

// What is held there has left service.
void Application::drop_holds_that_cannot_be_met(const Node& n) {
  const bool is_up = scheduling::free_state_of(n).is_up;
  const scheduling::GpuMask in_service = scheduling::gpus_in_service(n);
  drop_holds_that([&](const model::PreemptionHold& hold) {
    return std::ranges::any_of(hold.allocation.nodes, [&](const model::NodeAllocation& part) {
      const scheduling::GpuMask gpus = scheduling::gpus_of(part);
      return part.node == n.id && (!is_up || (gpus & in_service) != gpus);
    });
  });
}

void Application::on(const model::GpuStateChanged& event) {
  Node& n = node(event.gpu.node);
  model::Gpu& gpu = n.gpus.at(event.gpu.index);
  move_gpu(gpu, event.trigger);
  if (event.trigger == GpuTrigger::kBringOnline) {
    gpu.cause.clear();
    gpu.changed_by.clear();
    gpu.changed_at = {};
    follow_holder(gpu);
  } else {
    gpu.cause = event.cause;
    gpu.changed_by = event.by;
    gpu.changed_at = at_;
  }
  state_.books.put(n);
  drop_holds_that_cannot_be_met(n);
}

void Application::on(const model::UnmanagedProcessesChanged& event) {
  Node& n = node(event.gpu.node);
  model::Gpu& gpu = n.gpus.at(event.gpu.index);
  gpu.unmanaged_processes = event.text;
  gpu.avoids_unmanaged_processes = event.avoid && !event.text.empty();
  state_.books.put(n);
  drop_holds_that_cannot_be_met(n);
}

// A GPU back in service with a job still on it is where that job's attempt is.
void Application::follow_holder(model::Gpu& gpu) {
  for (const model::GpuHolder& holder : gpu.holders) {
    const Job* j = state_.jobs.find(holder.attempt.job.value);
    CHECK(j != nullptr);
    const Attempt& attempt = j->attempts.at(holder.attempt.attempt - 1);
    move_gpu(gpu, GpuTrigger::kAllocate);
    if (attempt.state == model::AttemptState::kCleaning) {
      move_gpu(gpu, GpuTrigger::kEnd);
    } else if (attempt.started_at.is_set()) {
      move_gpu(gpu, GpuTrigger::kStart);
    }
  }
}

// The state in which a submission begins.
JobState Application::first_state(const model::JobSubmitted& event) const {
  if (event.hold != model::Hold::kNone) return JobState::kHeld;
  const bool is_limited = event.spec->array && event.spec->array->limit != 0;
  const bool is_gated = is_limited || !event.waits_for.empty() ||
                        !event.dependency_failure.empty() || event.spec->begin > at_;
  return is_gated ? JobState::kPending : JobState::kQueued;
}

void Application::on(const model::JobSubmitted& event) {
  Job fresh;
  fresh.spec = event.spec;
  fresh.hold = event.hold;
  fresh.state = first_state(event);
  fresh.submitted_at = at_;
  note_account(state_, *event.spec);
  fresh.eligible_at = event.spec->begin;
  fresh.waits_for = event.waits_for;
  fresh.dependency_failure = event.dependency_failure;
  std::uint64_t count = 1;
  if (const auto& array = event.spec->array) {
    count = member_count(*array);
    fresh.array_id = event.job;
    state_.arrays.put(event.job.value, {event.job, count, count, array->limit, {.open = count}});
    state_.admission_gates.set_limit(event.job, array->limit);
  }
  state_.load.enter(*event.spec, count);
  for (std::uint64_t position = 0; position < count; ++position) {
    Job member = fresh;
    member.id = model::JobId(event.job.value + position);
    if (event.spec->array) member.array_index = index_at(*event.spec->array, position);
    enter(state_.jobs.put(member.id.value, std::move(member)));
  }
  state_.last_job_id = event.job.value + count - 1;
  if (!event.spec->request_id.empty()) {
    const std::pair key{event.spec->user, event.spec->request_id};
    state_.requests.insert_or_assign(key, RequestEntry{event.job, {}});
  }
}

void Application::on(const model::JobChanged& event) {
  Job& j = job(event.job);
  state_.admission_gates.leave(j);
  const base::Instant former_begin = j.spec->begin;
  auto spec = std::make_shared<model::JobSpec>(*j.spec);
  event.to.apply_to(*spec);
  if (event.dependencies) {
    j.waits_for = event.dependencies->waits_for;
    j.dependency_failure = event.dependencies->failure;
  }
  for (Attempt& attempt : j.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    note_changes(state_.books.discount(j, attempt));
    attempt.is_borrowed = false;
  }
  state_.load.leave(*j.spec);
  j.spec = std::move(spec);
  state_.load.enter(*j.spec);
  if (event.to.get(&model::JobSpec::time_limit) && model::is_active(j.state)) {
    state_.relimited.insert({j.id, j.attempts.back().number});
  }
  const base::Instant* const begin = event.to.get(&model::JobSpec::begin);
  if (begin && !model::is_active(j.state) && j.state != JobState::kQueued) {
    const bool waited_for_it = j.eligible_at == former_begin;
    j.eligible_at = waited_for_it ? *begin : std::max(j.eligible_at, *begin);
  }
  state_.admission_gates.enter(j);
  postpone_if_gated(j);
  for (const Attempt& attempt : j.attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    note_changes(state_.books.count(j, attempt));
    state_.books.update_held(j, attempt);
  }
  if (j.state == JobState::kQueued) state_.books.update_waiting(j);
  drop_holds_that([&](const model::PreemptionHold& hold) { return !is_outranking(state_, hold); });
}

void Application::on(const model::PreemptionDecided& event) {
  state_.books.put(
      model::PreemptionHold{event.job, event.held, event.victims, at_, event.reclaims});
}

// What was in the queue and is to wait for something after all leaves it.
void Application::postpone_if_gated(Job& j) {
  const bool is_gated =
      !j.waits_for.empty() || !j.dependency_failure.empty() || j.spec->begin > at_;
  if (j.state != JobState::kQueued || !is_gated) return;
  j.eligible_at = j.spec->begin;
  move(j, JobTrigger::kPostpone);
}

void Application::note_end_of_member(const Job& j) {
  if (!j.is_member()) return;
  model::TargetOutcome& outcome = state_.arrays.find_mutable(j.array_id.value)->outcome;
  const bool had_failed = outcome.failed.valid();
  --outcome.open;
  model::count_end(j, outcome);
  // What does not change the answer wakes nobody.
  if (outcome.open == 0 || outcome.failed.valid() != had_failed) resolve({j.array_id, true});
}

void Application::resolve(const model::DependencyTarget& target) {
  const std::set<model::JobId> dependents = state_.admission_gates.dependents(target);
  if (dependents.empty()) return;
  const model::TargetOutcome outcome = *outcome_of(state_, target);
  for (const model::JobId id : dependents) {
    Job& j = job(id);
    state_.admission_gates.leave(j);
    resolve(j, target, outcome);
    state_.admission_gates.enter(j);
  }
}

void Application::resolve(Job& dependent, const model::DependencyTarget& target,
                          const model::TargetOutcome& outcome) {
  std::erase_if(dependent.waits_for, [&](const model::Dependency& dependency) {
    if (dependency.on != target) return false;
    const auto verdict = judge(dependency.kind, outcome);
    if (verdict == model::DependencyVerdict::kNever && dependent.dependency_failure.empty()) {
      dependent.dependency_failure = describe_failure(dependency, outcome);
    }
    return verdict != model::DependencyVerdict::kWaits;
  });
}

void Application::on(const model::StartRequested& event) {
  Job& j = job(event.attempt.job);
  CHECK(event.attempt.attempt == j.attempts.size() + 1);
  Attempt attempt;
  attempt.number = event.attempt.attempt;
  attempt.why = event.why;
  attempt.allocation = event.allocation;
  attempt.boot_id = event.boot_id;
  attempt.requested_at = at_;
  attempt.passed = event.passed;
  attempt.yields_at = event.yields_at;
  if (j.prediction) {
    scheduling::PredictionScores scores = *state_.scores;
    scores.add(*j.prediction, at_);
    state_.scores = std::move(scores);
  }
  if (event.why == model::StartWhy::kPreempted) attempt.preempted_jobs = jobs_stopped_for(j.id);
  attempt.time_limit = time_limit_of(j, attempt);
  move(j, JobTrigger::kStartRequested);
  j.attempts.push_back(std::move(attempt));
  begin_to_hold(state_, at_);
  state_.held_attempts.insert(event.attempt);
  note_changes(state_.books.put_held(j, j.attempts.back()));
  for (const auto& part : event.allocation.nodes) {
    Node& n = node(part.node);
    n.cpus_used += part.cpus;
    n.memory_used += part.memory;
    for (const auto& grant : part.grants) {
      model::Gpu& gpu = n.gpus.at(grant.gpu_index);
      gpu.holders.push_back({event.attempt, grant.share, grant.memory});
      std::ranges::sort(gpu.holders, {}, &model::GpuHolder::attempt);
      move_gpu(gpu, GpuTrigger::kAllocate);
    }
    state_.books.put(n);
  }
}

void Application::note_epilog(const model::AttemptReleased& event, const Attempt& attempt,
                              Node& n) {
  if (!event.epilog_failure.empty()) {
    n.epilog_failed_for = event.attempt.job;
  } else if (attempt.started_at.is_set() && attempt.exit.lost == model::Lost::kNo) {
    n.epilog_failed_for = {};
  }
}

void Application::on(const model::AttemptReleased& event) {
  Job& j = job(event.attempt.job);
  Attempt& attempt = find_attempt(j, event.attempt);
  move_attempt(attempt, AttemptTrigger::kReleased);
  attempt.released_at = at_;
  charge(state_, j, attempt, at_);
  count_period_use(state_, j, attempt);
  note_changes(state_.books.erase_held(j, attempt));
  state_.held_attempts.erase(event.attempt);
  for (const auto& part : attempt.allocation.nodes) {
    Node& n = node(part.node);
    CHECK(n.cpus_used >= part.cpus && n.memory_used >= part.memory);
    n.cpus_used -= part.cpus;
    n.memory_used -= part.memory;
    if (&part == &attempt.allocation.nodes.front()) note_epilog(event, attempt, n);
    for (const auto& grant : part.grants) {
      model::Gpu& gpu = n.gpus.at(grant.gpu_index);
      CHECK(std::erase_if(gpu.holders, [&](const model::GpuHolder& h) {
              return h.attempt == event.attempt;
            }) == 1);
      move_gpu(gpu, GpuTrigger::kRelease);
    }
    state_.books.put(n);
  }
  depart_if_done(j);
}

}  // namespace

void apply(State& state, const model::EventRecord& record, std::vector<Job>& departed) {
  CHECK(record.seq.value == state.seq.value + 1);
  CHECK(record.at >= state.at);
  state.seq = record.seq;
  state.at = record.at;
  while (!state.expiring_requests.empty()) {
    const auto [expires, key] = state.expiring_requests.first();
    if (expires > record.at) break;
    state.requests.erase(key);
    state.expiring_requests.erase(expires, key);
  }
  Application application(state, record.at, departed);
  std::visit([&](const auto& event) { application.on(event); }, record.event);
}

}  // namespace gpu_platform::controller
