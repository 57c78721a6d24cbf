#include "controller/core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "controller/judge/audit.h"
#include "controller/judge/budgets.h"
#include "controller/judge/endings.h"
#include "controller/judge/gpu_changes.h"
#include "controller/judge/gpu_memory.h"
#include "controller/judge/gpu_resets.h"
#include "controller/judge/health_ends.h"
#include "controller/judge/health_evidence.h"
#include "controller/judge/hung.h"
#include "controller/judge/idle.h"
#include "controller/judge/job_actions.h"
#include "controller/judge/job_update.h"
#include "controller/judge/nodes.h"
#include "controller/judge/preflight.h"
#include "controller/judge/prices.h"
#include "controller/judge/raising.h"
#include "controller/judge/reservation_change.h"
#include "controller/judge/reservations.h"
#include "controller/judge/reserved_jobs.h"
#include "controller/judge/steps.h"
#include "controller/judge/submission.h"
#include "controller/judge/taints.h"
#include "controller/judge/teams.h"
#include "controller/judge/timers.h"
#include "controller/judge/tokens.h"
#include "controller/promised_start.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Job;

namespace {

// At least doubles what it enlarges, so that many small commands in a batch move nothing often.
template <class T>
void make_room(std::vector<T>& values, std::size_t more) {
  const std::size_t needed = values.size() + more;
  if (needed > values.capacity()) values.reserve(std::max(needed, 2 * values.capacity()));
}

}  // namespace

void Batch::expect(std::size_t jobs) {
  make_room(events, jobs + 1);  // the last: what the audit trail says of it
  make_room(ended_jobs, jobs);
}

std::vector<model::LedgerLine> Core::replay(const model::EventRecord& record) {
  OwnOutbox outbox;
  apply(state_, record, outbox);
  return std::move(outbox.ledger);
}

void Core::emit(model::Event event, base::Instant now) {
  model::EventRecord record{model::EventSeq(state_.seq.value + 1), std::max(now, state_.at),
                            std::move(event)};
  const std::size_t departed_before = batch_.ended_jobs.size();
  first_checks_.note(state_, record.event);
  apply(state_, record, {batch_.ended_jobs, batch_.ledger});
  for (std::size_t i = departed_before; i < batch_.ended_jobs.size(); ++i) {
    const Job& job = batch_.ended_jobs[i];
    // Members of an array share theirs: it goes with the last.
    const bool is_shared = job.is_member() && state_.arrays.find(job.array_id.value) != nullptr;
    const std::string& ref = job.spec->environment_ref;
    if (!ref.empty() && !is_shared) batch_.dropped_environments.push_back(ref);
  }
  const bool is_new_basis = std::holds_alternative<model::NodeSeen>(record.event) ||
                            std::holds_alternative<model::PolicyApplied>(record.event);
  if (is_new_basis) feasibility_.forget();
  if (auto order = order_of(state_, record.event)) batch_.effects.push_back(*std::move(order));
  std::ranges::move(limit_orders(state_, record.event), std::back_inserter(batch_.effects));
  batch_.events.push_back(std::move(record));
}

void Core::emit_all(Events events, base::Instant now) {
  for (model::Event& event : events) {
    const auto* released = std::get_if<model::AttemptReleased>(&event);
    const model::JobId freed = released == nullptr ? model::JobId() : released->attempt.job;
    emit(std::move(event), now);
    // Nothing is left of it, so it may be due already.
    if (freed.valid()) let_in(freed, now);
  }
}

void Core::emit_if(std::optional<model::Event> event, base::Instant now) {
  if (event) emit(*std::move(event), now);
}

// ---- commands

