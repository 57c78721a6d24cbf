#include "telemetry/block.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"

namespace gpu_platform::telemetry {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kBegin = 1'760'000'400'000'000'000;

using Random = base::Prng;
using Numbers = std::vector<std::int64_t>;

std::int64_t between(Random& random, std::int64_t least, std::int64_t greatest) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(greatest - least) + 1));
}

// One of the ways in which readings go.
Numbers series(Random& random, std::size_t size) {
  Numbers values(size);
  const std::uint64_t way = random.below(9);
  const std::int64_t level = between(random, 0, 700'000);
  const std::int64_t unit = random.chance(1, 2) ? 1 : std::int64_t{2} << 20;
  std::int64_t last = level;
  for (std::int64_t& value : values) {
    switch (way) {
      case 0:  // constant
        value = level;
        break;
      case 1:  // noise
        value = level + between(random, -20, 20) * unit;
        break;
      case 2:  // a walk
        value = last += between(random, -3, 3);
        break;
      case 3:  // a counter
        value = last += between(random, 1'000'000, 1'001'000);
        break;
      case 4:  // seldom changes
        if (random.chance(1, 50)) last = between(random, 0, 100);
        value = last;
        break;
      case 5:  // steps
        if (random.chance(1, 30)) last = between(random, 0, 1) * 1'410;
        value = last;
        break;
      case 6:  // spikes
        value = random.chance(1, 40) ? static_cast<std::int64_t>(random.next()) : level;
        break;
      case 7:  // the ends of the range
        value = random.chance(1, 2) ? kMin : kMax;
        break;
      default:  // anything
        value = static_cast<std::int64_t>(random.next()) >> random.below(64);
    }
  }
  return values;
}

std::vector<base::Instant> times_of(Random& random, std::size_t size) {
  std::vector<base::Instant> times;
  std::int64_t at = random.chance(1, 10) ? kMin : kBegin;
  const bool is_exact = random.chance(1, 2);
  for (std::size_t i = 0; i < size; ++i) {
    times.emplace_back(at);
    at += 1'000'000'000;
    if (!is_exact) at += between(random, -2'000'000, 2'000'000);
    if (random.chance(1, 100)) at += between(random, -7'200'000'000'000, 7'200'000'000'000);
  }
  return times;
}

// Places of about one in `each` of the times, one at least.
std::vector<std::uint32_t> places_of(Random& random, std::size_t times, std::uint64_t each) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < times; ++place) {
    if (random.chance(1, each)) places.push_back(place);
  }
  if (places.empty()) places.push_back(static_cast<std::uint32_t>(times - 1));
  return places;
}

// Points as samples make them.
void add_real_points(Random& random, bool is_counter, bool has_spread, std::size_t size,
                     Column& column) {
  std::int64_t last = between(random, 0, 1'000'000);
  for (std::size_t i = 0; i < size; ++i) {
    const Numbers samples = series(random, 1 + random.below(60));
    std::int64_t sum = 0;
    Distribution spread;
    for (const std::int64_t sample : samples) {
      sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                      static_cast<std::uint64_t>(sample));
      spread.add(sample);
    }
    const std::int64_t grown = between(random, 0, 5'000'000);
    column.values.push_back(is_counter ? grown : sum);
    column.min.push_back(is_counter ? last : *std::ranges::min_element(samples));
    column.max.push_back(is_counter ? last + grown : *std::ranges::max_element(samples));
    column.count.push_back(static_cast<std::int64_t>(samples.size()));
    last += grown;
    if (has_spread) column.spread.push_back(spread);
  }
}

void add_any_points(Random& random, std::size_t size, Column& column) {
  column.values = series(random, size);
  column.min = series(random, size);
  column.max = series(random, size);
  column.count = series(random, size);
  if (random.chance(1, 2)) return;
  column.spread.resize(size);
  for (Distribution& spread : column.spread) {
    for (std::uint64_t left = random.below(4); left > 0; --left) {
      spread.add(static_cast<std::int64_t>(random.next()), random.below(1'000));
    }
  }
}

Block any_block(Random& random) {
  Block block;
  block.tier = static_cast<Tier>(random.below(3));
  block.times = times_of(random, random.below(400));
  for (std::uint64_t left = random.below(6); left > 0; --left) {
    Column column;
    column.metric = "metric_" + std::to_string(left);
    std::size_t size = block.times.size();
    if (size > 0 && random.chance(1, 3)) {
      column.places = places_of(random, size, 1 + random.below(40));
      size = column.places.size();
    }
    if (block.tier == Tier::kRaw) {
      column.values = series(random, size);
    } else if (random.chance(1, 3)) {
      add_any_points(random, size, column);
    } else {
      const bool is_counter = random.chance(1, 2);
      add_real_points(random, is_counter, !is_counter && random.chance(1, 2), size, column);
    }
    block.columns.push_back(std::move(column));
  }
  return block;
}

Random drawn() {
  return Random(*rc::gen::arbitrary<std::uint64_t>());
}

TEST(BlockProperty, ComesBackAsItWas) {
  EXPECT_TRUE(rc::check([] {
    Random random = drawn();
    const Block block = any_block(random);
    const std::string bytes = encode_block(block);
    const auto decoded = decode_block(bytes);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == block);
    RC_ASSERT(encode_block(*decoded) == bytes);
  }));
}

TEST(BlockProperty, AColumnComesBackWithoutTheOthers) {
  EXPECT_TRUE(rc::check([] {
    Random random = drawn();
    const Block block = any_block(random);
    const std::string bytes = encode_block(block);
    for (const Column& column : block.columns) {
      const std::string_view names[] = {column.metric};
      const auto decoded = decode_block(bytes, {.metrics = names});
      RC_ASSERT(decoded.has_value());
      RC_ASSERT(decoded->columns == std::vector{column});
      RC_ASSERT(decoded->times == block.times);
    }
  }));
}

TEST(BlockProperty, PointsComeBackWithoutTheirDistributions) {
  EXPECT_TRUE(rc::check([] {
    Random random = drawn();
    Block block = any_block(random);
    const auto decoded = decode_block(encode_block(block), {.wants_spread = false});
    for (Column& column : block.columns) column.spread.clear();
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == block);
  }));
}

