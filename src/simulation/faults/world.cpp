#include "simulation/faults/world.h"

#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/job_spec.h"

namespace gpu_platform::simulation {

namespace {

constexpr base::Instant kFirstInstant(1'700'000'000'000'000'000);

}  // namespace

World::World(std::uint64_t seed, Plant plant, FaultCounts& counts)
    : random_(seed),
      seed_(seed),
      plant_(plant),
      setup_(draw_setup(random_)),
      findings_(seed, counts),
      clock_(kFirstInstant),
      truth_(findings_),
      ledger_(findings_, truth_),
      link_(base::Prng(random_.next()), clock_, findings_, ledger_, plant),
      engine_(link_, *this, &truth_),
      lying_(store_),
      client_(base::Prng(random_.next()), setup_, findings_, ledger_, store_),
      policy_(setup_.policy),
      boots_(setup_.nodes.size()) {
  if (setup_.has_pods) open_cluster();
  link_.connect(engine_, pods_ ? &*pods_ : nullptr);
  link_.set_faults(setup_.orders, setup_.news);
  store_.on_written(
      [this](model::EventSeq) { return std::exchange(next_sync_, store::SyncOutcome::kSynced); });
}

void World::open_cluster() {
  base::Prng random(base::hash64("pods", seed_));
  auto& script = static_cast<execution::VirtualScript&>(*this);
  cluster_.emplace(base::Prng(random.next()), script, truth_, findings_, plant_);
  pods_.emplace(base::Prng(random.next()), *cluster_, findings_, plant_,
                [this](execution::Observation seen) { link_.observe_cluster(std::move(seen)); });
  pods_->set_faults(setup_.pods);
  pods_->advance(clock_.boot());
}

bool World::has_pods(std::size_t node) const {
  return pods_ && !model::traits_of(setup_.nodes[node].engine).is_on_this_machine;
}

void World::run() {
  engine_.advance(clock_.boot());
  for (std::size_t i = 0; i < setup_.nodes.size(); ++i) {
    if (has_pods(i)) {
      cluster_->put_node(setup_.nodes[i]);
    } else {
      engine_.put_node(setup_.nodes[i]);
    }
  }
  recover();
  run_with_faults();
  if (findings_.any()) return;
  heal();
  run_to_the_end();
  if (!findings_.any()) check_end();
}

std::uint64_t World::hash() const {
  const std::uint64_t parts[] = {ledger_.hash(), truth_.hash(), findings_.step(),
                                 controller::state_hash(ledger_.state())};
  return base::hash64({reinterpret_cast<const char*>(parts), sizeof parts});
}

store::Journal& World::journal() {
  if (plant_ == Plant::kLostJob) return lying_;
  return store_;
}

execution::VirtualRun World::run_of(const execution::StartOrder& order) {
  execution::VirtualRun run =
      draw_run(seed_, order.spec->name, order.attempt.attempt, order.time_limit);
  if (is_faulty_ && random_.chance(setup_.launch_failures, 1000)) {
    findings_.count(FaultKind::kLaunchFailed);
    run.launch_error = "the launcher does not answer";
    run.exit = {};
  }
  if (is_faulty_ && random_.chance(setup_.hook_failures, 1000)) {
    findings_.count(FaultKind::kPrologFailed);
    run.prolog_failure = "the site's prolog: exit code 1";
  }
  if (is_faulty_ && random_.chance(setup_.hook_failures, 1000)) {
    findings_.count(FaultKind::kEpilogFailed);
    run.epilog_failure = "exit code 1";
  }
  const std::string& ref = order.spec->environment_ref;
  if (!ref.empty() && !journal().environment(ref)) {
    findings_.violated("environment", fmt::format("job {} starts and its environment is gone",
                                                  order.attempt.job.value));
  }
  return run;
}

// ---- one turn of the controller

void World::turn() {
  findings_.next_step();
  const bool lives = decide_and_commit() && publish_and_dispatch();
  if (findings_.any()) return;
  if (lives) {
    check_turn();
  } else {
    crash();
  }
}

// Each point comes only where a batch makes it matter.
bool World::dies_at(FaultKind point) {
  if (planned_crash_ != point || controller_->open_batch().empty()) return false;
  planned_crash_.reset();
  findings_.count(point);
  return true;
}

bool World::decide_and_commit() {
  std::vector<controller::Input> inputs = std::exchange(commands_, {});
  come_through_the_door(inputs);
  if (plant_ == Plant::kForgottenRequeue) forget_requeues(inputs);
  for (execution::Observation& seen : link_.take_news()) inputs.emplace_back(std::move(seen));
  controller_->decide(inputs, clock_.told());
  plant_in_batch();
  if (dies_at(FaultKind::kCrashBeforeCommit)) return false;
  if (controller_->snapshot()->seq > journal().last_seq()) {
    findings_.violated("published", "readers see events that are not durable");
  }
  return commit();
}

// Those of owners, which are not refused.
void World::forget_requeues(std::vector<controller::Input>& inputs) {
  std::erase_if(inputs, [this](const controller::Input& input) {
    const auto* given = std::get_if<controller::CommandInput>(&input);
    if (given == nullptr) return false;
    const auto* act = std::get_if<model::ActOnJob>(&given->command.body);
    const bool requeues = act != nullptr && !act->whole_array &&
                          (act->action == model::JobAction::kRequeue ||
                           act->action == model::JobAction::kRequeueAndHold);
    if (!requeues) return false;
    const model::Job* job = controller_->core().state().jobs.find(act->job.value);
    const bool is_running = job != nullptr && job->state == model::JobState::kRunning;
    if (!is_running || job->spec->uid != given->command.caller.uid) return false;
    given->done(model::CommandReply{act->job, true});
    return true;
  });
}

// The audit trail knows every caller of a command.
void World::come_through_the_door(std::vector<controller::Input>& inputs) {
  for (controller::Input& input : inputs) {
    if (auto* command = std::get_if<controller::CommandInput>(&input)) {
      command->command.caller.door = model::Door::kUnixSocket;
    }
  }
}

void World::plant_in_batch() {
  controller::Batch& batch = controller_->open_batch();
  if (plant_ == Plant::kLostRequeue) lose_requeues(batch.events);
  if (plant_ == Plant::kHalfGang) {
    for (model::EventRecord& record : batch.events) {
      auto* start = std::get_if<model::StartRequested>(&record.event);
      if (start == nullptr) continue;
      auto& grants = start->allocation.nodes.front().grants;
      if (grants.size() > 1) grants.pop_back();
    }
  } else if (plant_ == Plant::kForgottenCaller) {
    for (model::EventRecord& record : batch.events) {
      auto* audited = std::get_if<model::CallAudited>(&record.event);
      if (audited == nullptr) continue;
      audited->call.jobs.clear();
      audited->call.job_count = 0;
    }
  } else if (plant_ == Plant::kEffectBeforeSync) {
    for (const controller::Effect& effect : batch.effects) {
      if (const auto* start = std::get_if<execution::StartOrder>(&effect)) link_.start(*start);
    }
  } else if (plant_ == Plant::kEarlyAnswer) {
    controller_->acknowledge();
  }
}

// The very next event says what becomes of the job.
void World::lose_requeues(std::vector<model::EventRecord>& events) {
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto* ended = std::get_if<model::AttemptEnded>(&events[i - 1].event);
    const auto* requeued = std::get_if<model::JobRequeued>(&events[i].event);
    if (ended == nullptr || requeued == nullptr || ended->exit.code != 0) continue;
    events[i].event = model::JobEnded{requeued->job, model::JobTrigger::kComplete};
  }
}

