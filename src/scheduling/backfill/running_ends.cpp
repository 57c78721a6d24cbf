#include "scheduling/backfill/running_ends.h"

#include <utility>

namespace gpu_platform::scheduling {

bool RunningEnds::put(model::AttemptId attempt, base::Instant end,
                      const model::Allocation& allocation, bool yields) {
  const auto [known, is_new] = end_of_.try_emplace(attempt, end);
  const Key before{known->second, attempt};
  const Key key{end, attempt};
  const bool yielded = yielding_.contains(before);
  if (!is_new && before == key && yielded == yields) return false;
  if (yielded) yielding_.erase(before);
  if (yields) yielding_.insert(key);
  if (is_new) {
    ends_.emplace(key, allocation);
  } else if (before != key) {
    auto element = ends_.extract(before);
    element.key() = key;
    ends_.insert(std::move(element));
    known->second = end;
  }
  return true;
}

bool RunningEnds::erase(model::AttemptId attempt) {
  const auto known = end_of_.find(attempt);
  if (known == end_of_.end()) return false;
  const Key key{known->second, attempt};
  ends_.erase(key);
  yielding_.erase(key);
  end_of_.erase(known);
  return true;
}

}  // namespace gpu_platform::scheduling
