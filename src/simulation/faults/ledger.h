#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/state.h"
#include "execution/engine.h"
#include "model/event.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/gpu_books.h"
#include "simulation/faults/truth.h"
#include "store/store.h"

namespace gpu_platform::simulation {

// In which a job is that ended so.
model::JobState state_after(model::JobTrigger how);

// The books of a second accountant: reads every durable event back from the journal, one after the
// other, applies it to a state of its own and compares what it says with what really happened and
// with what came before. Knows nothing of how the core decides.
//   times            events never run backwards
//   submitted-once   one submission makes at most one job
//   numbered         attempts of a job are numbered without gaps
//   handed-on        a GPU is given out only when its last holder's attempt was released; parts of
//                    it, as far as the shares of those that were not leave room
//   shared           of a GPU in parts all holders share it in one way, and under MPS as one user
//   released         an attempt is released only when the engine has said that nothing of it is
//                    left, or its node has booted anew, and nothing of it is left
//   true-start       an attempt said to be running has been started
//   true-exit        an exit code or signal is the one its process ended with
//   true-loss        what is called lost was lost: with its node, or it cannot be known
//   ends-once        a job ends once
//   held          what is held for a job is given to no other job
//   for-nothing      a job that is stopped for another is among its victims, by a rule that allows
//                    it, and such a preemption hold ends only when that job starts, leaves the
//                    queue or is changed, or what is held changes
//   in-turn          a job that others were stopped for is stopped only for one of a class above
//                    its own and above all of theirs, and of those that these had stopped
//   too-often        no job is stopped for others more often than its limit for that rule says
//   audited          a user who changes a job is in the audit trail with it, in the same batch
//   settled          the end of an attempt is followed at once by what becomes of its job
//   queued-again     a job that was told to stop to be queued again (a requeue, a preemption, GPUs
//                    taken out of service) gets another attempt before it ends, unless a person or
//                    something that it waits for ends it meanwhile, or it exits with 0 and had
//                    asked that this completes it
//   signalled        a signal is sent to an attempt that was started and has not ended
//   cancelled        a job that was told to stop for good is not queued again
//   held             a job that is held is not started
//   fit              no job is given a GPU that a party keeps from work, but for DEGRADED ones
//   for-free         an attempt that was never started because a GPU was unfit, or that failed by
//                    the fault of a neighbour on its GPU, uses no retry, and its job is queued
//                    again: the first of them in a row, up to the model's bounds
//   accounts         the lines of the ledger tell what became of the time of each GPU, all of it
//   and
//                    once (gpu_books.h)
//   given-time       a job that is ended at its time limit has had the time that it was given
// and everything that controller::check_invariants() checks of the state after each event.
class Ledger {
 public:
  struct Job {
    std::string name;
    std::uint32_t attempts = 0;
    std::uint64_t gpus = 0;
    std::set<std::uint32_t> speeds;  // at which it was started
    bool has_ended = false;
    model::JobTrigger how = model::JobTrigger::kComplete;
    bool complete_on_exit_zero = false;
    bool is_held = false;
    base::Duration limit;
    std::uint32_t speed = model::kFullSpeed;          // of its latest attempt
    model::EndReason stop = model::EndReason::kNone;  // why that was told to stop
    model::EndReason end = model::EndReason::kNone;   // why it ended
    bool did_well = false;                            // it ended with exit code 0
    // Its latest attempts, in a row, that ended by a fault of GPUs, and by one of a neighbour.
    std::uint32_t gpu_faults = 0;
    std::uint32_t neighbour_faults = 0;
    bool is_free = false;  // what ended is to use no retry, and nothing is said of the job yet

    // Returns whether an end now keeps what was said when the job was told to be queued again.
    bool may_end(model::JobTrigger by) const {
      return by == model::JobTrigger::kCancel ||
             (by == model::JobTrigger::kComplete && complete_on_exit_zero && did_well);
    }
  };

  Ledger(Findings& findings, Truth& truth) : findings_(findings), truth_(truth) {}

  // Takes in what has become durable since the last time.
  void absorb(const store::Journal& journal);

  // Records what the engine reported. The core may know it from here on.
  void heard(const execution::Observation& observation);

  // ---- what is durable
  const controller::State& state() const { return state_; }
  bool has_start(model::AttemptId attempt) const { return starts_.contains(attempt); }
  bool has_stop(model::AttemptId attempt) const { return stops_.contains(attempt); }
  bool has_end(model::AttemptId attempt) const { return ends_.contains(attempt); }
  bool is_released(model::AttemptId attempt) const { return released_.contains(attempt); }
  bool has_limit(model::JobId job, base::Duration limit) const;
  // Whether the GPU is being reset.
  bool has_reset(model::NodeId node, std::string_view gpu_uuid) const;
  const Job* find(model::JobId job) const;
  // The job that a submission's name became; invalid when it became none.
  model::JobId job_of(const std::string& name) const;
  const std::map<model::JobId, Job>& jobs() const { return jobs_; }
  const std::vector<model::Job>& departed() const { return departed_; }
  // That the events add, in their order.
  const std::vector<model::LedgerLine>& lines() const { return lines_; }
  std::uint64_t events() const { return state_.seq.value; }
  std::uint64_t hash() const { return hash_; }
  // That the events make, ascending.
  const std::vector<model::AuditEntry>& audit() const { return audit_; }

