#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execution/engine.h"

namespace gpu_platform::execution {

// The behaviour of one attempt after the order to start it.
struct VirtualRun {
  base::Duration start_delay;  // from the order to the first process
  base::Duration duration;     // from there to its end if it is left alone
  model::Exit exit = {.code = 0, .signal = {}, .lost = model::Lost::kNo};  // of that end
  model::EndReason reason =
      model::EndReason::kNone;  // kOutOfMemory, kIdleTimeout, kPreempted, none
  // If it is not empty, no process ever starts; `exit` is then the code of a missing or forbidden
  // program, or nothing where the host is at fault.
  std::string launch_error;
  bool ignores_term = false;      // only SIGKILL ends it early
  base::Duration term_delay;      // from SIGTERM to its end, where it obeys
  base::Duration cleaning_delay;  // from its end until no process of it is left
  model::Usage usage;
  std::string prolog_failure;  // of the site's prolog: nothing of it is started then
  std::string epilog_failure;  // of the site's epilog
};

// How the check of an attempt's GPUs before its start (model::Preflight) goes.
struct VirtualCheck {
  base::Duration duration = base::seconds(1);
  std::vector<UnfitGpu> unfit_gpus;  // not empty: nothing of the attempt is started
  std::string refusal;  // why it cannot be made, which keeps no job from its start; empty: it can
};

// How the reset of a GPU goes. One that hangs fails when its time is over.
struct VirtualReset {
  base::Duration duration = base::seconds(2);
  std::string failure;                          // empty: it is reset, and passes its check
  RefusedPart refused = RefusedPart::kNothing;  // kAll: as `failure` says, nothing is done
};

// Decides the behaviour of each attempt. Asked once per attempt that is started.
class VirtualScript {
 public:
  virtual ~VirtualScript() = default;
  virtual VirtualRun run_of(const StartOrder& order) = 0;
  // Asked once per check that begins.
  virtual VirtualCheck check_of(const StartOrder& /*order*/) { return {}; }
  // Asked once per GPU and reset.
  virtual VirtualReset reset_of(const ResetOrder& /*order*/, const std::string& /*gpu_uuid*/) {
    return {};
  }
};

// Sees what really happens on the virtual nodes, independent of the reports to the controller. For
// checkers.
class VirtualWitness {
 public:
  virtual ~VirtualWitness() = default;
  virtual void process_started(const StartOrder& order, base::Instant at) = 0;
  virtual void process_ended(model::AttemptId attempt, const model::Exit& exit,
                             base::Instant at) = 0;
  virtual void processes_gone(model::AttemptId attempt, base::Instant at) = 0;
  virtual void reset_began(const ResetOrder& /*order*/, base::Instant /*at*/) {}
};

// Runs jobs on any number of virtual nodes in virtual time: pure and deterministic. What its nodes
// do goes on whether or not a controller is there, as supervisors outlive the daemon. An attempt is
// started at most once; a repeated order is answered with what is known of it. Time limit and grace
// are enforced here. Orders to a node that cannot be reached are lost, and nothing is heard of it.
//
// Ownership: refers to sink, script and witness, which must outlive it. Thread: one. Cost: orders
// and steps O(log attempts not forgotten).
class VirtualEngine final : public Engine {
 public:
  VirtualEngine(ObservationSink& sink, VirtualScript& script, VirtualWitness* witness = nullptr)
      : sink_(sink), script_(script), witness_(witness) {}

  // ---- Engine
  void start(const StartOrder& order) override;
  void stop(const StopOrder& order) override;
  void set_limit(const LimitOrder& order) override;
  void signal(const SignalOrder&) override {}  // what runs here takes no notice
  void forget(const ForgetOrder& order) override;
  // A reset that is under way goes on when it is ordered again. It ends with the node's boot.
  void reset(const ResetOrder& order) override;
  void adopt(const std::vector<KnownAttempt>& known) override;

  // ---- time
  // Carries out everything that is due, in the order of time. Observations leave from here and from
  // the orders above.
  void advance(base::Instant now);
  std::optional<base::Instant> next_event() const;

