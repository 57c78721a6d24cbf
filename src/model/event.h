#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "model/audit.h"
#include "model/budget.h"
#include "model/evidence.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "model/price.h"
#include "model/reservation.h"
#include "model/run_time_team.h"
#include "model/spec_patch.h"
#include "model/token.h"

// Everything that ever changes the core's state, in the order of the journal. docs/journal.md
// describes the bytes; model/codec.h writes them. Fields are only ever appended, record numbers
// never reused.

namespace gpu_platform::model {

// Recorded at a start or a reload: the configuration, priorities and limits that apply from here
// on.
struct PolicyApplied {
  Policy policy;
  std::string by;
};

struct NodeSeen {
  NodeId node;
  NodeInfo info;
  // The places of GPUs that are gone for good are given to new ones. False in events of versions
  // that gave each GPU a place of its own for ever.
  bool reuses_places = false;
};

// A party set its taint of a node or of one of its GPUs, or lifted it. In the journal the two are
// records of different numbers.
struct TaintChanged {
  NodeId node;
  std::optional<std::uint32_t> gpu;  // its index on the node; none: the taint is the node's own
  Taint taint;  // its source is the party; `at`: unset: the event's, else since when it is so
  bool is_lifted = false;
};

// Something was seen that tells of the health of a node or of one of its GPUs.
struct EvidenceRecorded {
  NodeId node;
  std::optional<std::uint32_t> gpu;  // its index on the node; none: it is the node's own
  Evidence evidence;
};

// Health would keep the GPU from work, and does not.
struct VerdictWithheld {
  GpuRef gpu;
  std::string text;  // what it would do, and why it does not; empty: it withholds nothing any more
};

// ---- Of former versions, and in journals alone: what taints say now.

enum class GpuTrigger : std::uint8_t {
  kAllocate,
  kStart,
  kEnd,
  kRelease,
  kDrain,
  kDegrade,
  kReset,
  kTakeOffline,
  kBringOnline,
};
inline constexpr std::size_t kGpuTriggers = 9;

// A party set its taint (kDrain, kTakeOffline) or lifted it (kBringOnline).
struct GpuStateChanged {
  GpuRef gpu;
  GpuTrigger trigger = GpuTrigger::kDrain;
  std::string cause;
  std::string by;
  // The party. kFormer: the version kept one party for each GPU: what is set replaces the taints of
  // all, and what is lifted lifts them all.
  TaintSource source = TaintSource::kFormer;
};

// The cluster's taint. An empty text lifts it.
struct GpuUnavailableChanged {
  GpuRef gpu;
  std::string text;
};

enum class NodeTrigger : std::uint8_t { kSeen, kLose, kDrain, kTakeOffline, kBringOnline };
inline constexpr std::size_t kNodeTriggers = 5;

// The taint of the connection (kLose, kSeen) or of the operator.
struct NodeStateChanged {
  NodeId node;
  NodeTrigger trigger = NodeTrigger::kSeen;
  std::string cause;
  std::string by;
};

// The cluster's taint of a node.
struct NodeServiceChanged {
  NodeId node;
  NodeService service = NodeService::kUp;
  std::string cause;
};

// ----

// Processes that belong to no job came to a GPU, or left it.
struct UnmanagedProcessesChanged {
  GpuRef gpu;
  std::string text;                  // the processes; empty: there are none any more
  bool avoid = false;                // the GPU has the taint of kProcesses while they are there
  std::optional<GpuLoad> load = {};  // as in Gpu
  std::string why = {};              // the taint's words beside `text`: the limit of LoadRules
};

// Returns the words of the taint that the event sets.
std::string words_of(const UnmanagedProcessesChanged& event);

// Others use more or less of the node. It may change often, so it does not repeat the description.
struct NodeOthersChanged {
  NodeId node;
  std::uint32_t cpus = 0;
  base::Bytes memory;
};

// The first member of an array is `job`, and the others follow it in the order of their indices.
// The jobs share the specification, which is there.
struct JobSubmitted {
  JobId job;
  std::shared_ptr<const JobSpec> spec;
  Hold hold = Hold::kNone;
  std::vector<Dependency> waits_for;  // of spec.dependencies, those not met yet
  std::string dependency_failure;     // why one of them never will be; empty: all may be
  // The submitting user, so that the trail needs no event of its own. No user: the job's.
  Origin by;
};

// The present state of a job's dependencies.
struct NewDependencies {
  std::vector<Dependency> waits_for;  // of those asked for, those not met yet
  std::string failure;                // why one of them never will be; empty: all may be

