#include "scheduling/placement/best_subset.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduling/node_shape.h"
#include "scheduling/testing/boards.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

SubsetChooser chooser_of(const model::Node& board) {
  return SubsetChooser(layout_of(shape_of(board)));
}

struct Case {
  const char* name;
  model::Node board;
};

std::vector<Case> boards() {
  return {
      {"dgx_h100", dgx_h100(1)}, {"dgx_a100_nps4", dgx_a100_nps4(1)}, {"v100x8", v100x8(1)},
      {"l40s_x8", l40s_x8(1)},   {"a100_pcie_x4", a100_pcie_x4(1)},   {"bare", node(1).gpus(8)}};
}

// Every set of eligible GPUs and every count on boards of up to eight GPUs.
class BestSubset : public ::testing::TestWithParam<Case> {
 protected:
  template <class Check>
  void for_all(Check check) {
    const GpuMask end = GpuMask{1} << GetParam().board.gpus.size();
    for (GpuMask eligible = 1; eligible < end; ++eligible) {
      for (std::uint32_t count = 1; count <= size_of(eligible); ++count) check(eligible, count);
    }
  }
  Subset best(GpuMask eligible, std::uint32_t count) const { return table_.best(eligible, count); }
  SubsetTable table_{layout_of(shape_of(GetParam().board))};
  const SubsetChooser& chooser_ = table_.chooser();
};

TEST_P(BestSubset, TakesExactlySoManyEligibleOnes) {
  for_all([&](GpuMask eligible, std::uint32_t count) {
    const GpuMask gpus = best(eligible, count).gpus;
    ASSERT_EQ(size_of(gpus), count);
    ASSERT_EQ(gpus & ~eligible, 0U);
  });
}

TEST_P(BestSubset, StaysInTheSmallestDomainThatHoldsThem) {
  const GpuDomains& domains = chooser_.layout().domains;
  for_all([&](GpuMask eligible, std::uint32_t count) {
    const Subset found = best(eligible, count);
    if (max_in_one(domains.numa, eligible) >= count) {
      ASSERT_LE(found.rank, PlacementRank::kNumaNode);
      ASSERT_EQ(touched_by(domains.numa, found.gpus), 1U);
    } else if (max_in_one(domains.sockets, eligible) >= count) {
      ASSERT_EQ(found.rank, PlacementRank::kSocket);
      ASSERT_EQ(touched_by(domains.sockets, found.gpus), 1U);
    } else {
      ASSERT_EQ(found.rank, PlacementRank::kAcrossSockets);
    }
  });
}

TEST_P(BestSubset, NeverRanksWorseWhenMoreIsEligible) {
  for_all([&](GpuMask eligible, std::uint32_t count) {
    for (GpuMask drop = eligible; drop != 0; drop &= drop - 1) {
      const GpuMask fewer = eligible & ~(drop & (~drop + 1));
      if (size_of(fewer) < count) continue;
      ASSERT_LE(best(eligible, count).rank, best(fewer, count).rank);
    }
  });
}

