#include "execution/kubernetes/workloads/end.h"

#include <algorithm>
#include <vector>

#include "execution/kubernetes/workloads/port.h"

namespace gpu_platform::execution {

namespace {

bool ended_by_itself(const RankEnd& rank) {
  return rank.pod && rank.pod->is_over() && !rank.pod->is_being_deleted;
}

// A program that ended with 0 has done its work, also if it was told to end.
bool is_done(const RankEnd& rank) {
  return rank.pod && rank.pod->is_over() && rank.pod->exit_code == 0;
}

template <class Which>
std::vector<RankEnd> those(std::span<const RankEnd> ranks, const Which& which) {
  std::vector<RankEnd> some;
  std::ranges::copy_if(ranks, std::back_inserter(some), which);
  return some;
}

}  // namespace

bool is_disrupted(const PodView& pod) {
  return pod.disruption != Disruption::kNone && pod.exit_code.value_or(1) != 0;
}

Ended end_of_workload(model::AttemptId attempt, std::span<const RankEnd> ranks,
                      const EndCause& cause, std::optional<OwnerEnd> owner) {
  if (!cause.failed_start.empty()) {
    Ended ended;
    ended.attempt = attempt;
    ended.reason = model::EndReason::kPreempted;
    ended.detail = cause.failed_start;
    return ended;
  }
  if (cause.stop) return end_of(attempt, ranks, cause);
  const auto taken =
      those(ranks, [](const RankEnd& rank) { return rank.pod && is_disrupted(*rank.pod); });
  if (!taken.empty()) return end_of(attempt, taken, {});
  const auto own = those(ranks, ended_by_itself);
  const auto unfinished =
      those(ranks, [](const RankEnd& rank) { return !ended_by_itself(rank) && !is_done(rank); });
  const bool takes_pods = owner == OwnerEnd::kDeleted || owner == OwnerEnd::kSuspended;
  if (takes_pods && !unfinished.empty() && std::ranges::none_of(own, has_failed)) {
    Ended ended = end_of(attempt, unfinished, {});
    ended.reason = model::EndReason::kCancelledBy;
    ended.detail = owner == OwnerEnd::kDeleted ? kWorkloadDeleted : kWorkloadSuspended;
    return ended;
  }
  if (!own.empty()) return end_of(attempt, own, {});
  if (owner == OwnerEnd::kSucceeded) {
    Ended ended = end_of(attempt, ranks, {});
    ended.exit = {};
    ended.exit.code = std::uint8_t{0};
    ended.reason = model::EndReason::kNone;
    ended.detail.clear();
    return ended;
  }
  const auto deleted =
      those(ranks, [](const RankEnd& rank) { return rank.pod && rank.pod->is_being_deleted; });
  return end_of(attempt, deleted.empty() ? std::vector(ranks.begin(), ranks.end()) : deleted, {});
}

}  // namespace gpu_platform::execution