bool World::commit() {
  const bool stores = !controller_->open_batch().events.empty();
  if (stores && planned_crash_ == FaultKind::kCrashCommitLost) {
    next_sync_ = store::SyncOutcome::kLost;
  } else if (stores && planned_crash_ == FaultKind::kCrashCommitUnheard) {
    next_sync_ = store::SyncOutcome::kSyncedUnheard;
  }
  const bool is_to_fail = next_sync_ != store::SyncOutcome::kSynced;
  const base::Status committed = controller_->commit();
  if (!committed && is_to_fail) {
    findings_.count(*std::exchange(planned_crash_, std::nullopt));
    return false;
  }
  if (!committed) findings_.violated("commit", committed.error().message);
  ledger_.absorb(journal());
  if (stores && !findings_.any() &&
      controller::state_hash(controller_->core().state()) !=
          controller::state_hash(ledger_.state())) {
    findings_.violated("replay", "the journal does not give the live state");
  }
  return true;
}

bool World::publish_and_dispatch() {
  if (dies_at(FaultKind::kCrashBeforePublish)) return false;
  controller_->publish();
  if (dies_at(FaultKind::kCrashBeforeAcknowledge)) return false;
  controller_->acknowledge();
  if (dies_at(FaultKind::kCrashBeforeDispatch)) return false;
  const std::size_t orders = controller_->open_batch().effects.size();
  const bool dies = orders > 1 && dies_at(FaultKind::kCrashInDispatch);
  if (dies) link_.die_after(1 + random_.below(orders - 1));
  controller_->dispatch();
  return !dies;
}

