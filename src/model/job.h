#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/attempt.h"
#include "model/dependency.h"
#include "model/forward.h"
#include "model/ids.h"
#include "model/start_prediction.h"
#include "model/states.h"

namespace gpu_platform::model {

// The party that holds a waiting job. Only an administrator releases a job that an administrator
// holds. The owner may release a job that the platform holds.
enum class Hold : std::uint8_t { kNone, kByUser, kByAdministrator, kByPlatform };
inline constexpr std::size_t kHolds = 4;
// Returns whether `hold` is more than `present` and takes its place.
bool outranks(Hold hold, Hold present);

// The platform holds a job after this number of failures of the site's prolog.
inline constexpr std::size_t kMaxPrologFailures = 3;

// A job fails when GPUs have failed under so many of its attempts in a row, and the last of them
// began this soon after the first.
inline constexpr std::uint32_t kMaxHardwareFailures = 3;
inline constexpr base::Duration kHardwareFailuresWithin = base::hours(2);

// After so many attempts in a row that failed by the fault of a neighbour on their GPU, the next
// one counts as a failure of the job itself. Otherwise a job would run for ever beside a neighbour
// that fails again and again, or beside none, if it is at fault itself and not recognised.
inline constexpr std::uint32_t kMaxNeighbourFaults = 3;

// All by which jobs of one user, team and class are ordered among themselves. `jobs raise` changes
// only the order among such jobs. Each turn is still held by exactly one of them, so no other user
// gets more jobs ahead.
struct Turn {
  JobId of;             // the job that came with it
  base::Instant since;  // when that was submitted, or a person requeued it while it ran
  std::uint8_t number = 0;
  std::uint64_t gpus = 0;  // that it asks for

  friend bool operator==(const Turn&, const Turn&) = default;
};

struct Job {
  JobId id;
  std::shared_ptr<const JobSpec> spec;
  JobState state = JobState::kQueued;
  base::Instant submitted_at;
  base::Instant eligible_at;  // when a PENDING job becomes QUEUED, or when it did
  base::Instant ended_at;     // as its last attempt, where that ended it
  EndReason reason = EndReason::kNone;
  std::string by;
  std::string detail;
  std::uint32_t failures = 0;  // attempts that failed by the application's own doing
  std::uint32_t losses = 0;    // attempts lost to hardware or nodes
  std::vector<Attempt> attempts;
  Hold hold = Hold::kNone;  // of an active job: it will be HELD when it is back in the queue
  // The nodes where the site's prolog failed for it, each time since it last started or was
  // released.
  std::vector<NodeId> prolog_failed_on;
  // The time since which it is overdue; unset: it is not.
  base::Instant overdue_since;
  std::uint32_t preemptions = 0;      // attempts stopped to make room for another job
  JobId array_id;                     // invalid: it is no member of an array
  std::uint32_t array_index = 0;      // of a member
  std::vector<Dependency> waits_for;  // those of its dependencies that are not met yet
  std::string dependency_failure;     // why one of them never will be; empty: all may be
  // The prediction since it was last queued; for a job that has started, the prediction of that
  // start.
  std::optional<StartPrediction> prediction;
  // The highest class among the jobs that were stopped for it since it last started, or that those
  // had stopped (Attempt::stops_above). Unset: none were.
  std::optional<PriorityClass> stopped_for_it;
  std::optional<Turn> turn;  // absent: its own
  // A prediction that was made deep in the queue, to learn how good such predictions are. Absent:
  // none was, or it has started.
  std::optional<StartPrediction> early_prediction;
  // The GPUs, by UUID, that failed under it: it is not placed on them while it is not known that
  // they are fit again.
  std::vector<std::string> avoid_gpus;
  std::uint32_t hardware_failures = 0;  // its last attempts, in a row, that ended so
  std::uint32_t neighbour_faults = 0;   // the same of a neighbour's fault

  bool is_member() const { return array_id.valid(); }
  const Attempt* current_attempt() const { return attempts.empty() ? nullptr : &attempts.back(); }

  friend bool operator==(const Job& a, const Job& b);
};

// The record of a job array while members of it are in the core.
struct JobArray {
  JobId id;                   // of its first member
  std::uint64_t members = 0;  // that have not left the core
  std::uint64_t size = 0;     // members that it began with; their ids follow each other
  std::uint32_t limit = 0;    // most members that may be active or in the queue at once; 0: none
  TargetOutcome outcome;

  friend bool operator==(const JobArray&, const JobArray&) = default;
};

// Returns the turn that it has.
Turn turn_of(const Job& job);

// Returns whether any of its attempts has started.
bool has_started(const Job& job);
// Returns the phase of an attempt that holds resources.
HolderPhase phase_of(const Attempt& attempt);

// Adds the result of the job to an outcome of which it is a part.
void count_end(const Job& job, TargetOutcome& outcome);

// Returns false if its input came through a pipe, because that input is gone. At a terminal a
// person begins anew.
bool can_begin_anew(const JobSpec& spec);

// "12", and "40_3" of a member of an array.
std::string name_of(const Job& job);

// Returns the last moment at which it may start so that its time limit ends by its deadline. Unset:
// it has no deadline.
base::Instant last_start_for_deadline(const JobSpec& spec);
// The same with its wait_timeout, which counts until its first start. Unset: for ever.
base::Instant last_start(const Job& job);

// Returns true while an attempt still holds resources: such a job stays in the core even after its
// end.
bool holds_resources(const Job& job);

}  // namespace gpu_platform::model