Core::Reply Core::command(const model::Command& command, base::Instant now,
                          store::Headroom headroom) {
  const std::size_t events_before = batch_.events.size();
  const std::size_t ended_before = batch_.ended_jobs.size();
  const Request request{command.caller, now, headroom};
  // The door has looked, too; what the command waited for since may have taken long.
  const base::Status holds = check_credential(state_, command.caller, now);
  Reply reply = holds
                    ? std::visit([&](const auto& body) { return on(body, request); }, command.body)
                    : Reply(std::unexpected(holds.error()));
  emit_all(judge_trail(state_, command, std::span(batch_.events).subspan(events_before),
                       std::span(batch_.ended_jobs).subspan(ended_before)),
           now);
  return reply;
}

Core::Reply Core::on(const model::SubmitJob& command, const Request& request) {
  TRY_ASSIGN(Submission made, judge_submission(state_, feasibility_, request.caller, command,
                                               request.now, request.headroom));
  if (!made.event) return std::move(made.reply);
  if (!command.environment.empty()) {
    batch_.new_environments.push_back({made.event->spec->environment_ref, command.environment});
  }
  emit(*std::move(made.event), request.now);
  return std::move(made.reply);
}

base::Result<bool> Core::act(const Job& job, model::JobAction action, const Request& request,
                             const std::string& detail) {
  const model::JobId id = job.id;
  TRY_ASSIGN(Events events, judge_action(request.caller, job, action));
  if (events.empty()) return false;
  for (model::Event& event : events) {
    if (auto* ended = std::get_if<model::JobEnded>(&event)) ended->detail = detail;
  }
  emit_all(std::move(events), request.now);
  let_in(id, request.now);
  return true;
}

base::Result<bool> Core::update(const model::UpdateJob& command, const Request& request) {
  TRY_ASSIGN(std::optional<model::JobChanged> change,
             judge_update(state_, feasibility_, request.caller, command, request.now));
  if (!change) return false;
  emit(*std::move(change), request.now);
  return true;
}

// One that has ended and is still being cleaned up is no hindrance for the others. If nothing
// could be done with any member, the first refusal is the array's.
template <class Do>
Core::Reply Core::on_each_member(model::JobId array, const Request& request, const Do& act_on) {
  TRY_ASSIGN(const std::vector<model::JobId> members, members_for(state_, request.caller, array));
  batch_.expect(members.size());
  model::CommandReply reply{array, false};
  reply.jobs.reserve(members.size());
  for (const model::JobId id : members) {
    const Job* job = find_job(state_, id);
    if (job == nullptr || model::is_ended(job->state)) continue;
    const base::Result<bool> done = act_on(*job);
    reply.jobs.push_back({id, done && *done, std::nullopt});
    if (!done) reply.jobs.back().refusal = done.error();
  }
  reply.changed = std::ranges::any_of(reply.jobs, &model::JobOutcome::changed);
  const bool is_refused = std::ranges::all_of(
      reply.jobs, [](const model::JobOutcome& outcome) { return outcome.refusal.has_value(); });
  if (is_refused && !reply.jobs.empty()) return std::unexpected(*reply.jobs.front().refusal);
  return reply;
}

Core::Reply Core::on(const model::ActOnJob& command, const Request& request) {
  if (command.whole_array) {
    return on_each_member(command.job, request,
                          [&](const Job& job) { return act(job, command.action, request); });
  }
  TRY_ASSIGN(const Job* job, find_for(state_, request.caller, command.job));
  TRY_ASSIGN(const bool changed, act(*job, command.action, request, command.detail));
  return model::CommandReply{command.job, changed};
}

Core::Reply Core::on(const model::ActOnJobs& command, const Request& request) {
  // Chosen first: a job that ends may leave the map.
  TRY_ASSIGN(const std::vector<model::JobId> chosen,
             choose_jobs(state_, request.caller, command.which));
  if (!command.dry_run) batch_.expect(chosen.size());
  model::CommandReply reply;
  reply.changed = false;
  reply.jobs.reserve(chosen.size());
  for (const model::JobId id : chosen) {
    const Job& job = *find_job(state_, id);
    const base::Result<bool> done = command.dry_run
                                        ? would_change(request.caller, job, command.action)
                                        : act(job, command.action, request);
    model::JobOutcome outcome{id, done && *done, std::nullopt};
    if (!done) outcome.refusal = done.error();
    reply.changed = reply.changed || (outcome.changed && !command.dry_run);
    reply.jobs.push_back(std::move(outcome));
  }
  return reply;
}

