#include "telemetry/spread_sums.h"

#include <gtest/gtest.h>

namespace gpu_platform::telemetry {
namespace {

// Two quarters of an hour, of 10 and 20, and 30 and 30.
Block two_quarters() {
  Block block{.tier = Tier::kQuarterHour, .times = {}, .columns = {}};
  for (int i = 0; i < 2; ++i) block.times.push_back(base::Instant() + base::minutes(15 * i));
  Column column{
      .metric = "m", .values = {30, 60}, .min = {10, 30}, .max = {20, 30}, .count = {2, 2}};
  column.spread.resize(2);
  column.spread[0].add(10);
  column.spread[0].add(20);
  column.spread[1].add(30, 2);
  block.columns = {
      column, {.metric = "none", .values = {1, 1}, .min = {1, 1}, .max = {1, 1}, .count = {1, 1}}};
  return block;
}

TEST(SpreadSums, AreOneMorePointOfEachMetricWithDistributions) {
  Block block = two_quarters();
  add_sums(block);
  ASSERT_EQ(block.columns.size(), 3u);
  Column expected{.metric = name_of_sum("m"),
                  .places = {0},
                  .values = {90},
                  .min = {10},
                  .max = {30},
                  .count = {4}};
  Distribution& spread = expected.spread.emplace_back();
  for (const int value : {10, 20, 30, 30}) spread.add(value);
  EXPECT_EQ(block.columns.back(), expected);
  EXPECT_EQ(decode_block(encode_block(block)).value(), block);
  remove_sums(block);
  EXPECT_EQ(block, two_quarters());
}

TEST(SpreadSums, AreNotThereIfAQuarterHasNoDistribution) {
  Block block = two_quarters();
  block.columns[0].spread[1] = {};
  const Block before = block;
  add_sums(block);
  EXPECT_EQ(block, before);
}

}  // namespace
}  // namespace gpu_platform::telemetry
