#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "model/command.h"
#include "model/event.h"
#include "scheduling/explain/gang_feasibility.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/predict/forecast.h"
#include "store/store.h"

namespace gpu_platform::controller {

// Whose hold it is when the caller holds a job of that spec: an owner's, also where the owner is an
// administrator, or an administrator's.
model::Hold hold_by(const model::Caller& caller, const model::JobSpec& spec);

// A wish of the core that leaves after its events are durable. Each may be repeated.
using Effect = std::variant<execution::StartOrder, execution::StopOrder, execution::LimitOrder,
                            execution::ForgetOrder>;

// Everything that belongs to one journal commit.
struct Batch {
  std::vector<model::EventRecord> events;
  std::vector<model::Job> ended_jobs;
  std::vector<store::Environment> new_environments;
  std::vector<std::string> dropped_environments;
  std::vector<Effect> effects;

  bool empty() const { return events.empty() && effects.empty(); }
};

// The pure, deterministic core: facts in, decisions out. Commands and observations are judged
// against the state as it is after everything before them, become events in the open batch and are
// applied at once. Time enters as `now`; nothing here waits, reads a clock or touches the world.
// Owned by one thread.
class Core {
 public:
  explicit Core(State state = {}) : state_(std::move(state)) {}

  const State& state() const { return state_; }
  // What readers see of it as it is now.
  std::shared_ptr<const Snapshot> snapshot();

  // Replays one stored event. Never plans, never makes effects.
  void replay(const model::EventRecord& record);

  // The orders that may have been lost in a crash, worked out from the state: what the engine must
  // know of each attempt that still holds resources, and the starts and stops to repeat.
  std::vector<execution::KnownAttempt> known_attempts() const;
  std::vector<Effect> pending_effects() const;

  // ---- building the open batch; `now` >= every earlier `now`
  // Refuses new work while room is kReserved.
  base::Result<model::CommandReply> command(const model::Command& command, base::Instant now,
                                            store::Room room);
  void observe(const execution::Observation& observation, base::Instant now);
  // `origin`: whom the audit trail names; kNone: it says nothing. A start that changes nothing is
  // not in it.
  void apply_policy(const model::Policy& policy, std::string by, base::Instant now,
                    const model::Origin& origin = {});
  // Timers that are due, then one scheduling cycle.
  void advance(base::Instant now);
  Batch take_batch();
  bool has_open_batch() const { return !batch_.empty(); }

  // When advance() has something to do although nothing happened; nothing when it never will.
  std::optional<base::Instant> next_wakeup() const;

  void set_stage_observer(scheduling::StageObserver* observer) { options_.observer = observer; }

 private:
  void emit(model::Event event, base::Instant now);
  void effects_of(const model::Event& event);
  void effect(Effect effect) { batch_.effects.push_back(std::move(effect)); }

  base::Result<model::CommandReply> carry_out(const model::Command& command, base::Instant now,
                                              store::Room room);
  base::Result<model::CommandReply> record_calls(const model::RecordCalls& command,
                                                 base::Instant now, store::Room room);
  // Says in the audit trail what the command did, whose events and ended jobs in the open batch
  // begin there.
  void audit_changes(const model::Command& command, std::size_t events_before,
                     std::size_t ended_before, base::Instant now);
  struct TouchedJobs {
    std::string user;
    std::vector<model::JobId> jobs;
  };
  std::map<std::uint32_t, TouchedJobs> jobs_touched_since(std::size_t events_before,
                                                          std::size_t ended_before) const;
  void add_gpus_since(std::size_t events_before, model::AuditedCall& call) const;