  friend bool operator==(const NewDependencies&, const NewDependencies&) = default;
};

// A person holds or releases the job. For an active job it takes effect when the job is back in the
// queue.
struct JobHoldChanged {
  JobId job;
  Hold hold = Hold::kNone;  // from here on
  std::string by;
};

// A person changed the specification of the job.
struct JobChanged {
  JobId job;
  SpecPatch to;
  std::optional<NewDependencies> dependencies;  // where `to` has others
  std::string by;
};

// A user raises waiting jobs above the other waiting jobs of the same user, team and class. Only
// the order among these jobs changes: the turns of `in_order` go, first to last, to the raised jobs
// and then to the others, which keep their order.
struct JobsRaised {
  JobId job;                    // the first that is raised
  std::vector<JobId> raised;    // ascending
  std::vector<JobId> in_order;  // all that take part, by their places before
  std::string by;
};

// A person sends a signal to the processes of a running attempt. It changes no state, and the order
// is never repeated.
struct SignalRequested {
  AttemptId attempt;
  std::uint8_t signal = 0;
  std::string by;
};

struct JobEligible {
  JobId job;
};

struct StartRequested {
  AttemptId attempt;
  Allocation allocation;
  StartWhy why = StartWhy::kImmediate;
  // The capacity class of its nodes: "on_demand", "spot" or "reserved"; several are joined by
  // commas, in the order of the nodes. Older events say "on_demand" of all nodes.
  std::string price_class;
  std::string boot_id;      // of the first node
  JobId passed;             // as in Attempt
  base::Instant yields_at;  // as in Attempt
};

struct AttemptStarted {
  AttemptId attempt;
  std::uint64_t pid = 0;
  base::Instant started_at;    // as the supervisor saw it
  std::string preflight = {};  // what the check of its GPUs did, in words; empty: there was none
};

// A process of the attempt reported the present state of one of its steps.
struct StepRecorded {
  AttemptId attempt;
  JobStep step;
};

struct StopRequested {
  AttemptId attempt;
  EndReason reason = EndReason::kCancelledBy;
  bool without_grace = false;
  std::string by;
  JobId stopped_for = {};  // of kPreempted: the job that gets the room; else invalid
};

struct AttemptEnded {
  AttemptId attempt;
  base::Instant ended_at;  // as the supervisor saw it
  Exit exit;
  EndReason reason = EndReason::kNone;
  std::string detail;
  Usage usage;
};

// Nothing of the attempt is left on its nodes: its resources are free from here on.
struct AttemptReleased {
  AttemptId attempt;
  std::string epilog_failure;  // of the site's epilog, in words; empty: none
};

struct JobRequeued {
  JobId job;
  base::Instant eligible_at;
  bool preempted = false;          // it was preempted: it counts as neither
  bool counts_as_failure = false;  // against --retries; otherwise it is a loss
  bool asked_for = false;          // a person's action has it run again: it counts as neither
  bool prolog_failed = false;      // it counts only as that
  bool holds = false;              // from here on the platform holds it, because it cannot start
  bool hardware_failed = false;    // GPUs failed under it: it counts as neither
  std::vector<std::string> avoid_gpus;  // by UUID: the job keeps off them, too
  bool neighbour_failed = false;        // a neighbour on its GPU made it fail: it counts as neither
};

struct JobEnded {
  JobId job;
  JobTrigger how = JobTrigger::kComplete;  // kComplete, kFail, kCancel or kTimeOut
  EndReason reason = EndReason::kNone;
  std::string by;
  std::string detail;
};

// All usage up to now counts from here on: the accounts of running jobs are charged, and the order
// of the queue follows.
struct UseCounted {};

// A new period of limited GPU-hours begins, without any usage.
struct QuotaPeriodBegan {
  base::Instant begin;
};

// Other jobs are preempted for a waiting job: it will get the resources on hold, and the victims
// are to be stopped. They are told only in a later batch, so that a beneficiary that vanishes with
// this one costs no victim anything.
struct PreemptionDecided {
  JobId job;  // the beneficiary
  Allocation held;
  std::vector<AttemptId> victims;  // ascending
  PreemptionRule rule = PreemptionRule::kClass;
};

// The oldest job of its team in the queue has become overdue: it goes before others of its class.
struct JobOverdue {
  JobId job;
};

// GPUs are reserved for a time, for maintenance or for named teams and users.
struct ReservationMade {
  Reservation reservation;
};

// The time of the reservation is over, or an administrator cancelled it.
struct ReservationEnded {
  std::string name;
  std::string by;  // empty: its time is over
};

// The reservation's next occurrence has taken the place of one that is over, or an administrator
// changed it. Its name stays.
struct ReservationChanged {
  Reservation reservation;
  std::string by;  // empty: an occurrence is over
};

// The beneficiary still waits, and can no longer start on its preemption hold before a reservation
// begins there: nothing is kept for it any more.
struct PreemptionHoldDropped {
  JobId job;
};

// A waiting job got its first planned start since it was queued, or was chosen deep in the queue.
// The event has the prediction, so that the scored prediction is the one that was made.
struct StartPredicted {
  JobId job;
  StartPrediction prediction;  // made_at is the record's
  bool is_early = false;       // deep in the queue
};

// An attempt that was to yield by now to the jobs that it passed may stay for longer.
struct YieldPutOff {
  AttemptId attempt;
  base::Instant yields_at;  // as in Attempt
};

struct TokenCreated {
  Token token;
};

// Its time is over, or a person revoked it or the token that it was made with. What the state no
// longer knows of it is said here.
struct TokenRevoked {
  TokenId token;
  std::string name;
  JobOwner owner;  // its user
  std::string by;  // empty: its time is over
};

struct TokenUsed {
  TokenId token;
  base::Instant used_at;
};

// A person made or changed a team at run time.
struct TeamSet {
  RunTimeTeam team;
};

// A person removed what was set of a team at run time.
struct TeamRemoved {
  std::string name;
  std::string by;
};

// A call of a person, for the audit trail: one that changed something, beside the events that say
// what it changed (a submission says so itself), one that opened a way into a job, or a refused
// one.
struct CallAudited {
  AuditedCall call;
};

// A person set a price at run time.
struct PriceSet {
  Price price;
  std::string by;
};

// A person ended a price: it counts no more from here on.
struct PriceWithdrawn {
  std::uint32_t id = 0;  // of PriceEntry
  std::string by;
};

// A person set a budget at run time, or overrode it, or ended its override.
struct BudgetSet {
  Budget budget;  // as it is from here on
  std::string by;
};

// A person removed what was set of a budget at run time. That of the configuration, if there is
// one, is in force again.
struct BudgetRemoved {
  BudgetKey key;
  std::string by;
};

// What all budgets have spent up to now is counted: periods that are over give way to new ones, and
// levels follow.
struct BudgetsCounted {};

// A person corrects the ledger by a line of its own.
struct LedgerCorrected {
  std::string user;  // any of the three may be empty, not all
  std::string team;
  std::string project;
  AttemptId attempt;  // invalid: of none
  base::MicroUsd amount;
  std::string text;
  std::string by;
};

// A job that is in the archive.
struct ArchivedEnd {
  JobId job;
  JobState state = JobState::kCompleted;
  base::Instant ended_at;