  // ---- nodes Adds the node or changes its description, and reports it.
  void put_node(const model::NodeInfo& info);
  // Reports every node that can be reached.
  void announce_nodes();
  // The connection is gone; its processes run on. Reported unless `cause` is empty.
  void disconnect(std::string_view node, std::string_view cause);
  // The connection is back: reports the node and every attempt on it.
  void reconnect(std::string_view node);
  // Everything on the node dies at once; it is reachable again as described, with another boot id.
  void reboot(const model::NodeInfo& info);
  // The attempt's main process ends by itself now. False when it is not running. `neighbour_fault`
  // is reported (Ended), unless the attempt was being stopped.
  bool finish(model::AttemptId attempt, const model::Exit& exit, model::EndReason reason,
              std::string neighbour_fault = {});
  // The attempt's processes die, and it cannot be known how they ended.
  void lose_supervisor(model::AttemptId attempt);
  // The daemon's process has ended, and with it the checks before starts. Nothing is known of these
  // starts any more.
  void drop_checks();

  bool is_reachable(std::string_view node) const;
  // Returns whether the attempt waits for the check before its start.
  bool is_checking(model::AttemptId attempt) const;
  // Attempts that have processes or are being started, ascending.
  std::vector<model::AttemptId> live_attempts() const;
  std::size_t remembered() const { return records_.size(); }

 private:
  struct Node {
    model::NodeInfo info;
    bool is_reachable = true;
  };
  enum class Phase : std::uint8_t { kChecking, kStarting, kRunning, kEnded, kGone };
  struct Record {
    Phase phase = Phase::kStarting;
    bool is_terminating = false;
    std::uint64_t token = 0;  // of its newest entry in due_
    std::vector<const Node*> nodes;
    VirtualRun run;
    VirtualCheck check;
    base::Duration time_limit;
    base::Duration stop_grace;
    base::Instant checked_at;
    base::Instant starts_at;
    base::Instant started_at;
    base::Instant ends_at;  // if left alone
    base::Instant term_at;  // when it follows SIGTERM; unset: never
    base::Instant kill_at;  // when SIGKILL comes; unset: never
    base::Instant ended_at;
    model::EndReason reason = model::EndReason::kNone;  // why it was told to stop or why it ended
    std::optional<base::Duration> limit_met;            // that was over
    model::Exit exit;
    std::string detail;
    std::string preflight;  // what the check did, in words
    std::vector<UnfitGpu> unfit_gpus;
    std::string neighbour_fault;
    std::uint64_t pid = 0;
    std::unique_ptr<StartOrder> order;  // kept for the witness alone
  };
  struct Due {
    base::Instant at;
    std::uint64_t token;  // also breaks ties: first asked, first done
    model::AttemptId attempt;
    friend auto operator<=>(const Due&, const Due&) = default;
  };
  using Records = std::map<model::AttemptId, Record>;

  struct Reset {
    std::string node;
    std::string gpu_uuid;
    std::string failure;
    bool without_reset = false;
    RefusedPart refused = RefusedPart::kNothing;
  };
  void end_resets(base::Instant now);

  Record* find(model::AttemptId attempt);
  Record& remember(const StartOrder& order);
  void schedule(model::AttemptId id, Record& record);
  static base::Instant next_step(const Record& record);
  void step(model::AttemptId id, Record& record);
  void begin_check(const StartOrder& order, Record& record);
  void step_checking(model::AttemptId id, Record& record);
  void step_starting(model::AttemptId id, Record& record);
  void step_running(model::AttemptId id, Record& record);
  void terminate(Record& record, model::EndReason reason, base::Duration grace);
  void end(model::AttemptId id, Record& record, const model::Exit& exit, model::EndReason reason);
  void vanish(model::AttemptId id, Record& record);
  void never_start(model::AttemptId id, Record& record, const model::Exit& exit,
                   model::EndReason reason, std::string detail);
  void lose(model::AttemptId id, Record& record, model::Lost lost, model::EndReason reason);
  bool can_tell(const Record& record) const;
  bool is_booted_anew(const StartOrder& order) const;
  bool can_reach(const StartOrder& order) const;
  void tell_started(model::AttemptId id, const Record& record);
  void tell_ended(model::AttemptId id, const Record& record);
  void tell_gone(model::AttemptId id, const Record& record);
  void tell_end(model::AttemptId id, const Record& record);
  void tell_all(model::AttemptId id, const Record& record);
  void answer_unknown(const KnownAttempt& known);

  ObservationSink& sink_;
  VirtualScript& script_;
  VirtualWitness* witness_;
  base::Instant now_;
  std::map<std::string, Node, std::less<>> nodes_;
  Records records_;
  std::vector<Due> due_;  // a heap, the earliest in front; entries with an old token are void
  std::multimap<base::Instant, Reset> resets_;  // under way, by their end
  std::uint64_t last_token_ = 0;
  std::uint64_t last_pid_ = 1000;
};

}  // namespace gpu_platform::execution
