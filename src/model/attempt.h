#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/exit.h"
#include "model/gpu_load.h"
#include "model/granted.h"
#include "model/ids.h"
#include "model/priority.h"
#include "model/states.h"
#include "model/step.h"

// One run of a job, from the decision to start it until its resources are free again.

namespace gpu_platform::model {

// Why an attempt or a job ended, or is being stopped.
enum class EndReason : std::uint8_t {
  kNone,         // ended by itself
  kCancelledBy,  // a user, `by`; empty: what it stands for was deleted, as detail says
  kKilledBy,     // the same, without grace
  kTimeLimit,
  kOutOfMemory,
  kPreempted,
  kNodeLost,
  kLaunchFailed,      // the command could not be started; detail says why
  kSupervisorLost,    // its result cannot be known
  kGpuOffline,        // an operator took its GPU or node out of service
  kRequeuedBy,        // a user, `by`, put the job back into the queue
  kPrologFailed,      // the site's prolog on the node: the job was not started; detail says how
  kIdleTimeout,       // no input and no output for too long
  kDeadline,          // it could no longer end by its deadline, and was not started
  kDependencyFailed,  // a dependency can never be met; detail says why
  kReservationEnded,  // the reservation that it asks for was cancelled or is over
  kWaitTimeout,       // it had not started within its own wait_timeout
  kEnvironmentLost,   // the store no longer has its environment variables: it was not started
  kHung,              // its GPUs were idle and it printed nothing for its hang_timeout
  kGpuFault,          // a GPU failed under it; detail says which and how
  kGpuMemory,         // it used more memory of a GPU than its part has; detail says how much
  kIdle,              // it did not use its GPUs, and the site stops such jobs (alerts.idle)
  kBudget,            // a budget is spent, `by`, or the rest of the job's own is too small
};
inline constexpr std::size_t kEndReasons = 23;
std::string_view to_string(EndReason reason);  // "TIME_LIMIT"

// Used by the whole process tree of an attempt.
struct Usage {
  base::Duration cpu_time;
  base::Bytes peak_memory;

  friend bool operator==(const Usage&, const Usage&) = default;
};

// Why a job was started now.
enum class StartWhy : std::uint8_t {
  kImmediate,
  kBackfill,
  kReserved,
  kPreempted,  // others were stopped to make room for it
};
inline constexpr std::size_t kStartWhys = 4;
std::string_view to_string(StartWhy why);

struct Attempt {
  std::uint32_t number = 0;
  AttemptState state = AttemptState::kRequested;
  StartWhy why = StartWhy::kImmediate;
  Allocation allocation;
  std::string boot_id;  // of the node at the time of StartRequested
  std::uint64_t pid = 0;
  base::Instant requested_at;
  base::Instant started_at;
  base::Instant ended_at;
  base::Instant released_at;
  Exit exit;
  EndReason stop_reason = EndReason::kNone;  // why it was told to stop
  EndReason reason = EndReason::kNone;       // why it ended
  bool kill_requested = false;               // told to stop without grace
  std::string by;                            // the user who stopped it
  std::string detail;
  Usage usage;
  base::Duration time_limit;          // that it was started with; the job's may have changed since
  std::vector<JobId> preempted_jobs;  // that were stopped for it (kPreempted), ascending
  JobId passed;  // the first that waited for a place before it (kBackfill); else invalid
  // While it holds something, or when it gave that back: it was above the guarantee of its team, so
  // that jobs within another guarantee may stop it.
  bool is_borrowed = false;
  // The time at which a job that started before planned starts by its prediction is stopped if it
  // delays them. Unset: it did not start so, or delays no job.
  base::Instant yields_at;
  // Others were stopped for it: it is stopped for no job but one of a class above this, and counts
  // as work that cannot be stopped on guaranteed GPUs. Unset: none were.
  std::optional<PriorityClass> stops_above;
  bool began_overdue = false;  // it is not stopped for an overdue job
  // The type of all its GPUs, as their node named it when it was placed there; empty: it has none.
  // Limits by type use it.
  std::string gpu_type;
  base::Shared<JobSteps> steps;  // that it reported; none of them runs once it has ended
  // The names of its allocation. Empty if a version without this archived the job.
  base::Shared<Granted> granted;
  std::string preflight;  // what the check of its GPUs did, in words; empty: none was asked for
  // Its GPUs, in the allocation's order, where they were chosen by load; else empty.
  std::vector<GpuChoice> choices;
  bool is_reclaimed = false;  // stopped because its GPUs are guaranteed to others
  // It runs no longer than this, by the job's own budget. Absent: that sets no limit.
  std::optional<base::Duration> limit_by_budget;

  // The node of its supervisor, and so of the site's prolog and epilog. The allocation has a node.
  NodeId first_node() const { return allocation.nodes.front().node; }

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

}  // namespace gpu_platform::model
