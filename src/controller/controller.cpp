#include "controller/controller.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "controller/invariants.h"
#include "controller/ledger_maker.h"
#include "controller/node_conditions.h"

namespace gpu_platform::controller {

Controller::Controller(store::Journal& journal, execution::Engine& engine,
                       ControllerOptions options)
    : journal_(journal), engine_(engine), options_(options) {
  published_ = core_.snapshot();
}

base::Status Controller::recover(base::Instant now, std::string* note) {
  LedgerMaker ledger(journal_);
  TRY(load_snapshot(ledger, note));
  TRY(journal_.replay(core_.state().seq, [&](const model::EventRecord& record) -> base::Status {
    if (record.seq.value != core_.state().seq.value + 1) {
      return base::fail(base::ErrorCode::kDataLoss,
                        fmt::format("journal: event {} follows event {}", record.seq.value,
                                    core_.state().seq.value));
    }
    ++events_since_snapshot_;
    return ledger.take(record.seq, core_.replay(record));
  }));
  TRY_ASSIGN(const std::string of_ledger, ledger.finish());
  if (note != nullptr && !of_ledger.empty()) *note += (note->empty() ? "" : "; ") + of_ledger;
  // Without a snapshot that has it all, the next start would replay all events again.
  if (ledger.has_closed_gap() && store_snapshot()) events_since_snapshot_ = 0;
  published_ = core_.snapshot();
  for (PublicationListener* listener : listeners_) listener->published(published_, {}, {});
  reconcile();
  engine_.adopt_conditions(lasting_conditions(core_.state()));
  reconcile_at_ = now + options_.reconcile_interval;
  return {};
}

base::Status Controller::load_snapshot(const LedgerMaker& ledger, std::string* note) {
  TRY_ASSIGN(const std::optional<store::StoredSnapshot> stored, journal_.newest_snapshot(note));
  if (!stored) return {};
  TRY_ASSIGN(State state, decode_state(stored->state));
  if (!ledger.may_begin_with(state)) return {};
  core_ = Core(std::move(state));
  core_.set_stage_observer(observer_);
  return {};
}

base::Status Controller::step(std::span<Input> inputs, base::Instant now) {
  decide(inputs, now);
  TRY(commit());
  publish();
  acknowledge();
  dispatch();
  return {};
}

void Controller::decide(std::span<Input> inputs, base::Instant now) {
  const store::Headroom headroom = inputs.empty() ? store::Headroom::kAmple : journal_.headroom();
  for (Input& input : inputs) take(input, now, headroom);
  core_.advance(now);
  batch_ = core_.take_batch();
  is_reconciling_ = now >= reconcile_at_;
  if (is_reconciling_) reconcile_at_ = now + options_.reconcile_interval;
}

void Controller::take(Input& input, base::Instant now, store::Headroom headroom) {
  if (auto* command = std::get_if<CommandInput>(&input)) {
    auto reply = core_.command(command->command, now, headroom);
    acknowledgements_.push_back({std::move(command->done), std::move(reply)});
  } else if (const auto* observation = std::get_if<execution::Observation>(&input)) {
    core_.observe(*observation, now);
  } else if (auto* barrier = std::get_if<Barrier>(&input)) {
    acknowledgements_.push_back(
        {[reached = std::move(barrier->reached)](const auto&) { reached(); },
         model::CommandReply{}});
  } else if (const auto* drop = std::get_if<HistoryDrop>(&input)) {
    leaving_.insert(leaving_.end(), drop->jobs.begin(), drop->jobs.end());
  } else {
    auto& change = std::get<PolicyChange>(input);
    core_.apply_policy(change.policy, std::move(change.by), now, change.origin);
  }
}

base::Status Controller::commit() {
  if (batch_.events.empty()) return {};
  TRY(check_batch());
  const model::Policy& policy = *core_.state().policy;
  TRY(journal_.append(
      {batch_.events,
       batch_.ended_jobs,
       batch_.ledger,
       batch_.new_environments,
       batch_.dropped_environments,
       {core_.state().at + (base::Duration() - policy.audit_keep), policy.max_audit_entries},
       policy.ledger_keep == base::Duration()
           ? base::Instant()
           : core_.state().at + (base::Duration() - policy.ledger_keep)}));
  events_since_snapshot_ += batch_.events.size();
  return {};
}

// The cheap form of the invariants, on what the batch touched. What is wrong must not become
// durable.
base::Status Controller::check_batch() const {
  model::JobId last;
  for (const model::EventRecord& record : batch_.events) {
    const model::JobId job = job_of(record.event);
    if (!job.valid() || job == last) continue;
    last = job;
    const auto violations = check_job(core_.state(), job);
    if (violations.empty()) continue;
    return base::fail(
        base::ErrorCode::kInternal,
        fmt::format("an invariant does not hold after event {} ({}): {}", record.seq.value,
                    model::name_of(record.event), violations.front()));
  }
  return {};
}

void Controller::publish() {
  if (batch_.events.empty()) return;
  published_ = core_.snapshot();
  const DepartedJobs departed(batch_.ended_jobs);
  for (PublicationListener* listener : listeners_) {
    listener->published(published_, batch_.events, departed);
  }
}

void Controller::acknowledge() {
  for (Acknowledgement& acknowledgement : acknowledgements_) {
    if (acknowledgement.done) acknowledgement.done(std::move(acknowledgement.reply));
  }
  acknowledgements_.clear();
}

void Controller::dispatch() {
  for (const Effect& effect : batch_.effects) order(effect);
  batch_ = {};
  // Here rather than in decide(): what the engine is told of must be durable too.
  const bool is_due = std::exchange(is_reconciling_, false);
  if (is_due && has_orders_out()) reconcile();
  // What cannot be removed now is asked for again. A medium that is really broken fails the next
  // commit.
  if (!leaving_.empty()) {
    (void)journal_.drop_jobs(leaving_);
    leaving_.clear();
  }
  // A snapshot that cannot be written costs time at the next start and nothing else: the journal
  // has everything. A medium that is really broken fails the next commit.
  if (events_since_snapshot_ >= options_.events_per_snapshot && store_snapshot()) {
    events_since_snapshot_ = 0;
  }
}

void Controller::reconcile() {
  engine_.adopt(known_attempts(core_.state()));
  for (const Effect& effect : pending_effects(core_.state())) order(effect);
}

bool Controller::has_orders_out() const {
  return !core_.state().held_attempts.empty() || !core_.state().health.resets().empty();
}

void Controller::order(const Effect& effect) {
  if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
    engine_.start(*start);
  } else if (const auto* stop = std::get_if<execution::StopOrder>(&effect)) {
    engine_.stop(*stop);
  } else if (const auto* limit = std::get_if<execution::LimitOrder>(&effect)) {
    engine_.set_limit(*limit);
  } else if (const auto* signal = std::get_if<execution::SignalOrder>(&effect)) {
    engine_.signal(*signal);
  } else if (const auto* reset = std::get_if<execution::ResetOrder>(&effect)) {
    engine_.reset(*reset);
  } else {
    engine_.forget(std::get<execution::ForgetOrder>(effect));
  }
}

std::optional<base::Instant> Controller::next_wakeup() const {
  std::optional<base::Instant> wakeup = core_.next_wakeup();
  if (has_orders_out()) {
    wakeup = wakeup ? std::min(*wakeup, reconcile_at_) : reconcile_at_;
  }
  return wakeup;
}

base::Status Controller::store_snapshot() {
  const State& state = core_.state();
  if (!state.seq.valid()) return {};
  return journal_.put_snapshot({state.seq, encode_state(state)});
}

}  // namespace gpu_platform::controller
