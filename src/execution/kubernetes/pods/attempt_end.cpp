#include "execution/kubernetes/pods/attempt_end.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

namespace {

using model::EndReason;

constexpr std::int32_t kNotFound = 127;
constexpr std::int32_t kNotExecutable = 126;

// What the container runtime says when it cannot start a program. runc and crun have these words
// from the system's own.
std::optional<std::int32_t> code_of_failed_start(const PodView& pod) {
  const bool is_failed_start = pod.end_reason == "StartError" ||
                               pod.end_reason == "ContainerCannotRun" ||
                               pod.end_reason == "RunContainerError";
  if (!is_failed_start) return std::nullopt;
  if (pod.end_message.contains("permission denied")) return kNotExecutable;
  if (pod.end_message.contains("no such file or directory") ||
      pod.end_message.contains("executable file not found")) {
    return kNotFound;
  }
  return std::nullopt;
}

bool is_failed_start(const PodView& pod) {
  return pod.end_reason == "StartError" || pod.end_reason == "ContainerCannotRun" ||
         pod.end_reason == "RunContainerError" || !pod.started_at.is_set();
}

std::string words_of(const PodView& pod) {
  if (pod.end_message.empty()) return pod.end_reason;
  if (pod.end_reason.empty()) return pod.end_message;
  return fmt::format("{}: {}", pod.end_reason, pod.end_message);
}

// The rank whose end is the attempt's: the first that failed, else the last that ended. Kubernetes
// tells whole seconds, so of two in one second the one that was not being deleted was first.
const RankEnd* decisive(std::span<const RankEnd> ranks) {
  const auto time_of = [](const RankEnd& rank) {
    return rank.pod ? rank.pod->finished_at : base::Instant();
  };
  const auto is_deleted = [](const RankEnd& rank) {
    return rank.pod && rank.pod->is_being_deleted;
  };
  const auto is_earlier = [&](const RankEnd& a, const RankEnd& b) {
    return std::pair(is_deleted(a), time_of(a)) < std::pair(is_deleted(b), time_of(b));
  };
  const RankEnd* failed = nullptr;
  const RankEnd* last = nullptr;
  for (const RankEnd& rank : ranks) {
    if (last == nullptr || time_of(rank) > time_of(*last)) last = &rank;
    if (has_failed(rank) && (failed == nullptr || is_earlier(rank, *failed))) failed = &rank;
  }
  return failed != nullptr ? failed : last;
}

void set_lost(Ended& ended, model::Lost lost, EndReason reason, std::string detail) {
  ended.exit = {};
  ended.exit.lost = lost;
  ended.reason = reason;
  ended.detail = std::move(detail);
}

void set_code(Ended& ended, std::int32_t code) {
  ended.exit.code = static_cast<std::uint8_t>(std::clamp(code, 0, 255));
}

void set_not_started(Ended& ended, std::string detail) {
  ended.exit = {};
  ended.reason = EndReason::kLaunchFailed;
  ended.detail = std::move(detail);
}

// Kubernetes took the pod away. A program that ended with 0 nevertheless has done its work.
bool set_disruption(Ended& ended, const PodView& pod) {
  if (pod.exit_code == 0) return false;
  if (pod.disruption == Disruption::kNodeLost) {
    set_lost(ended, model::Lost::kNodeLost, EndReason::kNodeLost, pod.disruption_text);
    return true;
  }
  const bool is_taken = pod.disruption != Disruption::kNone || pod.is_being_deleted;
  if (!is_taken) return false;
  ended.reason = EndReason::kPreempted;
  ended.detail = pod.disruption == Disruption::kNone
                     ? "the pod was deleted in Kubernetes, not by the platform"
                     : pod.disruption_text;
  if (!ended.exit.code) set_code(ended, 128 + 15);
  return true;
}

// It was not stopped by us.
void set_own_end(Ended& ended, const PodView& pod) {
  if (set_disruption(ended, pod)) return;
  if (const auto code = code_of_failed_start(pod)) {
    set_not_started(ended, words_of(pod));
    set_code(ended, *code);
    return;
  }
  if (is_failed_start(pod)) return set_not_started(ended, words_of(pod));
  if (pod.end_reason == "OOMKilled") {
    ended.reason = EndReason::kOutOfMemory;
  } else if (pod.exit_code != 0 && pod.end_reason != "Error") {
    ended.detail = words_of(pod);
  }
}

}  // namespace

bool is_dead(const PodView& pod) {
  return pod.is_over() || (pod.is_being_deleted && pod.node.empty());
}

bool has_failed(const RankEnd& rank) {
  if (rank.vanished) return true;
  if (!rank.pod || !is_dead(*rank.pod)) return false;
  if (!rank.pod->is_over()) return true;
  return rank.pod->phase == PodPhase::kFailed || rank.pod->exit_code.value_or(0) != 0;
}

Ended end_of(model::AttemptId attempt, std::span<const RankEnd> ranks, const EndCause& cause) {
  Ended ended;
  ended.attempt = attempt;
  const RankEnd* rank = decisive(ranks);
  for (const RankEnd& each : ranks) {
    if (each.pod) ended.at = std::max(ended.at, each.pod->finished_at);
  }
  const bool has_run = std::ranges::any_of(
      ranks, [](const RankEnd& each) { return each.pod && each.pod->started_at.is_set(); });
  if (!cause.failed_start.empty()) {
    set_not_started(ended, cause.failed_start);
    return ended;
  }
  if (rank != nullptr && rank->vanished) {
    set_lost(ended, model::Lost::kUnknown, EndReason::kSupervisorLost,
             "the pod is gone from Kubernetes, and with it how it ended");
    return ended;
  }
  if (cause.stop && !has_run) {
    set_not_started(ended, "it was stopped before it had started");
    return ended;
  }
  if (rank == nullptr || !rank->pod) {
    set_lost(ended, model::Lost::kUnknown, EndReason::kSupervisorLost, "there is no pod of it");
    return ended;
  }
  const PodView& pod = *rank->pod;
  if (pod.exit_code) set_code(ended, *pod.exit_code);
  if (!cause.stop) {
    set_own_end(ended, pod);
    return ended;
  }
  ended.reason = cause.stop->reason;
  ended.time_limit = cause.time_limit;
  if (!ended.exit.code) set_code(ended, 128 + 9);
  return ended;
}

}  // namespace gpu_platform::execution
