#include "telemetry/history/pieces.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpu_platform::telemetry {
namespace {

// A quarter of an hour of which all samples are this value.
Block quarter(int number, std::int64_t value, bool has_spread) {
  Column column{.metric = "m", .values = {3 * value}, .min = {value}, .max = {value}, .count = {3}};
  if (has_spread) column.spread.emplace_back().add(value, 3);
  return {.tier = Tier::kQuarterHour,
          .times = {base::Instant() + base::minutes(15 * number)},
          .columns = {column}};
}

// Another version of the program may keep distributions of other metrics.
TEST(Pieces, PointsWithAndWithoutDistributionsAreJoined) {
  const std::vector<Block> blocks = {quarter(0, 5, false), quarter(1, 6, true),
                                     quarter(2, 7, false)};
  const Block all = joined(blocks);
  ASSERT_EQ(all.columns.size(), 1u);
  const std::vector<Distribution>& spread = all.columns[0].spread;
  ASSERT_EQ(spread.size(), 3u);
  EXPECT_EQ(spread[0].count(), 0u);
  EXPECT_EQ(spread[1].percentile(0.5), 6);
  EXPECT_EQ(spread[2].count(), 0u);
  const auto decoded = decode_block(encode_block(all));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, all);
}

TEST(Pieces, PointsWithoutDistributionsStayWithout) {
  const std::vector<Block> blocks = {quarter(0, 5, false), quarter(1, 6, false)};
  EXPECT_TRUE(joined(blocks).columns.at(0).spread.empty());
}

}  // namespace
}  // namespace gpu_platform::telemetry
