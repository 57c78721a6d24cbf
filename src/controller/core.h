#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/judge/feasibility.h"
#include "controller/judge/first_checks.h"
#include "controller/judge/health.h"
#include "controller/judge/reservations.h"
#include "controller/judge/start_predictor.h"
#include "controller/orders.h"
#include "controller/snapshot.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/command.h"
#include "model/event.h"
#include "scheduling/plan_cycle.h"
#include "store/store.h"

namespace gpu_platform::controller {

// The contents of one journal commit.
struct Batch {
  std::vector<model::EventRecord> events;
  std::vector<model::Job> ended_jobs;
  std::vector<model::LedgerLine> ledger;
  std::vector<store::Environment> new_environments;
  std::vector<std::string> dropped_environments;
  std::vector<Effect> effects;

  bool empty() const { return events.empty() && effects.empty(); }
  // Makes room for a command that changes or ends so many jobs.
  void expect(std::size_t jobs);
};

// The pure, deterministic core: facts in, decisions out. Commands and observations are judged
// against the state as it is after everything before them (the functions of judge/), become events
// in the open batch and are applied at once; this class does nothing but ask them in their order.
// Time enters as `now`; nothing here waits, reads a clock or touches the world. Owned by one
// thread.
class Core {
 public:
  explicit Core(State state = {}) : state_(std::move(state)) {}

  const State& state() const { return state_; }
  // Returns the present state as readers see it.
  std::shared_ptr<const Snapshot> snapshot();

  // Replays one stored event, and returns the lines that it adds to the ledger. Never plans, never
  // makes effects.
  std::vector<model::LedgerLine> replay(const model::EventRecord& record);

  // ---- building the open batch; `now` >= every earlier `now`
  // Refuses new work while room is kReserved.
  base::Result<model::CommandReply> command(const model::Command& command, base::Instant now,
                                            store::Headroom headroom);
  void observe(const execution::Observation& observation, base::Instant now);
  // `origin`: the user that the audit trail names; kNone: no entry. A start that changes nothing
  // has no entry.
  void apply_policy(const model::Policy& policy, std::string by, base::Instant now,
                    const model::Origin& origin = {});
  // Timers that are due, then one scheduling cycle.
  void advance(base::Instant now);
  Batch take_batch();

  // Returns when advance() has something to do although nothing happened; nothing if it never will.
  std::optional<base::Instant> next_wakeup() const;

  void set_stage_observer(scheduling::StageObserver* observer) { observer_ = observer; }

 private:
  using Reply = base::Result<model::CommandReply>;

  void emit(model::Event event, base::Instant now);
  void emit_all(Events events, base::Instant now);
  void emit_if(std::optional<model::Event> event, base::Instant now);

  // A command that has come in.
  struct Request {
    const model::Caller& caller;
    base::Instant now;
    store::Headroom headroom;
  };
  Reply on(const model::SubmitJob& command, const Request& request);
  Reply on(const model::ActOnJob& command, const Request& request);
  Reply on(const model::ActOnJobs& command, const Request& request);
  Reply on(const model::UpdateJob& command, const Request& request);
  Reply on(const model::RaiseJob& command, const Request& request);
  Reply on(const model::SignalJob& command, const Request& request);
  Reply on(const model::RecordStep& command, const Request& request);
  Reply on(const model::ChangeGpus& command, const Request& request);
  Reply on(const model::MakeReservation& command, const Request& request);
  Reply on(const model::ChangeReservation& command, const Request& request);
  Reply on(const model::CancelReservation& command, const Request& request);
  Reply on(const model::MakeToken& command, const Request& request);
  Reply on(const model::RevokeToken& command, const Request& request);
  Reply on(const model::RecordTokenUse& command, const Request& request);
  Reply on(const model::SetTeam& command, const Request& request);
  Reply on(const model::AnswerInvitation& command, const Request& request);
  Reply on(const model::RemoveTeam& command, const Request& request);
  Reply on(const model::SetPrice& command, const Request& request);
  Reply on(const model::WithdrawPrice& command, const Request& request);
  Reply on(const model::SetBudget& command, const Request& request);
  Reply on(const model::OverrideBudget& command, const Request& request);
  Reply on(const model::RemoveBudget& command, const Request& request);
  Reply on(const model::CorrectLedger& command, const Request& request);
  Reply on(const model::RecordCalls& command, const Request& request);
  // Returns true if something changed.
  base::Result<bool> act(const model::Job& job, model::JobAction action, const Request& request,
                         const std::string& detail = {});
  base::Result<bool> update(const model::UpdateJob& command, const Request& request);
  // Acts on each member of the array that has not ended, separately.
  template <class Do>
  Reply on_each_member(model::JobId array, const Request& request, const Do& act_on);

  void on(const execution::Started& seen, base::Instant now);
  void on(const execution::Ended& seen, base::Instant now);
  void on(const execution::Cleaned& seen, base::Instant now);
  void on(const execution::NodeObserved& seen, base::Instant now);
  void on(const execution::NodeUnreachable& seen, base::Instant now);
  void on(const execution::MachineBooted& seen, base::Instant now);
  void on(const execution::UnmanagedProcessesObserved& seen, base::Instant now);
  void on(const execution::TaintObserved& seen, base::Instant now);
  void on(const execution::EvidenceObserved& seen, base::Instant now);
  void on(const execution::GpuMemoryExceeded& seen, base::Instant now);
  void on(const execution::AllocationIdle& seen, base::Instant now);
  void on(const execution::ResetEnded& seen, base::Instant now);
  // Records what was seen of GPUs, and judges those that it may concern.
  void record(std::vector<model::EvidenceRecorded> pieces, base::Instant now);
  void judge_health(const std::set<model::GpuRef>& gpus, base::Instant now);
  void lose_attempts(const std::vector<model::AttemptId>& attempts, bool is_empty,
                     base::Instant now);

  // Returns the planned start of the last cycle that nothing moves back (promised_start.h).
  const scheduling::PlannedStart* promised() const;
  ReservationBasis ground_of_reservations();
  const base::Shared<std::vector<model::NodeId>>& nodes_by_name();
  bool let_in(model::JobId job, base::Instant now);  // returns whether it is in the queue now
  void admit_due_jobs(base::Instant now);
  void run_cycle(base::Instant now);

  State state_;
  Batch batch_;
  Feasibility feasibility_;
  GpuHealth health_;
  FirstChecks first_checks_;
  scheduling::StageObserver* observer_ = nullptr;
  scheduling::CycleCache cycle_cache_;
  StartPredictor start_predictor_;
  // Returns the planned starts of the last cycle; null before the first.
  std::shared_ptr<const std::vector<scheduling::PlannedStart>> planned_starts_;
  std::shared_ptr<const scheduling::PreemptionHolds> shared_holds_;
  base::Shared<std::vector<model::NodeId>> nodes_by_name_;  // as published last
  std::shared_ptr<const scheduling::Reservations> shared_reservations_;
  std::optional<base::Instant> look_again_at_;  // of the last cycle
  base::Instant advanced_to_;                   // timers up to here have had their turn
};

}  // namespace gpu_platform::controller
