#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/audit.h"
#include "model/budget.h"
#include "model/caller.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_selection.h"
#include "model/job_spec.h"
#include "model/price.h"
#include "model/reservation.h"
#include "model/role.h"
#include "model/run_time_team.h"
#include "model/spec_patch.h"
#include "model/token.h"

namespace gpu_platform::model {

// Accept a job. `environment` is what the job's processes get, as NAME=VALUE strings each ended by
// NUL; it goes to the store's owner-only table and into no event, list or log.
struct SubmitJob {
  JobSpec spec;
  std::string environment;
  bool hold = false;
  bool dry_run = false;  // judge it, and do nothing
  // The request itself has container_network NONE: the job runs only where it has no network.
  bool refuses_network = false;
  // The outcomes of targets of spec.dependencies that have left the core, which does not read the
  // archive. A target that is neither here nor in the core is refused (kNotFound, "dependency").
  std::vector<EndedTarget> ended;
};

// An action on a job by its owner or an administrator. A job in that state stays as it is.
enum class JobAction : std::uint8_t {
  kCancel,          // SIGTERM, then SIGKILL after the grace time
  kKill,            // SIGKILL at once
  kHold,            // a waiting job does not start
  kRelease,         // it may again
  kRequeue,         // a running job is stopped as by cancel, and waits again
  kRequeueAndHold,  // the same, and the job is held
};
// Returns the name of the action in the audit trail.
constexpr AuditAction audit_action(JobAction action) {
  return static_cast<AuditAction>(static_cast<int>(action) + 1);
}
static_assert(audit_action(JobAction::kCancel) == AuditAction::kCancel &&
              audit_action(JobAction::kRequeueAndHold) == AuditAction::kRequeueAndHold);

struct ActOnJob {
  JobId job;
  JobAction action = JobAction::kCancel;
  bool whole_array = false;  // all members of the array of that id, each judged for itself
  std::string detail;        // why, where the platform itself ends a waiting job; else empty
};

// One action on all jobs that `which` selects, judged and done within one command.
struct ActOnJobs {
  JobSelection which;
  JobAction action = JobAction::kCancel;
  bool dry_run = false;  // say what it would do, and do nothing
};

// Raises a job in the queue above the other jobs in the queue of its user, team and class.
struct RaiseJob {
  JobId job;
  bool whole_array = false;  // all its members in the queue, which keep their order
};

// Sends a signal to all processes of a job that runs.
struct SignalJob {
  JobId job;
  std::uint8_t signal = 0;   // one of kJobSignals
  bool whole_array = false;  // all its members that run
};

// A process of a running job reports one of its steps: that it has begun, or how it ended.
struct RecordStep {
  AttemptId attempt;
  JobStep step;
};

// New values for the specification of a job that has not ended.
struct UpdateJob {
  JobId job;
  SpecPatch to;                            // its labels are added, or replace present ones
  std::vector<std::string> remove_labels;  // by key; a key that the job does not have is no error
  bool whole_array = false;                // as in ActOnJob
  std::vector<EndedTarget> ended;          // as in SubmitJob
};

// Names GPUs: by `uuid`, by `node` and `index`, or all of a node by `node` alone.
struct GpuSelector {
  std::string uuid;
  std::string node;
  std::optional<std::uint32_t> index;
};

enum class GpuAction : std::uint8_t {
  kDrain,        // finish what runs, start nothing
  kTakeOffline,  // take out; refused while jobs hold it, unless forced
  kBringOnline,
  kReset,  // reset and check; refused while jobs hold it, unless it may wait or is forced
  kCheck,  // the check alone, under the same conditions
};

// An operator's action. For a whole node it concerns the node too, and so jobs without GPUs.
struct ChangeGpus {
  GpuSelector which;
  GpuAction action = GpuAction::kDrain;
  std::string reason;  // in the operator's words; may be empty
  // kTakeOffline, kReset, kCheck: stops the jobs that hold it; they are queued again.
  bool force = false;
  // When it goes back into service by itself; unset: never. For kDrain and kTakeOffline.
  base::Instant until = {};
  // kReset, kCheck: takes no new work, and it is done when nothing holds it any more.
  bool when_empty = false;
  bool deep = false;  // kCheck: of minutes, not of seconds
};

// An administrator reserves GPUs for a time (model/reservation.h): for maintenance, or for the
// named teams and users.
struct MakeReservation {
  std::string name;
  base::Instant begin;      // unset: at once
  base::Instant end;        // unset: `duration` after its begin
  base::Duration duration;  // zero where `end` says it
  bool maintenance = false;
  std::vector<std::string> teams;
  std::vector<std::string> users;
  // Either nodes by name, with all of their GPUs or a number of each, or a number of GPUs of a
  // type.
  std::vector<std::string> nodes;
  std::optional<std::uint32_t> gpus_per_node;
  std::uint32_t gpus = 0;
  std::string gpu_type;         // canonical; empty: any, but all of one
  bool ignore_running = false;  // jobs that run there may run into it
  bool force = false;           // also where GPUs are promised to a waiting job, or freed for one
  Repeat repeat = Repeat::kNever;
  base::Instant until;        // no occurrence begins later; unset: `count`
  std::uint32_t count = 0;    // of occurrences; zero: they never end
  base::Duration utc_offset;  // as in Reservation
};

// An administrator changes a reservation. What is not given stays as it is. A change of times is of
// the occurrence that has not ended yet, and of all after it.
struct ChangeReservation {
  std::string name;
  bool skip = false;  // the occurrence that has not ended yet; nothing else is given then
  std::optional<base::Instant> begin;
  std::optional<base::Instant> end;  // or `duration`
  std::optional<base::Duration> duration;
  // If one of the three is given, they replace all three.
  std::optional<bool> maintenance;
  std::optional<std::vector<std::string>> teams;
  std::optional<std::vector<std::string>> users;
  // The GPUs are given as in MakeReservation; they are chosen anew if nodes or gpus are given.
  std::vector<std::string> nodes;
  std::optional<std::uint32_t> gpus_per_node;
  std::uint32_t gpus = 0;
  std::string gpu_type;
  bool ignore_running = false;
  bool force = false;
  std::optional<Repeat> repeat;
  std::optional<base::Instant> until;
  std::optional<std::uint32_t> count;  // from the present one on; zero: they never end
  std::optional<base::Duration> utc_offset;
};

// Its waiting jobs are ended; running ones go on.
struct CancelReservation {
  std::string name;
};

// Makes a token (model/token.h) of the user, who is one of this host. The interface keeps the
// secret to itself, and gives it to the caller once the command is done.
struct MakeToken {
  std::string name;
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::optional<Role> role;  // absent: a user's, or the caller's own if that is less
  // At most as far away as the policy and the caller's credential allow. Unset: the default
  // lifetime or, if that is less, as far as these allow.
  base::Instant expires_at;
  bool never_expires = false;  // instead of expires_at
  std::string hash;            // of the secret
  std::string request_id;      // the caller's own key; empty: none
  // That the caller came with instead of a token, and when it ends.
  std::optional<ProvenNames> proven = std::nullopt;
  base::Instant proven_until = {};
};

// Ends a token, and all that were made with it.
struct RevokeToken {
  TokenId token;
};

// A token was used. The door says so where that is news (kTokenUseInterval).
struct RecordTokenUse {
  TokenId token;
  base::Instant at;
};

// Changes of a team at run time (model/run_time_team.h). What is not given stays as it is.
struct SetTeam {
  struct NewMember {
    std::string user;
    std::uint32_t shares = 1;
    std::optional<bool> is_default = std::nullopt;  // of its jobs that name no team; none: as it is
  };
  enum class Presence : std::uint8_t { kAny, kNew, kPresent };
  std::string name;
  Presence presence = Presence::kAny;  // of the team before; kAny: it is made if it is missing
  std::optional<std::string> parent;   // empty: the organisation itself
  std::optional<std::uint32_t> shares;
  // A member that is there already gets the shares. What a coordinator adds is invited.
  std::vector<NewMember> add_members;
  std::vector<std::string> remove_members;  // or invited
  std::vector<std::string> add_coordinators;
  std::vector<std::string> remove_coordinators;
  std::map<QuotaKey, std::optional<std::uint32_t>> quota = {};  // no value: none from here on
};

// The caller's answer to the invitation of a coordinator of the team.
struct AnswerInvitation {
  std::string name;  // of the team
  bool accept = false;
};

// Removes what was set of a team at run time, and with it the team.
struct RemoveTeam {
  std::string name;
};

// Calls for the audit trail that are none of the commands above: opened channels into jobs, refused
// calls, a configuration that was refused.
struct RecordCalls {
  std::vector<AuditedCall> calls;
};

// An administrator sets a price, from now on or from a later time on.
struct SetPrice {
  Price price;
};

// Ends a price.
struct WithdrawPrice {
  std::uint32_t id = 0;
};

// Sets a budget at run time; what is not given stays as it is.
struct SetBudget {
  BudgetKey key;
  std::optional<BudgetPeriod> period;
  std::optional<base::MicroUsd> amount;  // needed where there is no such budget yet
  std::optional<BudgetAct> act;
};

// Lets the holder of a budget go on although it is spent. `until` unset: the override ends now.
struct OverrideBudget {
  BudgetKey key;
  base::Instant until;
  std::string why;  // not empty
};

// Removes what was set of a budget at run time.
struct RemoveBudget {
  BudgetKey key;
};

// An administrator corrects the ledger.
struct CorrectLedger {
  std::string user;  // as in LedgerCorrected
  std::string team;
  std::string project;
  AttemptId attempt;
  base::MicroUsd amount;  // may be negative; not zero
  std::string text;       // not empty
};

struct Command {
  Caller caller;
  std::variant<SubmitJob, ActOnJob, ActOnJobs, UpdateJob, ChangeGpus, MakeReservation,
               ChangeReservation, CancelReservation, RecordCalls, RaiseJob, SignalJob, RecordStep,
               MakeToken, RevokeToken, RecordTokenUse, SetTeam, RemoveTeam, AnswerInvitation,
               SetPrice, WithdrawPrice, SetBudget, OverrideBudget, RemoveBudget, CorrectLedger>
      body;
};

// The result of ActOnJobs for one job.
struct JobOutcome {
  JobId job;
  bool changed = false;
  std::optional<base::Error> refusal;
};

// The answer to a durable, applied command.
struct CommandReply {
  JobId job;
  bool changed = true;           // false: a repeated submission, or nothing to change
  std::vector<GpuRef> gpus;      // those that ChangeGpus changed
  std::vector<JobOutcome> jobs;  // all that ActOnJobs, or a whole array, selected; ascending id
  // The result of a dry run: the job as it would have been accepted, without an id. For an array it
  // is the first member.
  std::shared_ptr<const Job> accepted;
  // That MakeToken made, now or, if nothing changed, when it came for the first time.
  TokenId token = {};
};

}  // namespace gpu_platform::model