Core::Reply Core::on(const model::UpdateJob& command, const Request& request) {
  if (command.whole_array) {
    return on_each_member(command.job, request, [&](const Job& job) {
      model::UpdateJob one = command;
      one.job = job.id;
      return update(one, request);
    });
  }
  TRY_ASSIGN(const bool changed, update(command, request));
  return model::CommandReply{command.job, changed};
}

Core::Reply Core::on(const model::RaiseJob& command, const Request& request) {
  TRY_ASSIGN(std::optional<model::JobsRaised> raised, judge_raise(state_, request.caller, command));
  model::CommandReply reply{command.job, raised.has_value()};
  if (raised) emit(*std::move(raised), request.now);
  return reply;
}

Core::Reply Core::on(const model::SignalJob& command, const Request& request) {
  const auto send = [&](const Job& job) -> base::Result<bool> {
    TRY_ASSIGN(model::SignalRequested signal,
               judge_signal(state_, request.caller, job, command.signal));
    emit(std::move(signal), request.now);
    return true;
  };
  if (command.whole_array) return on_each_member(command.job, request, send);
  TRY_ASSIGN(const Job* job, find_for(state_, request.caller, command.job));
  TRY(send(*job));
  return model::CommandReply{command.job};
}

Core::Reply Core::on(const model::RecordStep& command, const Request& request) {
  TRY_ASSIGN(const Job* job, find_for(state_, request.caller, command.attempt.job));
  TRY_ASSIGN(std::optional<model::StepRecorded> recorded,
             judge_step(*job, command, request.now, request.headroom));
  model::CommandReply reply{job->id, recorded.has_value()};
  if (recorded) emit(*std::move(recorded), request.now);
  return reply;
}

Core::Reply Core::on(const model::ChangeGpus& command, const Request& request) {
  TRY_ASSIGN(GpuChange change, judge_gpus(state_, request.caller, command, request.now));
  model::CommandReply reply;
  reply.changed = !change.events.empty();
  emit_all(std::move(change.events), request.now);
  if (reply.changed && command.action == model::GpuAction::kBringOnline) {
    std::set<model::GpuRef> touched = GpuHealth::withheld(state_);
    touched.insert(change.gpus.begin(), change.gpus.end());
    judge_health(touched, request.now);
  }
  if (reply.changed) reply.gpus = std::move(change.gpus);
  return reply;
}

Core::Reply Core::on(const model::MakeReservation& command, const Request& request) {
  TRY_ASSIGN(model::ReservationMade made,
             judge_reservation(state_, ground_of_reservations(), request.caller, command,
                               request.now, request.headroom));
  emit(std::move(made), request.now);
  return model::CommandReply{{}, true};
}

Core::Reply Core::on(const model::ChangeReservation& command, const Request& request) {
  TRY_ASSIGN(Events events,
             judge_reservation_change(state_, ground_of_reservations(), request.caller, command,
                                      request.now, request.headroom));
  const bool changes = !events.empty();
  emit_all(std::move(events), request.now);
  return model::CommandReply{{}, changes};
}

Core::Reply Core::on(const model::CancelReservation& command, const Request& request) {
  TRY_ASSIGN(model::ReservationEnded ended, judge_cancellation(state_, request.caller, command));
  emit(std::move(ended), request.now);
  emit_all(jobs_without_reservation(state_), request.now);
  return model::CommandReply{{}, true};
}