TEST_P(BestSubset, ReachIsTheMostThatEachRankHolds) {
  for_all([&](GpuMask eligible, std::uint32_t count) {
    const Subset found = best(eligible, count);
    const Reach reach = chooser_.reach(eligible);
    for (const PlacementRank rank : kAllRanks) {
      ASSERT_EQ(reach.holds(rank, count), found.rank <= rank) << eligible << " " << count;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Boards, BestSubset, ::testing::ValuesIn(boards()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(BestSubsetOnHybridMesh, GivesAPairItsDoubleLink) {
  const SubsetChooser chooser = chooser_of(v100x8(1));
  EXPECT_EQ(chooser.best(0xFF, 2), (Subset{0b0000'1001, PlacementRank::kNvLink}));
  // 0 is taken, and with it the double link 0-3: 1-2 is the other one of this quad.
  EXPECT_EQ(chooser.best(0b0000'1110, 2).gpus, GpuMask{0b0000'0110});
}

TEST(BestSubsetOnHybridMesh, GivesFourAWholeQuad) {
  const SubsetChooser chooser = chooser_of(v100x8(1));
  EXPECT_EQ(chooser.best(0xFF, 4), (Subset{0x0F, PlacementRank::kNvLink}));
  EXPECT_EQ(chooser.best(0xFE, 4), (Subset{0xF0, PlacementRank::kNvLink}));
}

TEST(BestSubsetOnNps4, PrefersOneSocketToTwo) {
  const SubsetChooser chooser = chooser_of(dgx_a100_nps4(1));
  EXPECT_EQ(chooser.best(0b1111'0011, 4), (Subset{0xF0, PlacementRank::kSocket}));
  EXPECT_EQ(chooser.best(0b0111'0011, 4).rank, PlacementRank::kAcrossSockets);
}

TEST(BestSubsetLeavesWhole, TheDomainsItNeedNotBreak) {
  const SubsetChooser chooser = chooser_of(dgx_h100(1));
  // The half that is begun is filled before the whole one is broken.
  EXPECT_EQ(chooser.best(0b1111'0011, 2).gpus, GpuMask{0b0000'0011});
  EXPECT_EQ(chooser.best(0b1111'0111, 1).gpus, GpuMask{0b0000'0001});
  // Across sockets one of them is emptied.
  EXPECT_EQ(chooser.best(0xFF, 5).gpus, GpuMask{0b0001'1111});
}

TEST(BestSubsetLeavesWhole, TheSocketOfANumaNodeToo) {
  const SubsetChooser chooser = chooser_of(dgx_a100_nps4(1));
  EXPECT_EQ(chooser.best(0b1111'1100, 2).gpus, GpuMask{0b0000'1100});
}

TEST(BestSubsetLeavesWhole, TheBridgedPair) {
  const SubsetChooser chooser = chooser_of(a100_pcie_x4(1));
  EXPECT_EQ(chooser.best(0b1101, 1).gpus, GpuMask{0b0001});
  EXPECT_EQ(chooser.best(0b1011, 1).gpus, GpuMask{0b1000});
}

TEST(BestSubsetOfSocket, PrefersNvLinkThenFewerNumaNodesThenNearerLinks) {
  // One socket, NUMA nodes {0,1} {2,3} {4,5}; 1, 2 and 4 have NVLink to each other.
  NodeBuilder board = node(1).gpus(6, "X", base::kGiB, 2).sockets({0, 0, 0});
  for (const auto& [a, b] : {std::pair{1U, 2U}, {1U, 4U}, {2U, 4U}}) board.link(a, b, nvlinks(1));
  EXPECT_EQ(chooser_of(board).best(0x3F, 3), (Subset{0b01'0110, PlacementRank::kSocket}));
  // Without GPU 2, these are two NUMA nodes and the only NVLink left among them.
  EXPECT_EQ(chooser_of(board).best(0b11'1011, 3).gpus, GpuMask{0b01'0011});
  board.link(0, 5, {.kind = model::LinkKind::kPix});
  board.link(1, 5, {.kind = model::LinkKind::kPix});
  board.link(0, 1, {.kind = model::LinkKind::kPix});
  EXPECT_EQ(chooser_of(board).best(0b10'1011, 3).gpus, GpuMask{0b10'0011});
}

TEST(PlacementLevelOf, FollowsTheRankAndIsUnknownWhereNumaIs) {
  const SubsetChooser told = chooser_of(dgx_a100_nps4(1));
  EXPECT_EQ(told.level_of(told.best(0xFF, 2)), model::PlacementLevel::kOneNumaNode);
  EXPECT_EQ(told.level_of(told.best(0xFF, 3)), model::PlacementLevel::kOneSocket);
  EXPECT_EQ(told.level_of(told.best(0xFF, 5)), model::PlacementLevel::kAcrossSockets);
  EXPECT_EQ(told.level_of({}), model::PlacementLevel::kUnknown);
  const SubsetChooser untold = chooser_of(node(1).gpus(2).numa(0, -1).numa(1, -1));
  EXPECT_EQ(untold.level_of(untold.best(0b11, 2)), model::PlacementLevel::kUnknown);
}

// Two sockets of two NUMA nodes with sixteen GPUs each, NVLink between fours.
model::Node large_board() {
  NodeBuilder board = node(1).gpus(64, "X", base::kGiB, 16).sockets({0, 0, 1, 1});
  for (std::uint32_t a = 0; a < 64; ++a) {
    for (std::uint32_t b = a + 1; b < 64; ++b) {
      if (a / 4 == b / 4) board.link(a, b, nvlinks(2));
    }
  }
  return board;
}

TEST(BestSubsetOnLargeNodes, FindsDomainsAndLinkedGroupsOfAnySize) {
  const SubsetChooser chooser = chooser_of(large_board());
  EXPECT_EQ(chooser.best(~GpuMask{0}, 4), (Subset{0xF, PlacementRank::kNvLink}));
  EXPECT_EQ(chooser.best(~GpuMask{0} << 2, 4), (Subset{0xF0, PlacementRank::kNvLink}));
  EXPECT_EQ(chooser.best(~GpuMask{0}, 16), (Subset{0xFFFF, PlacementRank::kNumaNode}));
  EXPECT_EQ(chooser.best(~GpuMask{0} << 8, 24).rank, PlacementRank::kSocket);
  const Subset most = chooser.best(~GpuMask{0}, 40);
  EXPECT_EQ(most.rank, PlacementRank::kAcrossSockets);
  // One socket whole and as few NUMA nodes as can be on the other.
  EXPECT_EQ(touched_by(chooser.layout().domains.numa, most.gpus), 3U);
  EXPECT_EQ(chooser.best(~GpuMask{0}, 64).gpus, ~GpuMask{0});
}

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