 private:
  using GpuPlace = std::pair<model::NodeId, std::uint32_t>;

  void take(const model::EventRecord& record);
  void check_state(const model::EventRecord& record);
  void check_holds_ended(const scheduling::PreemptionHolds& before, const model::Event& event);
  template <class Event>
  void on(const Event&) {}
  void on(const model::NodeSeen& event);
  void on(const model::JobSubmitted& event);
  void on(const model::ReservationMade& event);
  void on(const model::ReservationEnded& event);
  void on(const model::ReservationChanged& event);
  void on(const model::TokenCreated& event);
  void on(const model::TokenRevoked& event);
  void on(const model::TeamSet& event);
  void on(const model::TeamRemoved& event);
  void on(const model::JobChanged& event);
  void on(const model::StartRequested& event);
  void on(const model::AttemptStarted& event);
  void on(const model::StopRequested& event);
  void on(const model::SignalRequested& event);
  void on(const model::YieldPutOff& event);
  void on(const model::AttemptEnded& event);
  void on(const model::AttemptReleased& event);
  void on(const model::JobRequeued& event);
  void on(const model::JobHoldChanged& event);
  void on(const model::JobEnded& event);
  void check_in_turn(const model::StopRequested& event);
  void check_kept(model::JobId id, const Job& job, const model::JobEnded& event);
  void check_given_time(model::JobId id, const Job& job);
  void note_innocence(const model::AttemptEnded& event, Job& job);
  void check_free();
  void check_accounts(const model::EventRecord& record, std::size_t lines_before);
  void follow_audit(const model::EventRecord& record);
  bool is_of_a_pod_taken_away(const model::AttemptEnded& event) const;
  void check_exit(const model::AttemptEnded& event);
  void check_held(const model::StartRequested& event);
  void check_fit(const model::StartRequested& event);
  void hand_on(const model::StartRequested& event, const GpuPlace& place,
               const model::GpuGrant& grant);
  bool is_to_yield(const model::Attempt& attempt, const std::string& to) const;
  bool has_booted_anew(const std::string& node) const;
  bool was_told_lost(model::AttemptId attempt) const;

  struct Start {
    std::vector<std::string> node_names;
    std::string boot_id;
    std::vector<GpuPlace> gpus;
  };

  // What a job has used of its retries.
  struct Used {
    model::JobId job;
    std::uint32_t failures = 0;
    std::uint32_t losses = 0;
  };

  Findings& findings_;
  Truth& truth_;
  controller::State state_;
  base::Instant last_at_;
  model::JobId to_settle_;
  std::optional<Used> to_stay_;  // after the present event
  std::map<model::JobId, Job> jobs_;
  std::map<std::string, model::JobId> names_;
  std::set<std::pair<model::JobId, base::Duration>> limits_;  // that jobs have or had
  std::map<model::AttemptId, Start> starts_;
  std::set<model::AttemptId> stops_;
  std::set<model::AttemptId> ends_;
  std::set<model::AttemptId> released_;
  std::map<GpuPlace, std::map<model::AttemptId, model::GpuGrant>> holders_;  // none empty
  std::map<model::AttemptId, model::Tenant> tenants_;                        // of the holders
  // The highest class of all that were stopped for a job that waits, and for one that began since.
  std::map<model::JobId, model::PriorityClass> stopped_for_;
  std::map<model::AttemptId, model::PriorityClass> stops_above_;
  std::map<model::NodeId, std::string> boot_ids_;
  std::map<model::NodeId, std::string> node_names_;
  std::set<model::AttemptId> heard_cleaned_;
  std::map<model::AttemptId, model::Lost> heard_lost_;
  std::set<model::AttemptId> heard_preempted_;  // a pod may be taken away before it ran
  std::set<model::AttemptId> heard_unfit_;      // a GPU failed its check
  std::set<model::AttemptId> heard_innocent_;   // a neighbour made it fail
  std::map<std::string, std::set<std::string>> heard_boots_;  // by node name
  std::set<std::string> heard_unreachable_;                   // node names
  std::vector<model::AuditEntry> audit_;
  std::set<model::JobId> unaudited_;  // changed by a user that the trail has not named yet
  std::vector<model::Job> departed_;
  std::vector<model::LedgerLine> lines_;
  GpuBooks gpu_books_;
  std::string bytes_;
  std::uint64_t hash_ = 0;
};

}  // namespace gpu_platform::simulation
