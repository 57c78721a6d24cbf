#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "telemetry/history/rows.h"

namespace gpu_platform::telemetry {

// How much of the history stays.
struct HistoryBounds {
  base::Bytes max_bytes = base::kGiB;
  base::Duration keep_samples = base::hours(48);
  base::Duration keep_minutes = base::hours(24 * 30);
  base::Duration keep_quarters = base::hours(24 * 730);
};

// Keeps the history's file in order: makes minutes and quarters of samples, makes one row of the
// pieces of a span, removes what is old, and the oldest where the file has become too large: of
// summaries of jobs that take more than a quarter of it, then of samples, of minutes, of quarters.
// One thread; a failed step changes nothing and may be taken again.
class Upkeep {
 public:
  // Refers to the rows, which outlive it.
  Upkeep(HistoryRows& rows, const HistoryBounds& bounds) : rows_(rows), bounds_(bounds) {}

  // A turn has steps of bounded length: begin(), then step() until it returns false. `now` is the
  // wall clock.
  base::Status begin(base::Instant now);
  base::Result<bool> step();

 private:
  base::Result<bool> settle_some();
  base::Result<bool> remove_old();
  base::Result<bool> keep_bound();
  base::Result<bool> evict_summaries(std::uint64_t allowed);
  base::Result<bool> evict_some(Tier tier);
  base::Status settle(const SpanKey& key);
  base::Status roll(const SpanKey& key, const std::vector<BlockRow>& rows);
  base::Status merge(const SpanKey& key, const std::vector<BlockRow>& rows);
  base::Duration keep_of(Tier tier) const;

  HistoryRows& rows_;
  const HistoryBounds bounds_;
  base::Instant over_;     // spans that end by then have all that will come in time
  base::Instant trusted_;  // the time by which things are old
  bool has_removed_ = false;
  bool is_evicting_ = false;
};

}  // namespace gpu_platform::telemetry
