#include "model/job.h"
#include "model/job_spec.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::model {

std::string_view to_string(PriorityClass priority) {
  switch (priority) {
    case PriorityClass::kCritical:
      return "CRITICAL";
    case PriorityClass::kHigh:
      return "HIGH";
    case PriorityClass::kMedium:
      return "MEDIUM";
    case PriorityClass::kLow:
      return "LOW";
  }
  return "MEDIUM";
}

Priority priority_of_number(std::uint8_t number) {
  CHECK(number <= 9);
  if (number <= 1) return {PriorityClass::kCritical, number};
  if (number <= 3) return {PriorityClass::kHigh, number};
  if (number <= 6) return {PriorityClass::kMedium, number};
  return {PriorityClass::kLow, number};
}

Priority priority_of_class(PriorityClass priority) {
  constexpr std::uint8_t kDefaultNumbers[] = {1, 3, 5, 8};
  return {priority, kDefaultNumbers[static_cast<std::size_t>(priority)]};
}

std::string_view to_string(JobKind kind) {
  switch (kind) {
    case JobKind::kTraining:
      return "TRAINING";
    case JobKind::kInference:
      return "INFERENCE";
    case JobKind::kInteractive:
      return "INTERACTIVE";
    case JobKind::kBatch:
      return "BATCH";
  }
  return "BATCH";
}

std::string_view to_string(Lost lost) {
  switch (lost) {
    case Lost::kNo:
      return "";
    case Lost::kNodeLost:
      return "NODE_LOST";
    case Lost::kUnknown:
      return "UNKNOWN";
  }
  return "";
}

std::string_view to_string(EndReason reason) {
  switch (reason) {
    case EndReason::kNone:
      return "";
    case EndReason::kCancelledBy:
      return "CANCELLED_BY";
    case EndReason::kKilledBy:
      return "KILLED_BY";
    case EndReason::kTimeLimit:
      return "TIME_LIMIT";
    case EndReason::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case EndReason::kPreempted:
      return "PREEMPTED";
    case EndReason::kNodeLost:
      return "NODE_LOST";
    case EndReason::kLaunchFailed:
      return "LAUNCH_FAILED";
    case EndReason::kSupervisorLost:
      return "SUPERVISOR_LOST";
    case EndReason::kGpuOffline:
      return "GPU_OFFLINE";
    case EndReason::kRequeuedBy:
      return "REQUEUED_BY";
    case EndReason::kPrologFailed:
      return "PROLOG_FAILED";
    case EndReason::kIdleTimeout:
      return "IDLE_TIMEOUT";
    case EndReason::kDeadline:
      return "DEADLINE";
    case EndReason::kDependencyFailed:
      return "DEPENDENCY_FAILED";
    case EndReason::kReservationEnded:
      return "RESERVATION_ENDED";
    case EndReason::kWaitTimeout:
      return "WAIT_TIMEOUT";
    case EndReason::kEnvironmentLost:
      return "ENVIRONMENT_LOST";
    case EndReason::kGpuFault:
      return "GPU_FAULT";
    case EndReason::kHung:
      return "HUNG";
    case EndReason::kGpuMemory:
      return "GPU_MEMORY";
    case EndReason::kIdle:
      return "IDLE";
    case EndReason::kBudget:
      return "BUDGET";
  }
  return "";
}

std::string_view to_string(StartWhy why) {
  switch (why) {
    case StartWhy::kImmediate:
      return "IMMEDIATE";
    case StartWhy::kBackfill:
      return "BACKFILL";
    case StartWhy::kReserved:
      return "RESERVED";
    case StartWhy::kPreempted:
      return "PREEMPTED";
  }
  return "IMMEDIATE";
}

bool outranks(Hold hold, Hold present) {
  const auto rank = [](Hold h) {
    if (h == Hold::kNone) return 0;
    return h == Hold::kByAdministrator ? 2 : 1;
  };
  return rank(hold) > rank(present);
}

HolderPhase phase_of(const Attempt& attempt) {
  if (attempt.state == AttemptState::kCleaning) return HolderPhase::kCleaning;
  return attempt.started_at.is_set() ? HolderPhase::kInUse : HolderPhase::kAllocated;
}

bool has_started(const Job& job) {
  return std::ranges::any_of(job.attempts,
                             [](const Attempt& attempt) { return attempt.started_at.is_set(); });
}

void count_end(const Job& job, TargetOutcome& outcome) {
  if (!is_ended(job.state)) {
    ++outcome.open;
    outcome.unstarted += has_started(job) ? 0 : 1;
  } else if (job.state != JobState::kCompleted && !outcome.failed.valid()) {
    outcome.failed = job.id;
    outcome.failed_as = job.state;
  }
}

