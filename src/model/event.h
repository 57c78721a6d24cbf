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
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/reservation.h"
#include "model/spec_patch.h"

// Everything that ever changes the core's state, in the order of the journal. docs/journal.md
// describes the bytes; model/codec.h writes them. Fields are only ever appended, record numbers
// never reused.

namespace gpu_platform::model {

// Start-up, reload: configuration, priorities and limits as they apply from here on.
struct PolicyApplied {
  Policy policy;
  std::string by;
};

struct NodeSeen {
  NodeId node;
  NodeInfo info;
};

struct NodeStateChanged {
  NodeId node;
  NodeTrigger trigger = NodeTrigger::kSeen;
  std::string cause;
  std::string by;
};

// Operator and health changes of one GPU; allocation states follow from attempts and are not here.
struct GpuStateChanged {
  GpuRef gpu;
  GpuTrigger trigger = GpuTrigger::kDrain;
  std::string cause;
  std::string by;
};

// Processes that belong to no job came to a GPU, or left it.
struct UnmanagedProcessesChanged {
  GpuRef gpu;
  std::string text;    // who; empty: none any more
  bool avoid = false;  // no new work for it while they are there
};

// Of an array: `job` is its first member, the others follow it in the order of their indices. The
// jobs share the specification, which is there.
struct JobSubmitted {
  JobId job;
  std::shared_ptr<const JobSpec> spec;
  Hold hold = Hold::kNone;
  std::vector<Dependency> waits_for;  // of spec.dependencies, those not met yet
  std::string dependency_failure;     // why one of them never will be; empty: all may be
  // Who submitted it, so that the trail needs no event of its own. No user: the job's.
  Origin by;
};

// How it stands with what a job waits for.
struct NewDependencies {
  std::vector<Dependency> waits_for;  // of those asked for, those not met yet
  std::string failure;                // why one of them never will be; empty: all may be

  friend bool operator==(const NewDependencies&, const NewDependencies&) = default;
};

// A person holds the job back or lets it go. Of an active job it says what becomes of it when it is
// back in the queue.
struct JobHoldChanged {
  JobId job;
  Hold hold = Hold::kNone;  // from here on
  std::string by;
};

// A person changed what the job asks for.
struct JobChanged {
  JobId job;
  SpecPatch to;
  std::optional<NewDependencies> dependencies;  // where `to` has others
  std::string by;
};

struct JobEligible {
  JobId job;
};

struct StartRequested {
  AttemptId attempt;
  Allocation allocation;
  StartWhy why = StartWhy::kImmediate;
  std::string price_class;  // what accounting will charge by: "on_demand", "spot", "reserved"
  std::string boot_id;      // of the first node
  JobId passed;             // as in Attempt
  base::Instant yields_at;  // likewise
};

struct AttemptStarted {
  AttemptId attempt;
  std::uint64_t pid = 0;
  base::Instant started_at;  // as the supervisor saw it
};

struct StopRequested {
  AttemptId attempt;
  EndReason reason = EndReason::kCancelledBy;
  bool without_grace = false;
  std::string by;
};

struct AttemptEnded {
  AttemptId attempt;
  base::Instant ended_at;  // as the supervisor saw it
  Exit exit;
  EndReason reason = EndReason::kNone;
  std::string detail;
  Usage usage;
};

// Nothing of the attempt is left on its nodes: what it held is free from here on.
struct AttemptReleased {
  AttemptId attempt;
  std::string epilog_failure;  // of the site's epilog, in words; empty: none
};

struct JobRequeued {
  JobId job;
  base::Instant eligible_at;
  bool preempted = false;          // it made room for another: it counts as neither
  bool counts_as_failure = false;  // against --retries; otherwise it is a loss
  bool asked_for = false;          // what people did has it run again: it counts as neither
  bool prolog_failed = false;      // likewise, but as that
  bool holds = false;              // for the last time: from here on the platform holds it
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

// Others are preempted for a waiting job: it will get what is held, and the victims are to be
// stopped. They are told only in a later batch, so that a beneficiary that vanishes with this one
// costs no victim anything.
struct PreemptionDecided {
  JobId job;  // the beneficiary
  Allocation held;
  std::vector<AttemptId> victims;  // ascending
  bool reclaims = false;           // as in PreemptionHold
};

// The oldest of its team in the queue has waited for so long that it goes before its like.
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

// The beneficiary, which still waits, can no longer start on what was held for it before a
// reservation begins there: nothing is kept for it any more.
struct PreemptionHoldDropped {
  JobId job;
};

// A waiting job has got its first planned start since it was queued. What is expected is said here,
// so that the estimate that is scored is the one that was made.
struct StartPredicted {
  JobId job;
  StartPrediction prediction;  // made_at is the record's
};

// An attempt that was to stop by now for the jobs that it was let in front of may stay for longer.
struct YieldPutOff {
  AttemptId attempt;
  base::Instant yields_at;  // as in Attempt
};

// A call of a person, for the audit trail: one that changed something, beside the events that say
// what it changed (a submission says so itself), one that opened a way into a job, or a refused
// one.
struct CallAudited {
  AuditedCall call;
};

using Event = std::variant<PolicyApplied, NodeSeen, NodeStateChanged, GpuStateChanged, JobSubmitted,
                           JobEligible, StartRequested, AttemptStarted, StopRequested, AttemptEnded,
                           AttemptReleased, JobRequeued, JobEnded, UnmanagedProcessesChanged,
                           JobHoldChanged, JobChanged, UseCounted, QuotaPeriodBegan,
                           PreemptionDecided, JobOverdue, ReservationMade, ReservationEnded,
                           PreemptionHoldDropped, StartPredicted, YieldPutOff, CallAudited>;

// `at` never runs backwards along the journal.
struct EventRecord {
  EventSeq seq;
  base::Instant at;
  Event event;
};

std::string_view name_of(const Event& event);  // "JobSubmitted"
JobId job_of(const Event& event);              // the job it is about; invalid when about none
// What the event adds to the audit trail; most add nothing.
std::optional<AuditEntry> audit_entry(const EventRecord& record);
bool has_audit_entry(const Event& event);

}  // namespace gpu_platform::model
