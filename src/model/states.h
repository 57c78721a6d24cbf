#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// The state machines of the product. Each is one table of (from, trigger) -> to with the reason;
// what is not in the table is refused. Nothing else assigns a state. docs/states.md is generated
// from the tables.

namespace gpu_platform::model {

template <class State, class Trigger>
struct Transition {
  State from;
  Trigger trigger;
  State to;
  std::string_view why;
};

// ---- Job
// -------------------------------------------------------------------------------------------

enum class JobState : std::uint8_t {
  kHeld,      // waits for a person to release it
  kPending,   // accepted, not eligible yet (retry back-off, begin time, dependency)
  kQueued,    // eligible, waits for resources
  kStarting,  // resources given, start asked for, not yet seen running
  kRunning,
  kStopping,   // told to stop, in its grace time
  kSuspended,  // paused; no code pauses a job yet
  kPreempted,  // stopped in favour of another; passed through on the way back to the queue
  kCompleted,
  kFailed,
  kCancelled,
  kTimedOut,
};
inline constexpr std::size_t kJobStates = 12;

enum class JobTrigger : std::uint8_t {
  kBecameEligible,
  kHold,
  kRelease,
  kStartRequested,
  kStarted,
  kStopRequested,
  kSuspend,
  kResume,
  kPreempt,
  kRequeue,
  kComplete,
  kFail,
  kCancel,
  kTimeOut,
  kPostpone,
};
inline constexpr std::size_t kJobTriggers = 15;

std::span<const Transition<JobState, JobTrigger>> job_transitions();
// The state after `trigger`, or nothing when the table has no such row.
std::optional<JobState> next(JobState state, JobTrigger trigger);
std::string_view to_string(JobState state);      // "QUEUED"
std::string_view to_string(JobTrigger trigger);  // "START_REQUESTED"
std::optional<JobState> parse_job_state(std::string_view name);

constexpr bool is_ended(JobState s) {
  return s == JobState::kCompleted || s == JobState::kFailed || s == JobState::kCancelled ||
         s == JobState::kTimedOut;
}
// Has an attempt that holds resources.
constexpr bool is_active(JobState s) {
  return s == JobState::kStarting || s == JobState::kRunning || s == JobState::kStopping ||
         s == JobState::kSuspended;
}
constexpr bool is_waiting(JobState s) {
  return s == JobState::kPending || s == JobState::kQueued;
}

// ---- Attempt
// ---------------------------------------------------------------------------------------

enum class AttemptState : std::uint8_t {
  kRequested,  // journalled, the engine has been or will be asked
  kRunning,
  kStopping,
  kCleaning,  // ended; its resources are not free until the engine says that nothing of it is left
  kReleased,
};
inline constexpr std::size_t kAttemptStates = 5;

enum class AttemptTrigger : std::uint8_t { kStarted, kStopRequested, kEnded, kReleased };
inline constexpr std::size_t kAttemptTriggers = 4;

std::span<const Transition<AttemptState, AttemptTrigger>> attempt_transitions();
std::optional<AttemptState> next(AttemptState state, AttemptTrigger trigger);
std::string_view to_string(AttemptState state);
std::string_view to_string(AttemptTrigger trigger);

constexpr bool holds_resources(AttemptState s) {
  return s != AttemptState::kReleased;
}
constexpr bool may_have_processes(AttemptState s) {
  return s == AttemptState::kRequested || s == AttemptState::kRunning ||
         s == AttemptState::kStopping;
}

// ---- GPU
// -------------------------------------------------------------------------------------------

// It follows from the GPU's taints and from how far its holders are (settle(), node.h); there are
// no transitions.
enum class GpuState : std::uint8_t {
  kAvailable,
  kAllocated,  // given to an attempt that is not seen running yet
  kInUse,
  kCleaning,   // its job has ended; waits until no process is left
  kDraining,   // runs out its jobs, takes no new ones
  kDegraded,   // works with faults, takes no new ones; no code sees faults yet
  kResetting,  // no code resets a GPU yet
  kOffline,
};
inline constexpr std::size_t kGpuStates = 8;

// How far the attempt is that holds a GPU: phase_of() of the attempt.
enum class HolderPhase : std::uint8_t {
  kAllocated,  // it is not seen running yet
  kInUse,
  kCleaning,  // it has ended; its processes may be left
};
inline constexpr std::size_t kHolderPhases = 3;

std::string_view to_string(GpuState state);

// ---- Node
// ------------------------------------------------------------------------------------------

enum class NodeState : std::uint8_t {
  kUp,
  kDraining,
  kLost,  // does not report, or came back with another boot id
  kOffline,
};
inline constexpr std::size_t kNodeStates = 4;

std::string_view to_string(NodeState state);

}  // namespace gpu_platform::model