std::string name_of(const Job& job) {
  return job.is_member() ? fmt::format("{}_{}", job.array_id.value, job.array_index)
                         : fmt::format("{}", job.id.value);
}

bool can_begin_anew(const JobSpec& spec) {
  return !spec.takes_input || spec.terminal.has_value();
}

std::string program_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::size_t kMax = 255;
  const std::string_view whole = name.empty() ? path : name;
  std::size_t size = std::min(whole.size(), kMax);
  // A character is never cut in two.
  while (size > 0 && size < whole.size() &&
         (static_cast<unsigned char>(whole[size]) & 0xc0) == 0x80) {
    --size;
  }
  return std::string(whole.substr(0, size));
}

std::string_view program_of(const JobSpec& spec) {
  if (!spec.name.empty()) return spec.name;
  return spec.command.empty() ? std::string_view() : std::string_view(spec.command.front());
}

base::Instant last_start_for_deadline(const JobSpec& spec) {
  if (!spec.deadline.is_set()) return {};
  return spec.deadline + (base::Duration() - spec.time_limit);
}

base::Instant last_start(const Job& job) {
  const base::Instant for_deadline = last_start_for_deadline(*job.spec);
  if (job.spec->wait_timeout == base::Duration() || !job.attempts.empty()) return for_deadline;
  const base::Instant by = std::max(job.submitted_at, job.spec->begin) + job.spec->wait_timeout;
  return for_deadline.is_set() ? std::min(for_deadline, by) : by;
}

bool is_gang(const ResourceRequest& request) {
  return request.nodes > 1 || request.cross_node;
}

bool has_ranks(const JobSpec& spec) {
  return spec.per_gpu || (is_gang(spec.request) && !spec.first_node_only);
}

bool may_use_gpu(const ResourceRequest& request, const std::string& uuid) {
  const bool is_named =
      request.gpus_only.empty() || std::ranges::binary_search(request.gpus_only, uuid);
  return is_named && !std::ranges::binary_search(request.gpus_avoid, uuid);
}

std::uint64_t total_gpus(const ResourceRequest& request) {
  return std::uint64_t{request.gpus} * request.nodes;
}

base::Duration limit_at_speed(base::Duration limit, std::uint32_t speed) {
  CHECK(speed > 0);
  __extension__ using Wide = __int128;
  const Wide exact = (static_cast<Wide>(limit.value()) * kFullSpeed + speed - 1) / speed;
  constexpr Wide kLongest = std::numeric_limits<std::int64_t>::max() / 4;
  return base::Duration(static_cast<std::int64_t>(std::min(exact, kLongest)));
}

base::Duration longest_limit(const ResourceRequest& request, base::Duration limit) {
  if (request.gpu_speeds.empty()) return limit;
  return limit_at_speed(limit, *std::ranges::min_element(request.gpu_speeds));
}

Turn turn_of(const Job& job) {
  if (job.turn) return *job.turn;
  return {job.id, job.submitted_at, job.spec->priority.number, total_gpus(job.spec->request)};
}

bool holds_resources(const Job& job) {
  return std::ranges::any_of(job.attempts,
                             [](const Attempt& a) { return holds_resources(a.state); });
}

bool operator==(const Job& a, const Job& b) {
  const bool same_spec = a.spec == b.spec || (a.spec && b.spec && *a.spec == *b.spec);
  return same_spec && a.id == b.id && a.state == b.state && a.submitted_at == b.submitted_at &&
         a.eligible_at == b.eligible_at && a.ended_at == b.ended_at && a.reason == b.reason &&
         a.by == b.by && a.detail == b.detail && a.failures == b.failures && a.losses == b.losses &&
         a.attempts == b.attempts && a.hold == b.hold && a.prolog_failed_on == b.prolog_failed_on &&
         a.preemptions == b.preemptions && a.overdue_since == b.overdue_since &&
         a.array_id == b.array_id && a.array_index == b.array_index && a.waits_for == b.waits_for &&
         a.dependency_failure == b.dependency_failure && a.prediction == b.prediction &&
         a.stopped_for_it == b.stopped_for_it && a.turn == b.turn &&
         a.early_prediction == b.early_prediction && a.avoid_gpus == b.avoid_gpus &&
         a.hardware_failures == b.hardware_failures && a.neighbour_faults == b.neighbour_faults;
}

}  // namespace gpu_platform::model