Core::Reply Core::on(const model::MakeToken& command, const Request& request) {
  TRY_ASSIGN(TokenMade made,
             judge_token(state_, request.caller, command, request.now, request.headroom));
  model::CommandReply reply;
  reply.changed = made.event.has_value();
  reply.token = made.id;
  if (made.event) emit(*std::move(made.event), request.now);
  return reply;
}

Core::Reply Core::on(const model::RevokeToken& command, const Request& request) {
  TRY_ASSIGN(Events ends, judge_revocation(state_, request.caller, command));
  emit_all(std::move(ends), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::RecordTokenUse& command, const Request& request) {
  std::optional<model::Event> used = judge_token_use(state_, command, request.headroom);
  model::CommandReply reply;
  reply.changed = used.has_value();
  emit_if(std::move(used), request.now);
  return reply;
}

Core::Reply Core::on(const model::SetTeam& command, const Request& request) {
  TRY_ASSIGN(std::optional<model::Event> changed,
             judge_team(state_, request.caller, command, request.now, request.headroom));
  model::CommandReply reply;
  reply.changed = changed.has_value();
  emit_if(std::move(changed), request.now);
  return reply;
}

Core::Reply Core::on(const model::AnswerInvitation& command, const Request& request) {
  TRY_ASSIGN(model::Event changed,
             judge_answer(state_, request.caller, command, request.now, request.headroom));
  emit(std::move(changed), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::SetPrice& command, const Request& request) {
  TRY_ASSIGN(model::PriceSet event, judge_price(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::WithdrawPrice& command, const Request& request) {
  TRY_ASSIGN(model::PriceWithdrawn event,
             judge_withdrawal(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::SetBudget& command, const Request& request) {
  TRY_ASSIGN(model::BudgetSet event, judge_budget(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::OverrideBudget& command, const Request& request) {
  TRY_ASSIGN(model::BudgetSet event, judge_override(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::RemoveBudget& command, const Request& request) {
  TRY_ASSIGN(model::BudgetRemoved event,
             judge_removal(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::CorrectLedger& command, const Request& request) {
  TRY_ASSIGN(model::LedgerCorrected event,
             judge_correction(state_, request.caller, command, request.now));
  emit(std::move(event), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::RemoveTeam& command, const Request& request) {
  TRY_ASSIGN(model::TeamRemoved removed, judge_removal(state_, request.caller, command));
  emit(std::move(removed), request.now);
  return model::CommandReply{};
}

Core::Reply Core::on(const model::RecordCalls& command, const Request& request) {
  Events events = judge_calls(command, request.headroom);
  model::CommandReply reply;
  reply.changed = !events.empty();
  emit_all(std::move(events), request.now);
  return reply;
}

void Core::apply_policy(const model::Policy& policy, std::string by, base::Instant now,
                        const model::Origin& origin) {
  const bool is_new = !state_.seq.valid() || policy != configured_policy(state_);
  if (is_new) {
    emit(model::PolicyApplied{policy, std::move(by)}, now);
    emit_all(judge_gpus_again(state_), now);
    if (model::mode_of(policy) == model::HealthMode::kOff)
      emit_all(lift_all_of_health(state_), now);
    health_.look_at_all_again();
  }
  const bool is_asked_for = origin.door == model::Door::kSignal;
  if (is_asked_for || (is_new && origin.door != model::Door::kNone)) {
    model::AuditedCall call;
    call.by = origin;
    call.action = model::AuditAction::kConfigure;
    emit(model::CallAudited{std::move(call)}, now);
  }
}

// ---- observations

void Core::observe(const execution::Observation& observation, base::Instant now) {
  std::visit([&](const auto& seen) { on(seen, now); }, observation);
}

void Core::on(const execution::Started& seen, base::Instant now) {
  if (is_given_up(state_, seen.attempt)) {
    batch_.effects.push_back(stop_at_once(state_, seen.attempt));
  }
  emit_if(judge_start(state_, seen, now), now);
}

void Core::on(const execution::Ended& seen, base::Instant now) {
  // First, so that nothing new is placed on what has failed.
  record(failed_preflights(state_, seen, now), now);
  // Of the job as it still is.
  const std::optional<HardwareBlame> blame = health_.blame(state_, seen, now);
  std::optional<EndOnGpus> end;
  // What another job has done to it tells nothing of the GPU.
  if (seen.neighbour_fault.empty()) end = end_on_gpus(state_, seen, now);
  emit_all(judge_end(state_, seen, now, blame), now);
  if (!end) return;
  std::vector<model::EvidenceRecorded> pieces;
  for (const model::GpuRef gpu : end->gpus) {
    for (auto& piece : health_.take(state_, gpu, end->evidence, now)) {
      pieces.push_back(std::move(piece));
    }
  }
  record(std::move(pieces), now);
}

void Core::on(const execution::Cleaned& seen, base::Instant now) {
  emit_all(judge_cleaning(state_, seen), now);
}

void Core::on(const execution::UnmanagedProcessesObserved& seen, base::Instant now) {
  emit_if(judge_unmanaged_processes(state_, seen), now);
}

void Core::on(const execution::TaintObserved& seen, base::Instant now) {
  emit_if(judge_taint(state_, seen), now);
}

void Core::on(const execution::EvidenceObserved& seen, base::Instant now) {
  record(health_.take(state_, seen, now), now);
  emit_if(judge_hung(state_, seen), now);
}

void Core::on(const execution::GpuMemoryExceeded& seen, base::Instant now) {
  emit_if(judge_gpu_memory(state_, seen), now);
}

void Core::on(const execution::AllocationIdle& seen, base::Instant now) {
  for (model::Event& event : judge_idle(state_, seen)) emit(std::move(event), now);
}

void Core::on(const execution::ResetEnded& seen, base::Instant now) {
  std::optional<ResetEnd> end = judge_reset_end(state_, seen, now);
  if (!end) return;
  record(std::move(end->evidence), now);
  emit(std::move(end->lifted), now);
  // What was seen meanwhile may want a reset.
  if (seen.without_reset) judge_health({end->gpu}, now);
}

void Core::record(std::vector<model::EvidenceRecorded> pieces, base::Instant now) {
  std::set<model::GpuRef> touched;
  for (const model::EvidenceRecorded& piece : pieces) {
    emit(piece, now);
    touched.merge(GpuHealth::touched_by(state_, piece));
  }
  judge_health(touched, now);
}

void Core::judge_health(const std::set<model::GpuRef>& gpus, base::Instant now) {
  const auto lets_one_go = [](const model::Event& event) {
    const auto* taint = std::get_if<model::TaintChanged>(&event);
    return taint != nullptr && taint->is_lifted;
  };
  bool has_let_go = false;
  for (const model::GpuRef gpu : gpus) {
    Events events = health_.judge(state_, gpu, now);
    has_let_go = has_let_go || std::ranges::any_of(events, lets_one_go);
    emit_all(std::move(events), now);
  }
  if (!has_let_go) return;
  // The breaker may let others go now.
  const std::set<model::GpuRef> withheld = GpuHealth::withheld(state_);
  for (const model::GpuRef gpu : withheld) emit_all(health_.judge(state_, gpu, now), now);
}

void Core::on(const execution::NodeObserved& seen, base::Instant now) {
  const auto known = state_.node_ids.find(seen.info.name);
  if (known == state_.node_ids.end()) {
    emit_all(judge_node(state_, seen), now);
    const auto made = state_.node_ids.find(seen.info.name);
    if (made != state_.node_ids.end()) first_checks_.note(made->second);
    return;
  }
  const model::NodeId id = known->second;
  const std::string former_boot = state_.nodes.find(id.value)->boot_id;
  const bool rebooted = former_boot != seen.info.boot_id;
  const bool was_lost = !model::is_heard(*state_.nodes.find(id.value));
  // First, so that a node that comes back smaller never holds more than it has.
  // What is given up on a node that may not be empty must be stopped, too.
  const bool is_empty = rebooted && model::traits_of(seen.info.engine).is_empty_after_boot;
  if (rebooted) lose_attempts(attempts_on(state_, id, former_boot), is_empty, now);
  emit_all(judge_node(state_, seen), now);
  if (!(was_lost || rebooted)) return;
  first_checks_.note(id);
  if (rebooted) record(restart_of(state_, id, now), now);
  for (execution::ResetOrder& order : reset_orders(state_, id)) {
    batch_.effects.emplace_back(std::move(order));
  }
  if (is_empty) return;
  // It came back without a new boot: what was given up there may still run, and must not.
  for (const model::AttemptId there : attempts_on(state_, id)) {
    if (find_attempt(state_, there)->state != model::AttemptState::kCleaning) continue;
    batch_.effects.push_back(stop_at_once(state_, there));
  }
}

void Core::on(const execution::NodeUnreachable& seen, base::Instant now) {
  const auto known = state_.node_ids.find(seen.node_name);
  if (known == state_.node_ids.end()) return;
  const model::NodeId id = known->second;
  if (!model::is_heard(*state_.nodes.find(id.value))) return;
  emit(connection_changed(id, seen.cause), now);
  lose_attempts(attempts_on(state_, id), false, now);
}

void Core::on(const execution::MachineBooted& seen, base::Instant now) {
  emit_all(judge_boot(state_, seen), now);
}

// Gives them up. `is_empty`: a new boot has left nothing of them, so what they held there is free;
// otherwise it stays held until the node tells, and what gangs hold until all of their nodes have
// told.
void Core::lose_attempts(const std::vector<model::AttemptId>& attempts, bool is_empty,
                         base::Instant now) {
  for (const model::AttemptId id : attempts) {
    emit_all(judge_loss(state_, id, now), now);
    if (find_attempt(state_, id)->allocation.nodes.size() > 1) {
      // The other nodes of the job know nothing of it: what runs there must go before anything is
      // given on.
      batch_.effects.push_back(execution::StopOrder{id, true, {}, model::EndReason::kNodeLost});
    } else if (is_empty) {
      emit_all({model::AttemptReleased{id}}, now);
    }
  }
}

// ---- time

void Core::advance(base::Instant now) {
  emit_all(ended_reservations(state_, now), now);
  emit_all(jobs_without_reservation(state_), now);
  while (auto event = next_expired_token(state_, now)) emit(*std::move(event), now);
  while (auto event = next_ended_taint(state_, now)) emit(*std::move(event), now);
  while (auto piece = health_.next_put_off(state_, now)) record({*std::move(piece)}, now);
  judge_health(health_.take_due(state_, now), now);
  while (auto event = next_check_of_degraded(state_, now)) emit(*std::move(event), now);
  emit_all(first_checks_.take(state_), now);
  while (auto event = next_due_reset(state_)) emit(*std::move(event), now);
  while (auto event = next_unstartable(state_, now)) emit(*std::move(event), now);
  admit_due_jobs(now);
  emit_all(judge_counts(state_, now), now);
  emit_all(stops_by_budgets(state_, now), now);
  while (auto event = next_overdue(state_, now)) emit(*std::move(event), now);
  // Decided before this step, so that the decision is durable, and carried out if the beneficiary
  // still waits although everything that came in meanwhile and a cycle have had their say.
  const std::vector<model::JobId> decided = holds_to_carry_out(state_);
  run_cycle(now);
  for (const model::JobId beneficiary : decided) emit_all(judge_victims(state_, beneficiary), now);
  advanced_to_ = now;
}

bool Core::let_in(model::JobId job, base::Instant now) {
  auto event = judge_eligible(state_, job, now);
  const bool is_due = event.has_value();
  emit_if(std::move(event), now);
  return is_due;
}

// A member of an array that ran before goes before its sisters, which are due by an earlier time:
// they have been passed by then, and are looked at once more.
void Core::admit_due_jobs(base::Instant now) {
  bool has_passed_sisters = true;
  while (has_passed_sisters) {
    has_passed_sisters = false;
    for (auto due = next_due(state_, {}, now); due; due = next_due(state_, *due, now)) {
      const model::Job& job = *find_job(state_, due->second);
      const bool ran_before = job.is_member() && !job.attempts.empty();
      has_passed_sisters |= let_in(due->second, now) && ran_before;
    }
  }
}

void Core::run_cycle(base::Instant now) {
  const scheduling::Plan plan =
      cycle_cache_.plan(state_.books, *state_.policy, {.now = now, .observer = observer_});
  if (planned_starts_ == nullptr || *planned_starts_ != plan.planned_starts) {
    planned_starts_ =
        std::make_shared<const std::vector<scheduling::PlannedStart>>(plan.planned_starts);
  }
  emit_all(events_of(state_, plan), now);
  if (!plan.unchanged || start_predictor_.next()) {
    emit_all(start_predictor_.judge(state_, state_.books, plan.planned_starts, now), now);
  }
  look_again_at_ = plan.look_again_at;
}

std::optional<base::Instant> Core::next_wakeup() const {
  std::optional<base::Instant> look_again_at = look_again_at_;
  if (const auto next = start_predictor_.next()) {
    look_again_at = std::min(look_again_at.value_or(*next), *next);
  }
  if (const auto next = health_.next(state_)) {
    const base::Instant later = std::max(*next, advanced_to_ + base::nanoseconds(1));
    look_again_at = std::min(look_again_at.value_or(later), later);
  }
  return controller::next_wakeup(state_, advanced_to_, look_again_at);
}

// ---- what leaves

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

const scheduling::PlannedStart* Core::promised() const {
  return planned_starts_ == nullptr ? nullptr : promised_start(state_, *planned_starts_);
}

ReservationBasis Core::ground_of_reservations() {
  return {state_.books.cluster_for_trial(), promised()};
}

// Nodes only come, and keep their names: as many are the same ones.
const base::Shared<std::vector<model::NodeId>>& Core::nodes_by_name() {
  if (nodes_by_name_->size() == state_.node_ids.size()) return nodes_by_name_;
  std::vector<model::NodeId> ids;
  ids.reserve(state_.node_ids.size());
  for (const auto& [name, id] : state_.node_ids) ids.push_back(id);
  nodes_by_name_ = std::move(ids);
  return nodes_by_name_;
}

std::shared_ptr<const Snapshot> Core::snapshot() {
  const scheduling::PlannedStart* const promised = this->promised();
  return std::make_shared<const Snapshot>(
      Snapshot{.seq = state_.seq,
               .at = state_.at,
               .jobs = state_.jobs.freeze(),
               .nodes = state_.nodes.freeze(),
               .policy = state_.policy,
               .counts = state_.counts,
               .planned_starts = planned_starts_,
               .order = state_.books->queue.basis(),
               .use_epoch = state_.use.epoch(),
               .holds = share(state_.books->holds, shared_holds_),
               .arrays = state_.arrays.freeze(),
               .period_use = state_.books->period_use,
               .reservations = share(state_.books->reservations, shared_reservations_),
               .runs = state_.books.freeze_history(),
               .scores = state_.scores,
               .tokens = state_.tokens.freeze(),
               .teams = state_.teams,
               .promised = promised == nullptr ? model::JobId() : promised->job,
               .nodes_by_name = nodes_by_name(),
               .prices = state_.prices,
               .budgets = state_.books->budgets});
}

Batch Core::take_batch() {
  return std::exchange(batch_, {});
}

}  // namespace gpu_platform::controller
