#include "model/states.h"

namespace gpu_platform::model {

namespace {

using J = JobState;
using JT = JobTrigger;
constexpr Transition<J, JT> kJobTable[] = {
    {J::kPending, JT::kBecameEligible, J::kQueued,
     "its back-off, begin time or dependency is over"},
    {J::kQueued, JT::kPostpone, J::kPending,
     "it must wait for a time or for another job after all"},
    {J::kHeld, JT::kRelease, J::kPending, "a person released it"},
    {J::kPending, JT::kHold, J::kHeld, "a person held it"},
    {J::kQueued, JT::kHold, J::kHeld, "a person held it"},
    {J::kPreempted, JT::kHold, J::kHeld, "held on the way back to the queue"},
    {J::kQueued, JT::kStartRequested, J::kStarting, "it got all resources that it asked for"},
    {J::kStarting, JT::kStarted, J::kRunning, "its process was seen"},
    {J::kStopping, JT::kStarted, J::kStopping,
     "its stop was requested before its process was seen"},
    {J::kStarting, JT::kStopRequested, J::kStopping, "stop requested while it was being started"},
    {J::kRunning, JT::kStopRequested, J::kStopping, "stop requested"},
    {J::kSuspended, JT::kStopRequested, J::kStopping, "stop requested while paused"},
    {J::kStopping, JT::kStopRequested, J::kStopping,
     "stop requested again, as by a kill after a cancel"},
    {J::kRunning, JT::kSuspend, J::kSuspended, "paused"},
    {J::kSuspended, JT::kResume, J::kRunning, "resumed"},
    {J::kStopping, JT::kPreempt, J::kPreempted, "stopped in favour of another job"},
    {J::kRunning, JT::kPreempt, J::kPreempted,
     "ended by itself after it was chosen as victim, or its cluster evicted it"},
    {J::kStarting, JT::kPreempt, J::kPreempted, "its cluster evicted it before it was seen"},
    {J::kPreempted, JT::kBecameEligible, J::kQueued, "back in the queue"},
    {J::kPreempted, JT::kCancel, J::kCancelled, "cancelled on the way back to the queue"},
    {J::kStarting, JT::kRequeue, J::kPending,
     "the start or the site's prolog failed, or it was lost, and is tried again"},
    {J::kRunning, JT::kRequeue, J::kPending,
     "the attempt failed, was lost, or was stopped at a limit that it no longer had, and is tried "
     "again"},
    {J::kStopping, JT::kRequeue, J::kPending,
     "stopped in order to be queued again: by a person, or for its GPUs"},
    {J::kSuspended, JT::kRequeue, J::kPending, "lost while paused"},
    {J::kRunning, JT::kComplete, J::kCompleted, "exit code 0"},
    {J::kStopping, JT::kComplete, J::kCompleted,
     "exit code 0, with --complete-on-exit-zero or for a job that cannot begin anew"},
    {J::kStarting, JT::kFail, J::kFailed, "could not be started, and no retry is left"},
    {J::kRunning, JT::kFail, J::kFailed, "failed, and no retry is left"},
    {J::kStopping, JT::kFail, J::kFailed, "stopped for its GPUs, and it cannot begin anew"},
    {J::kSuspended, JT::kFail, J::kFailed, "lost while paused, and no retry is left"},
    {J::kHeld, JT::kCancel, J::kCancelled, "cancelled before it started"},
    {J::kPending, JT::kCancel, J::kCancelled, "cancelled before it started"},
    {J::kQueued, JT::kCancel, J::kCancelled, "cancelled before it started"},
    {J::kStopping, JT::kCancel, J::kCancelled, "ended after a user cancelled it"},
    {J::kStarting, JT::kCancel, J::kCancelled, "its workload was deleted before it was seen"},
    {J::kRunning, JT::kCancel, J::kCancelled, "its workload was deleted"},
    {J::kRunning, JT::kTimeOut, J::kTimedOut, "stopped at its time limit"},
    {J::kStopping, JT::kTimeOut, J::kTimedOut,
     "ended after a user cancelled it, but its time limit was over first"},
};

using A = AttemptState;
using AT = AttemptTrigger;
constexpr Transition<A, AT> kAttemptTable[] = {
    {A::kRequested, AT::kStarted, A::kRunning, "its process was seen"},
    {A::kRequested, AT::kStopRequested, A::kStopping, "stop requested before its process was seen"},
    {A::kRequested, AT::kEnded, A::kCleaning, "could not be started, or was lost"},
    {A::kRunning, AT::kStopRequested, A::kStopping, "stop requested"},
    {A::kRunning, AT::kEnded, A::kCleaning, "its process ended or was lost"},
    {A::kStopping, AT::kStarted, A::kStopping, "seen after its stop was requested"},
    {A::kStopping, AT::kStopRequested, A::kStopping, "stop requested again, without grace"},
    {A::kStopping, AT::kEnded, A::kCleaning, "its process ended or was lost"},
    {A::kCleaning, AT::kReleased, A::kReleased, "nothing of it is left on its nodes"},
};

template <class State, class Trigger, std::size_t Size>
std::optional<State> find(const Transition<State, Trigger> (&table)[Size], State state,
                          Trigger trigger) {
  for (const auto& row : table) {
    if (row.from == state && row.trigger == trigger) return row.to;
  }
  return std::nullopt;
}

constexpr std::string_view kJobStateNames[kJobStates] = {
    "HELD",      "PENDING",   "QUEUED",    "STARTING", "RUNNING",   "STOPPING",
    "SUSPENDED", "PREEMPTED", "COMPLETED", "FAILED",   "CANCELLED", "TIMED_OUT"};
constexpr std::string_view kJobTriggerNames[kJobTriggers] = {
    "BECAME_ELIGIBLE", "HOLD",    "RELEASE", "START_REQUESTED", "STARTED",
    "STOP_REQUESTED",  "SUSPEND", "RESUME",  "PREEMPT",         "REQUEUE",
    "COMPLETE",        "FAIL",    "CANCEL",  "TIME_OUT",        "POSTPONE"};
constexpr std::string_view kAttemptStateNames[kAttemptStates] = {"REQUESTED", "RUNNING", "STOPPING",
                                                                 "CLEANING", "RELEASED"};
constexpr std::string_view kAttemptTriggerNames[kAttemptTriggers] = {"STARTED", "STOP_REQUESTED",
                                                                     "ENDED", "RELEASED"};
constexpr std::string_view kGpuStateNames[kGpuStates] = {
    "AVAILABLE", "ALLOCATED", "IN_USE", "CLEANING", "DRAINING", "DEGRADED", "RESETTING", "OFFLINE"};
constexpr std::string_view kNodeStateNames[kNodeStates] = {"UP", "DRAINING", "LOST", "OFFLINE"};
}  // namespace

std::span<const Transition<JobState, JobTrigger>> job_transitions() {
  return kJobTable;
}
std::span<const Transition<AttemptState, AttemptTrigger>> attempt_transitions() {
  return kAttemptTable;
}
std::optional<JobState> next(JobState s, JobTrigger t) {
  return find(kJobTable, s, t);
}
std::optional<AttemptState> next(AttemptState s, AttemptTrigger t) {
  return find(kAttemptTable, s, t);
}
std::string_view to_string(JobState s) {
  return kJobStateNames[static_cast<std::size_t>(s)];
}
std::string_view to_string(JobTrigger t) {
  return kJobTriggerNames[static_cast<std::size_t>(t)];
}
std::string_view to_string(AttemptState s) {
  return kAttemptStateNames[static_cast<std::size_t>(s)];
}
std::string_view to_string(AttemptTrigger t) {
  return kAttemptTriggerNames[static_cast<std::size_t>(t)];
}
std::string_view to_string(GpuState s) {
  return kGpuStateNames[static_cast<std::size_t>(s)];
}
std::string_view to_string(NodeState s) {
  return kNodeStateNames[static_cast<std::size_t>(s)];
}
std::optional<JobState> parse_job_state(std::string_view name) {
  for (std::size_t i = 0; i < kJobStates; ++i) {
    if (kJobStateNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

}  // namespace gpu_platform::model
