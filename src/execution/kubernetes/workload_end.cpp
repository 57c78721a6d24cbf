#include "execution/kubernetes/workload_end.h"

#include <algorithm>
#include <vector>

namespace gpu_platform::execution {

namespace {

bool ended_by_itself(const RankEnd& rank) {
  return rank.pod && rank.pod->is_over() && !rank.pod->is_being_deleted;
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
                      const EndCause& cause) {
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
  if (!own.empty()) return end_of(attempt, own, {});
  const auto deleted =
      those(ranks, [](const RankEnd& rank) { return rank.pod && rank.pod->is_being_deleted; });
  return end_of(attempt, deleted.empty() ? std::vector(ranks.begin(), ranks.end()) : deleted, {});
}

}  // namespace gpu_platform::execution
