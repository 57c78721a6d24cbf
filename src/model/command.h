#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/audit.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_selection.h"
#include "model/spec_patch.h"

namespace gpu_platform::model {

// The caller, as the door established it (peer credentials of the socket).
struct Caller {
  std::string user;
  std::uint32_t uid = 0;
  bool is_administrator = false;  // root: sees and changes all jobs
  Door door = Door::kNone;        // kNone: nothing of it goes into the audit trail
  std::uint64_t pid = 0;          // 0: not known
};

// The caller, as the audit trail records it.
inline Origin origin_of(const Caller& caller) {
  return {caller.door, caller.user, caller.uid, caller.pid};
}

// Accept a job. `environment` is what the job's processes get, as NAME=VALUE strings each ended by
// NUL; it goes to the store's owner-only table and into no event, list or log.
struct SubmitJob {
  JobSpec spec;
  std::string environment;
  bool hold = false;
  bool dry_run = false;  // judge it, and do nothing
  // Of spec.dependencies, what was found of targets that have left the core: it does not read the
  // archive. A target that is neither here nor in the core is refused (kNotFound, "dependency").
  std::vector<EndedTarget> ended;
};

// What the owner of a job, or an administrator, does with it. A job that is so already stays as it
// is.
enum class JobAction : std::uint8_t {
  kCancel,          // SIGTERM, then SIGKILL after the grace time
  kKill,            // SIGKILL at once
  kHold,            // a waiting job does not start
  kRelease,         // it may again
  kRequeue,         // a running job is stopped as by cancel, and waits again
  kRequeueAndHold,  // likewise, and is held then
};
inline constexpr std::size_t kJobActions = 6;
// What the audit trail calls it.
constexpr AuditAction audit_action(JobAction action) {
  return static_cast<AuditAction>(static_cast<int>(action) + 1);
}
static_assert(audit_action(JobAction::kCancel) == AuditAction::kCancel &&
              audit_action(JobAction::kRequeueAndHold) == AuditAction::kRequeueAndHold);

struct ActOnJob {
  JobId job;
  JobAction action = JobAction::kCancel;
  bool whole_array = false;  // all members of the array of that id, each judged for itself
};

// Everything at once that `which` selects, judged and done within one command.
struct ActOnJobs {
  JobSelection which;
  JobAction action = JobAction::kCancel;
  bool dry_run = false;  // say what it would do, and do nothing
};

// Other values for what a job asks for that has not ended.
struct UpdateJob {
  JobId job;
  SpecPatch to;                            // its labels are added to, or replace, those that it has
  std::vector<std::string> remove_labels;  // by key; those that it does not have are no error
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
};

// An operator's action. Of a whole node it concerns the node too: jobs without GPUs as well.
struct ChangeGpus {
  GpuSelector which;
  GpuAction action = GpuAction::kDrain;
  std::string reason;  // in the operator's words; may be empty
  bool force = false;  // kTakeOffline: stops the jobs that hold it; they are queued again
};

// An administrator reserves GPUs for a time (model/reservation.h): for maintenance, or for teams
// and users, who are named then.
struct MakeReservation {
  std::string name;
  base::Instant begin;      // unset: at once
  base::Instant end;        // unset: `duration` after its begin
  base::Duration duration;  // zero where `end` says it
  bool maintenance = false;
  std::vector<std::string> teams;
  std::vector<std::string> users;
  // Either nodes by name, all of their GPUs or so many of each, or so many GPUs of a type.
  std::vector<std::string> nodes;
  std::optional<std::uint32_t> gpus_per_node;
  std::uint32_t gpus = 0;
  std::string gpu_type;         // canonical; empty: any, but all of one
  bool ignore_running = false;  // jobs that run there may run into it
};

// Waiting jobs of it are ended, running ones go on.
struct CancelReservation {
  std::string name;
};

// Calls for the audit trail that are none of the commands above: ways into jobs that were opened,
// refused calls, a configuration that was refused.
struct RecordCalls {
  std::vector<AuditedCall> calls;
};

struct Command {
  Caller caller;
  std::variant<SubmitJob, ActOnJob, ActOnJobs, UpdateJob, ChangeGpus, MakeReservation,
               CancelReservation, RecordCalls>
      body;
};

// What ActOnJobs did with one job.
struct JobOutcome {
  JobId job;
  bool changed = false;
  std::optional<base::Error> refusal;
};

// What a durable, applied command answers.
struct CommandReply {
  JobId job;
  bool changed = true;           // false: a repeated submission, or what was so already
  std::vector<GpuRef> gpus;      // those that ChangeGpus changed
  std::vector<JobOutcome> jobs;  // all that ActOnJobs, or a whole array, selected; ascending id
  // Of a dry run: the job as it would have been accepted, without an id; of an array its first
  // member.
  std::shared_ptr<const Job> accepted;
};

}  // namespace gpu_platform::model