  base::Result<model::CommandReply> submit(const model::Caller& caller,
                                           const model::SubmitJob& command, base::Instant now,
                                           store::Room room);
  base::Status check_submission(const model::Caller& caller, const model::JobSpec& spec,
                                base::Instant now);
  base::Status check_times(const model::JobSpec& spec, base::Instant earliest) const;
  // `time_limit`: of the same job. An expectation that is absent is none.
  static base::Status check_expected(std::optional<base::Duration> expected,
                                     base::Duration time_limit);
  base::Status check_array(const model::JobSpec& spec) const;
  // Places in the queue and memory (core_admission.cpp).
  base::Status check_room(const model::Caller& caller, const model::JobSpec& spec) const;
  base::Status check_memory(const model::Caller& caller, const std::string& user, std::uint32_t uid,
                            base::Bytes more) const;
  base::Status check_growth(const model::Caller& caller, const model::Job& job,
                            const model::JobChanged& change) const;
  // What of the dependencies is open, for a job of `id`: invalid for one that is not there yet.
  base::Result<model::NewDependencies> judge_dependencies(
      const model::Caller& caller, const std::vector<model::Dependency>& asked,
      const std::vector<model::EndedTarget>& ended, model::JobId id) const;
  base::Result<model::TargetOutcome> find_target(
      const model::Caller& caller, const model::DependencyTarget& target,
      const std::vector<model::EndedTarget>& ended) const;
  base::Status check_priority(const model::Caller& caller, const model::Priority& priority) const;
  base::Status check_time_limit(base::Duration time_limit) const;
  base::Status check_quota(const model::JobSpec& spec) const;
  base::Status check_speeds(const model::ResourceRequest& request, base::Duration time_limit) const;
  base::Status check_feasible(const model::ResourceRequest& request);
  base::Status judge_feasible(const model::ResourceRequest& request);

  // The event that the action comes to; nothing where the job is so already.
  base::Result<std::optional<model::Event>> judge(const model::Caller& caller,
                                                  const model::Job& job,
                                                  model::JobAction action) const;
  base::Result<const model::Job*> find_for(const model::Caller& caller, model::JobId id) const;
  base::Result<bool> act(const model::Caller& caller, const model::Job& job,
                         model::JobAction action, bool dry_run, base::Instant now);
  // The members of an array that are in the core; an error where there is none.
  base::Result<std::vector<model::JobId>> members_for(const model::Caller& caller,
                                                      model::JobId array) const;
  base::Result<model::CommandReply> act_on_array(const model::Caller& caller,
                                                 const model::ActOnJob& command, base::Instant now);
  base::Result<model::CommandReply> update_array(const model::Caller& caller,
                                                 const model::UpdateJob& command,
                                                 base::Instant now);
  base::Result<bool> update_one(const model::Caller& caller, const model::UpdateJob& command,
                                base::Instant now);
  base::Result<model::CommandReply> act_on_job(const model::Caller& caller,
                                               const model::ActOnJob& command, base::Instant now);
  base::Result<model::CommandReply> act_on_jobs(const model::Caller& caller,
                                                const model::ActOnJobs& command, base::Instant now);
  base::Result<model::CommandReply> update(const model::Caller& caller,
                                           const model::UpdateJob& command, base::Instant now);
  base::Status check_still_stoppable(const model::Job& job, const model::JobChanged& change) const;
  base::Status check_longer(const model::Job& job, base::Duration time_limit) const;
  base::Status check_update(const model::Caller& caller, const model::Job& job,
                            const model::JobChanged& change, base::Instant now) const;

  base::Result<model::CommandReply> change_gpus(const model::Caller& caller,
                                                const model::ChangeGpus& command,
                                                base::Instant now);
  base::Result<std::vector<model::GpuRef>> select_gpus(const model::GpuSelector& which) const;
  base::Status change_gpu(model::GpuRef gpu, const model::ChangeGpus& command,
                          const std::string& by, base::Instant now);
  void judge_strangers(model::GpuRef gpu, const std::string& seen, base::Instant now);
  void judge_strangers_again(base::Instant now);
  base::Status change_node(model::NodeId node, const model::ChangeGpus& command,
                           const std::string& by, base::Instant now);
  void stop_holders(const std::vector<model::AttemptId>& attempts, const std::string& by,
                    base::Instant now);

  base::Result<model::CommandReply> make_reservation(const model::Caller& caller,
                                                     const model::MakeReservation& command,
                                                     base::Instant now, store::Room room);
  base::Result<model::CommandReply> cancel_reservation(const model::Caller& caller,
                                                       const model::CancelReservation& command,
                                                       base::Instant now);
  base::Status check_name(const std::string& name) const;
  base::Status check_admitted(const model::MakeReservation& command) const;
  base::Result<std::vector<model::WindowPart>> parts_of_nodes(const model::MakeReservation& command,
                                                              const model::Window& window) const;
  base::Result<std::vector<model::WindowPart>> parts_by_count(const model::MakeReservation& command,
                                                              const model::Window& window);
  std::vector<model::AttemptId> running_into(const model::Window& window) const;
  base::Status check_nobody_runs(const model::Window& window) const;
  // A submission to a reservation: whether it may be, and from when to when it is then.
  base::Status enter_window(model::JobSpec& spec, base::Instant now) const;
  base::Status check_window_times(const model::JobSpec& spec, base::Instant earliest) const;
  base::Status check_no_window_passed(const model::Job& job, base::Duration time_limit) const;
  void end_windows(base::Instant now);
  void end_jobs_without_window(base::Instant now);

