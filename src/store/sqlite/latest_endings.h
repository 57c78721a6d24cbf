#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <shared_mutex>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::store {

// Says where, in the order of ids, the jobs are that ended at or after some time. A list shows jobs
// by id and filters by time; no index serves both, and so a page would cost a look at all jobs of
// the time that is asked for. This keeps the latest ending of each few jobs with neighbouring ids
// (half a byte of memory for each job) and passes over the others.
//
// It may name jobs that ended earlier, or that left the archive; it never leaves one out that was
// noted. Any thread.
class LatestEndings {
 public:
  // Ids first to last.
  struct Range {
    model::JobId first;
    model::JobId last;
  };
  static constexpr std::uint64_t kMaxRange = 8192;  // ids

  // To be called before the job can be read.
  void note(model::JobId job, base::Instant ended_at);

  // Every job of the archive has been noted.
  void set_complete() { is_complete_.store(true, std::memory_order_release); }
  // Until then, and with ids that are too large to be kept, below() may leave jobs out.
  bool is_complete() const {
    return is_complete_.load(std::memory_order_acquire) && !is_too_large_;
  }

  // Returns the highest ids below `before` (invalid: all) where jobs may have ended at or after
  // `since`, at most kMaxRange of them.
  std::optional<Range> below(model::JobId before, base::Instant since) const;

 private:
  // Larger: less memory, and more rows that are read in vain.
  static constexpr std::uint64_t kBlock = 16;
  // Ids beyond it are not kept: 1 GiB of memory would not be worth it.
  static constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 27;

  mutable std::shared_mutex mutex_;             // for the number of blocks
  std::deque<std::atomic<std::int64_t>> ends_;  // by block
  std::atomic<bool> is_complete_ = false;
  std::atomic<bool> is_too_large_ = false;
};

}  // namespace gpu_platform::store
