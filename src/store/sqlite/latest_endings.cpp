#include "store/sqlite/latest_endings.h"

#include <algorithm>
#include <mutex>

namespace gpu_platform::store {

void LatestEndings::note(model::JobId job, base::Instant ended_at) {
  const std::uint64_t block = job.value / kBlock;
  if (block >= kMaxBlocks) {
    is_too_large_.store(true);
    return;
  }
  for (;;) {
    {
      const std::shared_lock lock(mutex_);
      if (block < ends_.size()) {
        std::atomic<std::int64_t>& end = ends_[block];
        std::int64_t known = end.load();
        while (known < ended_at.unix_ns() &&
               !end.compare_exchange_weak(known, ended_at.unix_ns())) {
        }
        return;
      }
    }
    const std::unique_lock lock(mutex_);
    while (ends_.size() <= block) ends_.emplace_back(0);
  }
}

std::optional<LatestEndings::Range> LatestEndings::below(model::JobId before,
                                                         base::Instant since) const {
  const std::shared_lock lock(mutex_);
  const auto is_late = [&](std::uint64_t block) { return ends_[block].load() >= since.unix_ns(); };
  std::uint64_t behind = ends_.size() * kBlock;  // the last id
  if (before.valid()) behind = std::min(behind, before.value);
  if (behind <= 1) return std::nullopt;  // ids begin with 1
  std::uint64_t block = (behind - 1) / kBlock;
  while (!is_late(block)) {
    if (block == 0) return std::nullopt;
    --block;
  }
  const std::uint64_t top = std::min(behind, (block + 1) * kBlock) - 1;
  std::uint64_t first = block;
  while (first > 0 && (block - first + 1) * kBlock < kMaxRange && is_late(first - 1)) --first;
  return Range{model::JobId(std::max<std::uint64_t>(first * kBlock, 1)), model::JobId(top)};
}

}  // namespace gpu_platform::store
