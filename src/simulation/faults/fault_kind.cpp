#include "simulation/faults/fault_kind.h"

namespace gpu_platform::simulation {

namespace {

constexpr std::array<std::string_view, kFaultKinds> kFaultNames = {
    "crash_idle",
    "crash_before_commit",
    "crash_commit_lost",
    "crash_commit_unheard",
    "crash_before_publish",
    "crash_before_acknowledge",
    "crash_before_dispatch",
    "crash_in_dispatch",
    "crash_in_recovery",
    "snapshot_damaged",
    "disk_full",
    "order_lost",
    "order_late",
    "order_repeated",
    "news_lost",
    "news_late",
    "news_repeated",
    "node_unreachable",
    "node_returned",
    "node_rebooted",
    "gpu_missing",
    "node_shrunk",
    "launch_failed",
    "supervisor_lost",
    "clock_forward",
    "clock_back",
    "drained",
    "taken_offline",
    "unmanaged_processes",
    "held",
    "requeued",
    "updated",
    "bulk",
    "prolog_failed",
    "epilog_failed",
    "preempted",
    "array",
    "dependent",
    "put_off",
    "deadline",
    "reserved",
    "unreserved",
    "reservation_passed",
    "in_reservation",
    "reclaimed",
    "wait_timeout",
    "trusted",
    "yielded",
    "yield_put_off",
    "requeue_crossed",
    "cancel_crossed",
    "zero_completed",
    "limit_crossed",
    "stopped_for_overdue",
    "reservation_repeated",
    "reservation_changed",
    "stopped_in_turn",
    "raised",
    "signalled",
    "step_recorded",
    "token_made",
    "token_revoked",
    "token_expired",
    "team_set",
    "team_removed",
    "evicted",
    "others_came",
    "service_changed",
    "gpu_unavailable",
    "call_lost",
    "answer_lost",
    "call_refused",
    "watch_repeated",
    "watch_reordered",
    "watch_expired",
    "pod_evicted",
    "pod_node_replaced",
    "gpu_silent",
    "gpu_faulty",
    "xid_storm",
    "gpu_lost",
    "gpu_moved",
    "gpu_hot",
    "evidence_late",
    "reset_ordered",
    "reset_failed",
    "shared_gpu",
    "gpu_checked",
    "check_failed",
    "gpu_unfit",
    "check_refused",
    "stopped_in_check",
    "mps_fault",
};

constexpr std::array<std::string_view, kPlants> kPlantNames = {
    "none",           "double-start",       "leaked-gpu",
    "lost-job",       "effect-before-sync", "half-gang",
    "late-news",      "forgotten-cancel",   "early-answer",
    "early-free",     "lost-requeue",       "forgotten-requeue",
    "unsaid-limit",   "forgotten-caller",   "early-finalizer",
    "early-claim",    "renamed-start",      "late-list",
    "unreleased-pod", "unsaid-unfit",
};

}  // namespace

std::string_view to_string(FaultKind kind) {
  return kFaultNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Plant plant) {
  return kPlantNames[static_cast<std::size_t>(plant)];
}

std::optional<Plant> parse_plant(std::string_view name) {
  for (std::size_t i = 0; i < kPlants; ++i) {
    if (kPlantNames[i] == name) return static_cast<Plant>(i);
  }
  return std::nullopt;
}

}  // namespace gpu_platform::simulation
