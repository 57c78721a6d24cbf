#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpu_platform::simulation {

// The kinds of faults. Each is counted where it is done to a running world, not where it is
// planned.
enum class FaultKind : std::uint8_t {
  kCrashIdle,               // the daemon dies between two steps
  kCrashBeforeCommit,       // decided, nothing written
  kCrashCommitLost,         // written, not synced
  kCrashCommitUnheard,      // durable, but it dies before it hears so
  kCrashBeforePublish,      // durable, readers not told
  kCrashBeforeAcknowledge,  // readers told, the client not
  kCrashBeforeDispatch,     // the client told, no order given
  kCrashInDispatch,         // some orders given
  kCrashInRecovery,         // dies again while it takes over
  kSnapshotDamaged,
  kDiskFull,   // only the reserve is left
  kOrderLost,  // start, stop or forget never reaches the engine
  kOrderLate,  // reaches it when others have passed it, or after a crash of the daemon
  kOrderRepeated,
  kNewsLost,  // what the engine saw never reaches the core
  kNewsLate,  // reaches it when others have passed it
  kNewsRepeated,
  kNodeUnreachable,  // what runs there runs on
  kNodeReturned,     // with the same boot id: its processes are still there
  kNodeRebooted,     // with another boot id: all gone
  kGpuMissing,       // a node comes back with fewer GPUs
  kNodeShrunk,       // a node says that it has fewer CPUs and less memory
  kLaunchFailed,     // the host could not start the command
  kSupervisorLost,   // what became of an attempt cannot be known
  kClockForward,
  kClockBack,
  kDrained,              // an operator drains a GPU or a node
  kTakenOffline,         // an operator takes a GPU or a node out, with or without its jobs
  kUnmanagedProcesses,   // processes of no job are seen on a GPU
  kHeld,                 // a person holds a job back
  kRequeued,             // a person puts a job back into the queue
  kUpdated,              // a person changes what a job asks for
  kBulk,                 // a person does something with many jobs at once
  kPrologFailed,         // the site's prolog fails: nothing of the job is started
  kEpilogFailed,         // the site's epilog fails
  kPreempted,            // a job is told to stop to make room for another
  kArray,                // many jobs are submitted as one
  kDependent,            // a job is to wait for others
  kPutOff,               // a job is to begin later
  kDeadline,             // a job is to have ended by a time
  kReserved,             // GPUs are reserved for a time
  kUnreserved,           // a reservation is cancelled
  kReservationPassed,    // a reservation's time is over
  kInReservation,        // a job of a reservation is started
  kReclaimed,            // what is told to stop for another borrowed from it
  kWaitTimeout,          // a job is to wait so long at most
  kTrusted,              // a job is let in before another by what is expected of it
  kYielded,              // it was still there and in the way, and is told to stop
  kYieldPutOff,          // it was still there and not in the way
  kRequeueCrossed,       // a stop in order to queue it again crosses its own end
  kCancelCrossed,        // a stop for good crosses its own end
  kZeroCompleted,        // exit code 0 completes what was to be queued again, as it asked
  kLimitCrossed,         // an attempt is stopped at a limit that its job no longer has
  kStoppedForOverdue,    // an overdue job needs the resources of the stopped one
  kReservationRepeated,  // a reservation's next occurrence takes the place of the one before
  kReservationChanged,   // an administrator changes one, or skips an occurrence
  kStoppedInTurn,        // a job of a higher class stops one that others had been stopped for
  kRaised,               // a person raises a job above their others
  kSignalled,            // a person sends a signal to a job that runs
  kStepRecorded,         // a job's process reports a step
  kTokenMade,            // a token is made, for a user or with another token
  kTokenRevoked,         // a person revokes one, and with it those that were made with it
  kTokenExpired,         // the time of one is over
  kTeamSet,              // a person makes or changes a team at run time
  kTeamRemoved,          // a person removes one
  kEvicted,              // its cluster takes the place of a job away
  kOthersCame,           // others use more or less of a node
  kServiceChanged,       // a cluster takes a node out of service, or puts it back
  kGpuUnavailable,       // a GPU of a cluster is not available to the platform
  // On the way to a cluster and back, and in it.
  kCallLost,        // a call does not reach the API server
  kAnswerLost,      // it does what it is asked for, and the answer does not come
  kCallRefused,     // 409, 429, 500, 503
  kWatchRepeated,   // a watch tells again what it has told
  kWatchReordered,  // of two objects the later change comes first
  kWatchExpired,    // all is listed anew
  kPodEvicted,
  kPodNodeReplaced,  // another machine has the node's name
  kGpuSilent,        // a GPU does not answer
  kGpuFaulty,        // a GPU has a fault after which an operator brings it online
  kXidStorm,         // the driver tells of many errors of a GPU at once
  kGpuLost,          // a GPU falls off the bus
  kGpuMoved,         // the driver lists GPUs at other places
  kGpuHot,           // a GPU gets too hot
  kEvidenceLate,     // what was seen of a GPU comes late, or with the time of another clock
  kResetOrdered,     // an operator resets a GPU
  kResetFailed,      // a reset fails, or hangs until its time is over
  kSharedGpu,        // a job gets a part of a GPU that others have parts of
  kGpuChecked,       // a GPU is checked before its first work
  kCheckFailed,      // it fails that check
  kGpuUnfit,         // a GPU fails the check before a start
  kCheckRefused,     // one of these checks cannot be made
  kStoppedInCheck,   // an attempt is told to stop while its GPUs are checked
  kMpsFault,         // one client of an MPS server ends all of its clients
};
inline constexpr std::size_t kFaultKinds = 93;

std::string_view to_string(FaultKind kind);  // "crash_before_commit"

using FaultCounts = std::array<std::uint64_t, kFaultKinds>;

// A defect put into the joints between controller, journal and engine, to prove that the checkers
// see it.
enum class Plant : std::uint8_t {
  kNone,
  kDoubleStart,       // the engine drops its marker of an attempt before it is told to forget it
  kLeakedGpu,         // the engine never says that nothing is left of a failed launch
  kLostJob,           // the journal reports a batch durable before it is
  kEffectBeforeSync,  // orders leave before their events are durable
  kHalfGang,          // a start is journalled with one GPU fewer than the job asked for
  kLateNews,          // news do not carry their attempt: all count for the newest
  kForgottenCancel,   // graceful stops never reach the engine
  kEarlyAnswer,       // commands are acknowledged before they are durable
  kEarlyFree,         // an attempt counts as gone as soon as its main process ended
  kLostRequeue,       // what is to be queued again and exits with 0 is journalled as completed
  kForgottenRequeue,  // requeues are acknowledged, and nothing is done
  kUnsaidLimit,       // the engine does not say which time limit was over
  kForgottenCaller,   // the audit trail does not say which jobs a call changed
  kEarlyFinalizer,    // pods are made without the finalizer that keeps them until their end is read
  kEarlyClaim,        // the claim of a pod is deleted when its pod is told to end
  kRenamedStart,      // a start that is repeated after a crash makes a pod of another name
  kLateList,          // a list counts from when it comes, not from when it was asked for
  kUnreleasedPod,     // the finalizer of a forgotten pod is not taken away
  kUnsaidUnfit,       // the engine does not say which GPUs failed the check before a start
};
inline constexpr std::size_t kPlants = 20;

std::string_view to_string(Plant plant);  // "double-start"
std::optional<Plant> parse_plant(std::string_view name);

}  // namespace gpu_platform::simulation