  void on(const execution::Started& seen, base::Instant now);
  void on(const execution::Ended& seen, base::Instant now);
  void on(const execution::Cleaned& seen, base::Instant now);
  void on(const execution::NodeObserved& seen, base::Instant now);
  void on(const execution::NodeUnreachable& seen, base::Instant now);
  void on(const execution::StrangersObserved& seen, base::Instant now);
  void take_missing_gpus_offline(const model::Node& before, const model::NodeInfo& info,
                                 base::Instant now);
  void lose_attempts_of(model::NodeId node, std::string_view boot_id, bool is_empty,
                        base::Instant now);
  void stop_given_up_attempts(model::NodeId node);
  void end_attempt(const execution::Ended& seen, base::Instant now);
  void settle_job(const model::Job& job, const model::Attempt& attempt,
                  const execution::Ended& seen, base::Instant now);
  void settle_by_end(const model::Job& job, const model::Attempt& attempt, base::Instant now);
  void end_job(model::JobId job, model::JobTrigger how, const model::Attempt& attempt,
               base::Instant now);
  void requeue_or_fail(const model::Job& job, const model::Attempt& attempt, bool is_failure,
                       base::Instant now);
  void requeue_after_prolog(const model::Job& job, base::Instant now);
  base::Duration backoff_after(std::size_t tries) const;
  struct HookFailure {
    std::string_view hook;  // "prolog"
    model::NodeId node;
    model::JobId former;  // for which it failed there last; none since it did well
    model::JobId job;
    const std::string& detail;
  };
  void drain_if_second(const HookFailure& failure, base::Instant now);
  void end_hopeless(base::Instant now);
  bool is_one_too_late(base::Instant now) const;
  void let_in_who_is_due(base::Instant now);
  void make_eligible_if_due(model::JobId job, base::Instant now);
  std::optional<base::Instant> next_overdue() const;
  void tell_overdue(base::Instant now);
  void run_cycle(base::Instant now);
  void foresee(const std::vector<scheduling::Reservation>& reservations, base::Instant now);
  scheduling::Forecast forecast_of(std::span<const scheduling::Reservation> reservations,
                                   base::Instant now);
  std::vector<model::JobId> jobs_holding(const model::Allocation& allocation) const;
  std::vector<model::JobId> claims_to_carry_out() const;
  void yield(const scheduling::Yield& yield, base::Instant now);
  void stop_victims(const std::vector<model::JobId>& beneficiaries, base::Instant now);

  const model::Job* find_job(model::JobId id) const { return state_.jobs.find(id.value); }
  const model::Attempt* find_attempt(model::AttemptId id) const;
  execution::StartOrder start_order(const model::Job& job, const model::Attempt& attempt) const;

  State state_;
  Batch batch_;
  scheduling::CycleOptions options_;
  scheduling::CycleCache cycle_cache_;
  // Of the last cycle; null before the first.
  std::shared_ptr<const std::vector<scheduling::Reservation>> reservations_;
  std::shared_ptr<const scheduling::Claims> shared_claims_;
  std::shared_ptr<const scheduling::Windows> shared_windows_;
  std::optional<base::Instant> look_again_at_;  // of the last cycle
  base::Instant foresight_paid_until_;          // what was foreseen is worked off by then
  std::optional<base::Instant> foresee_at_;     // when those of which nothing is known are
  base::Instant advanced_to_;                   // timers up to here have had their turn
  // Answers of could_ever_fit for the present inventory.
  std::vector<std::pair<model::ResourceRequest, base::Status>> feasible_;
  std::optional<scheduling::EmptyCluster> empty_;  // likewise, once a gang has asked
};

}  // namespace gpu_platform::controller
