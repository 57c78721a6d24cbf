#include "telemetry/history/upkeep.h"

#include <algorithm>
#include <utility>

#include "telemetry/history/pieces.h"
#include "telemetry/history/rolled_blocks.h"
#include "telemetry/history/schema.h"
#include "telemetry/spread_sums.h"

namespace gpu_platform::telemetry {

namespace {

constexpr Tier kTiers[] = {Tier::kRaw, Tier::kMinute, Tier::kQuarterHour};
// Of a step: an hour of samples of a GPU takes about ten milliseconds.
constexpr std::size_t kMaxSpans = 16;
constexpr std::size_t kMaxRemoved = 500;
// To find them, all names are looked at.
constexpr std::size_t kMaxSummaries = 2'000;
// Of one row of samples, and of points, which are larger.
constexpr std::size_t kMaxSamples = kMaxBlockTimes;
constexpr std::size_t kMaxPoints = 2'000;
// Readings of the end of a span come within that time.
constexpr base::Duration kGrace = base::minutes(2);
// A clock that is wrong for a while must not cost what is kept: in a turn, which is a minute,
// things become older by so much at most.
constexpr base::Duration kMaxAging = base::hours(1);

}  // namespace

base::Duration Upkeep::keep_of(Tier tier) const {
  switch (tier) {
    case Tier::kRaw:
      return bounds_.keep_samples;
    case Tier::kMinute:
      return bounds_.keep_minutes;
    case Tier::kQuarterHour:
      break;
  }
  return bounds_.keep_quarters;
}

base::Status Upkeep::begin(base::Instant now) {
  if (!trusted_.is_set()) {
    TRY_ASSIGN(const std::optional<base::Instant> newest, rows_.newest_span(Tier::kRaw));
    trusted_ = newest ? believed(*newest) : now;
  }
  trusted_ = std::min(now, trusted_ + kMaxAging);
  over_ = now + kGrace * -1;
  has_removed_ = false;
  return {};
}

base::Result<bool> Upkeep::step() {
  TRY_ASSIGN(const bool has_settled, settle_some());
  if (has_settled) return true;
  TRY_ASSIGN(const bool has_removed, remove_old());
  if (has_removed) return true;
  return keep_bound();
}

base::Result<bool> Upkeep::settle_some() {
  for (const Tier tier : kTiers) {
    TRY_ASSIGN(const std::vector<SpanKey> keys,
               rows_.with_pieces(tier, over_ + span_of(tier) * -1, kMaxSpans));
    if (keys.empty()) continue;
    const base::Status status = rows_.database().transaction([&]() -> base::Status {
      for (const SpanKey& key : keys) TRY(settle(key));
      return {};
    });
    if (!status) rows_.forget();
    TRY(status);
    return true;
  }
  return false;
}

// Puts what the pieces of a span have into the points, and makes them one row.
base::Status Upkeep::settle(const SpanKey& key) {
  const std::uint64_t damaged = rows_.damaged_rows();
  TRY_ASSIGN(const std::vector<BlockRow> rows, rows_.rows_of(key));
  if (std::ranges::none_of(rows, &BlockRow::is_piece) && rows_.damaged_rows() == damaged) {
    return base::fail(base::ErrorCode::kDataLoss, "an index names pieces that are none");
  }
  if (key.tier == Tier::kRaw) TRY(roll(key, rows));
  return merge(key, rows);
}

base::Status Upkeep::roll(const SpanKey& key, const std::vector<BlockRow>& rows) {
  std::vector<Block> pieces;
  for (const BlockRow& row : rows) {
    if (row.is_piece) pieces.push_back(row.block);
  }
  if (pieces.empty()) return {};
  TRY_ASSIGN(const Subject subject, rows_.subject(key.subject));
  TRY_ASSIGN(std::vector<Value> counters, rows_.counters(key.subject, subject.of));
  const RolledBlocks rolled = roll_up(subject.of, joined(pieces), counters);
  for (const Block* const block : {&rolled.minutes, &rolled.quarters}) {
    const base::Instant span = floor_to(key.span, span_of(block->tier));
    TRY(rows_.add({key.subject, block->tier, span}, *block, true));
  }
  return counters.empty() ? base::Status() : rows_.set_counters(key.subject, counters);
}

base::Status Upkeep::merge(const SpanKey& key, const std::vector<BlockRow>& rows) {
  const std::size_t max_times = key.tier == Tier::kRaw ? kMaxSamples : kMaxPoints;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::vector<Block> blocks;
    std::size_t times = 0;
    std::size_t end = begin;
    while (end < rows.size() &&
           (end == begin || times + rows[end].block.times.size() <= max_times)) {
      times += rows[end].block.times.size();
      remove_sums(blocks.emplace_back(rows[end++].block));
    }
    if (blocks.size() == 1) {
      TRY(rows_.set_whole(rows[begin].id));
    } else {
      Block all = joined(blocks);
      add_sums(all);
      TRY(rows_.add(key, all, false));
      for (std::size_t i = begin; i < end; ++i) TRY(rows_.remove(rows[i].id));
    }
    begin = end;
  }
  return {};
}