void World::check_turn() {
  const auto wakeup = controller_->next_wakeup();
  if (wakeup && *wakeup <= clock_.told()) {
    findings_.violated("spin", "the controller asks to be woken at a time that has passed");
  }
}

// ---- the end of a process and the next one

void World::crash() {
  controller_.reset();
  commands_.clear();
  engine_.drop_checks();
  link_.crash();
  if (pods_) pods_->crash();
  store_.crash();
  lying_.crash();
  ledger_.absorb(journal());
  if (std::exchange(is_snapshot_to_be_damaged_, false)) damage_snapshot();
  let_time_pass(random_.chance(1, 2) ? 2 : 200);
  recover();
}

void World::let_time_pass(std::uint64_t max_seconds) {
  const base::Duration pause =
      base::milliseconds(static_cast<std::int64_t>(random_.below(max_seconds * 1000)));
  clock_.advance_to(clock_.boot() + pause);
  engine_.advance(clock_.boot());
  if (pods_) pods_->advance(clock_.boot());
  link_.deliver();
  link_.take_news();  // nothing listens
}

void World::damage_snapshot() {
  const auto newest = store_.newest_snapshot(nullptr);
  if (!newest || !*newest) return;
  store_.damage_snapshot((*newest)->upto);
  findings_.count(FaultKind::kSnapshotDamaged);
}

void World::recover() {
  while (!recover_once()) {
    if (findings_.any()) return;
    let_time_pass(5);
  }
  commands_.emplace_back(controller::PolicyChange{policy_, "configuration"});
  engine_.announce_nodes();
}

// False when the process died on the way.
bool World::recover_once() {
  if (pods_) pods_->open();
  controller_.emplace(journal(), link_, setup_.controller);
  clock_.restart_after(ledger_.state().at);
  const std::size_t held = ledger_.state().held_attempts.size();
  const bool dies = held > 0 && std::exchange(dies_in_recovery_, false);
  if (dies) link_.die_after(random_.below(held + 1));
  const base::Status recovered = controller_->recover(clock_.told());
  if (!recovered) {
    findings_.violated("recovery", recovered.error().message);
    return false;
  }
  if (controller::state_hash(controller_->core().state()) !=
      controller::state_hash(ledger_.state())) {
    findings_.violated("replay", "the recovered state is not what the journal says");
    return false;
  }
  if (!dies) return true;
  findings_.count(FaultKind::kCrashInRecovery);
  controller_.reset();
  engine_.drop_checks();
  link_.crash();
  if (pods_) pods_->crash();
  store_.crash();
  return false;
}

void World::check_replay_from_start() {
  controller::State state;
  controller::OwnOutbox outbox;
  const base::Status read =
      journal().replay({}, [&](const model::EventRecord& record) -> base::Status {
        controller::apply(state, record, outbox);
        return {};
      });
  if (!read || controller::state_hash(state) != controller::state_hash(ledger_.state())) {
    findings_.violated("replay", "the journal from its start does not give the live state");
  }
  if (outbox.ledger != ledger_.lines()) {
    findings_.violated("replay", "the journal from its start gives other lines of the ledger");
  }
  check_stored_lines();
  for (const model::Job& job : outbox.departed) {
    const bool is_shared = job.is_member() && state.arrays.find(job.array_id.value) != nullptr;
    if (is_shared) continue;  // it goes with the last member
    if (!job.spec->environment_ref.empty() && journal().environment(job.spec->environment_ref)) {
      findings_.violated("environment",
                         fmt::format("job {} is gone and its environment is kept", job.id.value));
    }
  }
}

// The store has the lines that the events make.
void World::check_stored_lines() {
  std::vector<model::LedgerLine> stored;
  const store::LedgerQuery all{.from = std::numeric_limits<model::Millis>::min(),
                               .to = std::numeric_limits<model::Millis>::max()};
  const base::Status read = store_.visit(all, [&](const model::LedgerLine& line) -> base::Status {
    stored.push_back(line);
    return {};
  });
  if (!read || stored != ledger_.lines()) {
    findings_.violated("replay", "the store has other lines of the ledger than the journal makes");
  }
}

}  // namespace gpu_platform::simulation