TEST(BlockProperty, EachTruncationAndEachFlipIsNoticed) {
  EXPECT_TRUE(rc::check([] {
    Random random = drawn();
    const std::string bytes = encode_block(any_block(random));
    for (std::size_t tries = 0; tries < 40; ++tries) {
      RC_ASSERT(!decode_block(std::string_view(bytes).substr(0, random.below(bytes.size()))));
      std::string flipped = bytes;
      flipped[random.below(bytes.size())] ^= static_cast<char>(1U << random.below(8));
      RC_ASSERT(!decode_block(flipped));
    }
  }));
}

// The hash keeps damage out; behind it the reader has to stay within bounds, too.
TEST(BlockProperty, BytesWithARightHashAreABlockOrAnError) {
  EXPECT_TRUE(rc::check([] {
    Random random = drawn();
    std::string bytes = encode_block(any_block(random));
    bytes.resize(bytes.size() - 8);
    for (std::uint64_t flips = 1 + random.below(6); flips > 0; --flips) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    std::uint64_t hash = base::hash64(bytes);
    for (int i = 0; i < 8; ++i, hash >>= 8) bytes.push_back(static_cast<char>(hash));
    const auto decoded = decode_block(bytes);
    if (!decoded) return;
    const auto again = decode_block(encode_block(*decoded));
    RC_ASSERT(again.has_value() && *again == *decoded);
  }));
}

TEST(Block, OfNothingIsABlock) {
  EXPECT_EQ(decode_block(encode_block({})).value(), Block());
  const Block no_times{.tier = Tier::kMinute, .times = {}, .columns = {{.metric = "a"}}};
  EXPECT_EQ(decode_block(encode_block(no_times)).value(), no_times);
}

TEST(Block, SaysThatOtherBytesAreNone) {
  for (const std::string bytes : {"", "x", "not a block of the history at all"}) {
    const auto decoded = decode_block(bytes);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_EQ(decoded.error().code, base::ErrorCode::kDataLoss);
  }
}

TEST(Block, AConstantMetricCostsItsNameAndFewBytes) {
  Block block;
  for (int i = 0; i < 3'600; ++i) block.times.emplace_back(kBegin + i * 1'000'000'000LL);
  const std::size_t empty = encode_block(block).size();
  block.columns.push_back(
      {.metric = "memory_total_bytes", .values = Numbers(3'600, 143'771LL << 20)});
  EXPECT_LE(encode_block(block).size(), empty + block.columns[0].metric.size() + 16);
}

TEST(Block, StepsOfAUnitCostNoMoreThanStepsOfOne) {
  Random random(5);
  Block small;
  Block large;
  Numbers steps(3'600);
  for (std::int64_t& step : steps) step = between(random, 0, 15);
  small.times = large.times = times_of(random, steps.size());
  small.columns = {{.metric = "m", .values = steps}};
  for (std::int64_t& step : steps) step *= 2 << 20;
  large.columns = {{.metric = "m", .values = steps}};
  EXPECT_LE(encode_block(large).size(), encode_block(small).size() + 8);
}

// What is written today is read by later versions: these bytes never change.
TEST(Block, HasTheseBytesForEver) {
  Block block{.tier = Tier::kQuarterHour, .times = {}, .columns = {}};
  for (int i = 0; i < 3; ++i) block.times.emplace_back(kBegin + i * 900'000'000'000LL);
  Column column{.metric = "utilization_percent", .places = {0, 2}};
  for (const std::int64_t value : {90, 95}) {
    Distribution spread;
    spread.add(value, 10);
    spread.add(0, 2);
    column.values.push_back(value * 10);
    column.min.push_back(0);
    column.max.push_back(value);
    column.count.push_back(12);
    column.spread.push_back(spread);
  }
  block.columns = {column,
                   {.metric = "temperature_c",
                    .values = {30, 31, 29},
                    .min = {1, 1, 1},
                    .max = {30, 31, 29},
                    .count = {1, 1, 1}}};
  const std::string bytes = encode_block(block);
  EXPECT_EQ(decode_block(bytes).value(), block);
  EXPECT_EQ(base::hash64(bytes), 13'645'705'563'375'562'907U);
}

}  // namespace
}  // namespace gpu_platform::telemetry
