#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/dependency.h"
#include "model/ids.h"
#include "model/network.h"
#include "model/quota_excess.h"
#include "model/states.h"

namespace gpu_platform::model {

// Why a waiting job does not run. An ordinary outcome, not an error.
enum class WaitCode : std::uint8_t {
  kNotEvaluated,  // no scheduling cycle has looked at it yet
  kNoCapacity,    // no node has what it needs free now
  kPriority,      // would fit, but jobs ahead of it go first
  kBackoff,       // waits out its time before a retry
  kHeldByUser,    // its owner holds it back
  kHeldByAdministrator,
  kNoNode,          // no node that could ever hold it is up
  kHeldByPlatform,  // the platform cannot start it; HeldFor says why
  kPreempting,      // others are being stopped to make room for it
  kBeginTime,       // it is to start no earlier than a time
  kDependency,      // waits for other jobs
  kArrayLimit,      // as many members of its array as may be are active, or in the queue
  kQuota,           // a limit would be exceeded
  kReserved,        // a reservation keeps it back
};
std::string_view to_string(WaitCode code);  // "NO_CAPACITY"

// One failing constraint and on how many nodes it fails; every node is counted exactly once, under
// the first constraint that it fails.
enum class Shortage : std::uint8_t {
  kExcluded,  // not on the job's nodelist, or one that it excludes
  kEngine,    // of an engine that cannot run the job
  kCapacity,  // of a capacity class that the job does not accept
  kNodeState,
  kGpuType,
  kGpuMemory,
  kNotShared,     // none of its GPUs may be shared in such a way, for a part of a GPU
  kKeptFromRoot,  // some may be, but not with jobs of root, which can undo its walls
  kGpusOffline,   // even with nothing else running it has too few: the others are out of service
  kGpus,
  kSharedByOthers,  // what is free of its GPUs in parts is not for jobs of this user and mode
  kGpuShare,        // less of each GPU is free than the part
  kGpuPartMemory,   // less of each GPU's memory
  kSockets,         // has the GPUs free, but only across sockets
  kCpus,
  kMemory,
  kFits,
  kReserved  // has enough free, but a reservation of others begins before the job must have ended
};
inline constexpr std::size_t kShortages = 18;
std::string_view to_string(Shortage shortage);  // "gpus_short"

struct WaitCount {
  Shortage shortage = Shortage::kGpus;
  std::uint32_t nodes = 0;
  // The least that is missing among these nodes, in GPUs, thousandths of a GPU, CPUs or MiB.
  std::uint32_t short_by = 0;

  friend bool operator==(const WaitCount&, const WaitCount&) = default;
};

// Why the platform holds a job.
enum class HeldFor : std::uint8_t {
  kProlog,       // the site's prolog failed for it too often
  kEnvironment,  // the store has lost its environment variables
  kRepair,       // the store has lost events about it
};

struct WaitReason {
  WaitCode code = WaitCode::kNotEvaluated;
  std::vector<WaitCount> counts;
  std::uint64_t jobs_ahead = 0;
  JobId blocked_by;                           // the first job ahead of it, for kPriority
  JobId kept_for;                             // whose planned start keeps what is free from it
  base::Instant kept_until;                   // that start; unset: at any moment
  std::vector<JobId> stopping;                // for kPreempting: those not gone yet, ascending
  base::Instant not_before;                   // for kBeginTime
  std::optional<Dependency> waits_for;        // the first that is not met yet, for kDependency
  HeldFor held_for = HeldFor::kProlog;        // for kHeldByPlatform
  TargetOutcome target;                       // what has become of it so far
  JobState target_state = JobState::kQueued;  // of a single job
  JobId array_id;                             // for kArrayLimit
  std::uint32_t array_limit = 0;              // for kArrayLimit
  std::optional<QuotaExcess> quota;           // for kQuota; else of the types it may not have
  std::optional<SurplusExcess> surplus;       // that makes it come after others
  // For a gang, the counts are of nodes for one part: so many of them are needed, with so many
  // GPUs.
  std::uint32_t nodes_needed = 1;
  std::uint32_t gpus_per_node = 0;
  NetworkLevel within = NetworkLevel::kAnywhere;  // and they must be together there

  // Set with kReserved: the first of others in its way, or its own one that has not begun.
  std::string reservation;
  bool is_own_reservation = false;
  base::Instant reservation_begin;
  base::Instant reservation_end;

  friend bool operator==(const WaitReason&, const WaitReason&) = default;
};

// Returns what a job is called: "12", or "40_3" for a member of an array; nothing for a job that is
// not to be named.
using NameOfJob = std::function<std::string(JobId)>;

// A sentence for people: "1 node is 4 GPUs short", "3 jobs ahead, the first is 12". Without
// `name_of`, jobs are called by their numbers.
std::string describe(const WaitReason& reason, const NameOfJob& name_of);
std::string describe(const WaitReason& reason);

}  // namespace gpu_platform::model
