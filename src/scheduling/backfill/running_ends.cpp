#include "scheduling/backfill/running_ends.h"

#include <utility>

namespace gpu_platform::scheduling {

void RunningEnds::put(model::AttemptId attempt, base::Instant end,
                      const model::Allocation& allocation) {
  const auto [known, is_new] = end_of_.try_emplace(attempt, end);
  if (is_new) {
    ends_.emplace(Key{end, attempt}, allocation);
  } else {
    if (known->second == end) return;
    auto element = ends_.extract(Key{known->second, attempt});
    element.key().end = end;
    ends_.insert(std::move(element));
    known->second = end;
  }
  ++version_;
}

void RunningEnds::erase(model::AttemptId attempt) {
  const auto known = end_of_.find(attempt);
  if (known == end_of_.end()) return;
  ends_.erase(Key{known->second, attempt});
  end_of_.erase(known);
  ++version_;
}

}  // namespace gpu_platform::scheduling