base::Result<bool> Upkeep::remove_old() {
  for (const Tier tier : kTiers) {
    const base::Instant begins = trusted_ + (keep_of(tier) + span_of(tier)) * -1;
    TRY_ASSIGN(const std::uint64_t count, rows_.remove_until(tier, begins, kMaxRemoved));
    if (count == 0) continue;
    has_removed_ = true;
    return true;
  }
  if (!std::exchange(has_removed_, false)) return false;
  // Uses of a GPU are of one attempt, so that old subjects would become many.
  TRY(rows_.remove_empty_subjects());
  return true;
}

// The file may have seven eighths of what is allowed, its log the rest.
base::Result<bool> Upkeep::keep_bound() {
  TRY_ASSIGN(const FileSize size, rows_.size());
  const auto max = static_cast<std::uint64_t>(bounds_.max_bytes.value());
  const std::uint64_t allowed = max - max / 8;
  if (size.used > allowed) is_evicting_ = true;
  if (size.used <= allowed - allowed / 16) is_evicting_ = false;
  if (is_evicting_) {
    TRY_ASSIGN(const bool has_evicted_summaries, evict_summaries(allowed / 4));
    if (has_evicted_summaries) return true;
    for (const Tier tier : kTiers) {
      TRY_ASSIGN(const bool has_evicted, evict_some(tier));
      if (has_evicted) return true;
    }
    is_evicting_ = false;  // what is left are notes
  }
  TRY(rows_.shrink(allowed));
  return false;
}

// Without this, the summaries of many jobs would take the room of all else. A part more than the
// excess goes, so that this is seldom due.
base::Result<bool> Upkeep::evict_summaries(std::uint64_t allowed) {
  TRY_ASSIGN(const std::uint64_t bytes, rows_.note_bytes());
  if (bytes <= allowed) return false;
  std::size_t count = 0;
  const base::Status status = rows_.database().transaction([&]() -> base::Status {
    TRY_ASSIGN(count,
               rows_.remove_oldest_summaries(bytes - (allowed - allowed / 8), kMaxSummaries));
    return {};
  });
  if (!status) rows_.forget();
  TRY(status);
  return count > 0;
}

// The samples of an hour that is not over yet are in no point, so they are put there first.
base::Result<bool> Upkeep::evict_some(Tier tier) {
  TRY_ASSIGN(const std::vector<SpanKey> keys, rows_.oldest(tier, kMaxSpans));
  if (keys.empty()) return false;
  const base::Status status = rows_.database().transaction([&]() -> base::Status {
    for (const SpanKey& key : keys) {
      if (tier != Tier::kRaw) {
        TRY(rows_.remove_span(key));
        continue;
      }
      TRY_ASSIGN(const std::vector<BlockRow> rows, rows_.rows_of(key));
      TRY(roll(key, rows));
      for (const BlockRow& row : rows) TRY(rows_.remove(row.id));
    }
    return {};
  });
  if (!status) rows_.forget();
  TRY(status);
  return true;
}

}  // namespace gpu_platform::telemetry
