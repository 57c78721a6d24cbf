#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "telemetry/points.h"

// The compressed form of an hour or a day (or less) of one subject: one column of times and one
// column of each metric. Lossless, deterministic, and checked: a damaged block is an error, never a
// wrong value, and never costs memory beyond a bound.

namespace gpu_platform::telemetry {

// The values of one metric in a block, in the order of the block's times.
struct Column {
  std::string metric;                 // its name
  std::vector<std::uint32_t> places;  // of its values among the times; empty: all of them
  std::vector<std::int64_t> values;   // of kRaw: the samples
  // Of the other tiers, beside `values`, which are the sums:
  std::vector<std::int64_t> min;
  std::vector<std::int64_t> max;
  std::vector<std::int64_t> count;
  std::vector<Distribution> spread;  // of kQuarterHour and metrics that have one; else empty

  friend bool operator==(const Column&, const Column&) = default;
};

struct Block {
  Tier tier = Tier::kRaw;
  std::vector<base::Instant> times;  // in the order in which they came
  std::vector<Column> columns;

  friend bool operator==(const Block&, const Block&) = default;
};

inline constexpr std::size_t kMaxBlockTimes = 100'000;
inline constexpr std::size_t kMaxBlockColumns = 1'000;
// Bounds the memory of a decoded block. A sample counts as one, a point as four, a distribution as
// eight for each of its buckets.
inline constexpr std::size_t kMaxBlockNumbers = 16'000'000;

// The block keeps the bounds; columns have as many of each as they have values, places ascend.
std::string encode_block(const Block& block);
// What is decoded of a block.
struct WantedColumns {
  std::span<const std::string_view> metrics = {};  // empty: all
  bool wants_spread = true;                        // the distributions take longer than all else
};
// kDataLoss: the bytes are no block.
base::Result<Block> decode_block(std::string_view bytes, const WantedColumns& wanted = {});

}  // namespace gpu_platform::telemetry