  friend bool operator==(const ArchivedEnd&, const ArchivedEnd&) = default;
};

// A damaged store was repaired: events are missing between the one before this and this one. What
// is known of them all the same is said here, so that no job runs twice and no id is given twice.
struct StoreRepaired {
  std::uint64_t last_job_id = 0;   // the highest id that may have been given to a job
  std::vector<ArchivedEnd> ended;  // with events that are missing, ascending
};

using AnyEvent =
    std::variant<PolicyApplied, NodeSeen, NodeStateChanged, GpuStateChanged, JobSubmitted,
                 JobEligible, StartRequested, AttemptStarted, StopRequested, AttemptEnded,
                 AttemptReleased, JobRequeued, JobEnded, UnmanagedProcessesChanged, JobHoldChanged,
                 JobChanged, UseCounted, QuotaPeriodBegan, PreemptionDecided, JobOverdue,
                 ReservationMade, ReservationEnded, PreemptionHoldDropped, StartPredicted,
                 YieldPutOff, CallAudited, StoreRepaired, JobsRaised, SignalRequested,
                 ReservationChanged, StepRecorded, TokenCreated, TokenRevoked, TokenUsed, TeamSet,
                 TeamRemoved, GpuUnavailableChanged, NodeServiceChanged, NodeOthersChanged,
                 TaintChanged, EvidenceRecorded, VerdictWithheld, PriceSet, PriceWithdrawn,
                 BudgetSet, BudgetRemoved, BudgetsCounted, LedgerCorrected>;

// What an event says, one of the structs above. Copies and moves are compiled once (event.cpp):
// with so many alternatives they are most of what each source that stores events would compile.
struct Event : AnyEvent {
  using AnyEvent::AnyEvent;
  Event(const Event&);
  Event(Event&&) noexcept;
  Event& operator=(const Event&);
  Event& operator=(Event&&) noexcept;
  ~Event();
};

// `at` never runs backwards along the journal, except that of StoreRepaired, which may be earlier
// than the state: a repair cannot read the time of a snapshot.
struct EventRecord {
  EventSeq seq;
  base::Instant at;
  Event event;
};

std::string_view name_of(const Event& event);  // "JobSubmitted"
JobId job_of(const Event& event);              // the job it is about; invalid when about none
// Returns what the event adds to the audit trail. Most events add nothing.
std::optional<AuditEntry> audit_entry(const EventRecord& record);
bool has_audit_entry(const Event& event);

}  // namespace gpu_platform::model
