#include "scheduling/placement/subset_table.h"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduling/node_shape.h"
#include "scheduling/testing/boards.h"

namespace gpu_platform::scheduling {
namespace {

TEST(SubsetTable, GivesWhatTheChooserGivesOnFirstAndLaterUse) {
  const SubsetTable table(layout_of(shape_of(v100x8(1))));
  for (int round = 0; round < 2; ++round) {
    for (GpuMask eligible = 1; eligible < 256; ++eligible) {
      ASSERT_EQ(table.reach(eligible), table.chooser().reach(eligible));
      const auto most = static_cast<std::uint32_t>(std::popcount(eligible));
      for (std::uint32_t count = 1; count <= most; ++count) {
        ASSERT_EQ(table.best(eligible, count), table.chooser().best(eligible, count));
      }
    }
  }
}

// More sets than entries: those that share one take turns and stay right.
TEST(SubsetTable, StaysRightWhereLargeNodesShareEntries) {
  const SubsetTable table(
      layout_of(shape_of(node(1).gpus(20, "X", base::kGiB, 10).sockets({0, 1}))));
  base::Prng random(1);
  for (int i = 0; i < 20'000; ++i) {
    const GpuMask eligible = 1 + random.below((1U << 20) - 1);
    const auto count = static_cast<std::uint32_t>(
        1 + random.below(
                std::min<std::uint64_t>(2, static_cast<std::uint64_t>(std::popcount(eligible)))));
    ASSERT_EQ(table.best(eligible, count), table.chooser().best(eligible, count));
  }
}

}  // namespace
}  // namespace gpu_platform::scheduling
