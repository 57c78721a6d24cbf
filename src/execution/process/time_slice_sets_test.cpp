#include "execution/process/time_slice_sets.h"

#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

StartOrder part_of(const std::string& gpu, std::uint64_t job, base::GpuShare share,
                   base::Duration slice = {},
                   model::ShareMode mode = model::ShareMode::kTimeSlice) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->request.slice = slice;
  StartOrder order;
  order.attempt = {model::JobId(job), 1};
  order.spec = spec;
  LaunchGpu one;
  one.info.uuid = gpu;
  one.grant.share = share;
  one.grant.mode = mode;
  LaunchNode node;
  node.gpus = {one};
  order.nodes = {node};
  return order;
}

constexpr base::GpuShare kQuarter{1750};
constexpr base::GpuShare kRest{5250};

class TimeSliceSetsTest : public ::testing::Test {
 protected:
  const StartOrder first_ = part_of("GPU-1", 1, kQuarter);
  const StartOrder second_ = part_of("GPU-1", 2, kRest);
  const std::vector<node::TimeSlices> both_{
      {"GPU-1", 10'000, {{first_.attempt, 1750}, {second_.attempt, 5250}}}};
  TimeSliceSets sets_{base::seconds(10)};
};

TEST_F(TimeSliceSetsTest, TellsTheSharesOfAllOnAGpu) {
  sets_.join(first_);
  EXPECT_TRUE(sets_.take_changes().empty()) << "alone, it takes no turns";
  sets_.join(second_);
  EXPECT_EQ(sets_.take_changes(), both_);
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(TimeSliceSetsTest, TellsNothingThatIsKnown) {
  sets_.join(first_);
  sets_.join(second_);
  sets_.take_changes();
  sets_.join(second_);
  EXPECT_TRUE(sets_.take_changes().empty());
  sets_.leave(second_.attempt);
  sets_.join(second_);
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(TimeSliceSetsTest, TellsThatOneIsLeft) {
  sets_.join(first_);
  sets_.join(second_);
  sets_.take_changes();
  sets_.leave(first_.attempt);
  const auto changes = sets_.take_changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().jobs, (std::vector<node::TimeSliceJob>{{second_.attempt, 5250}}));
  EXPECT_NE(changes.front().slice_ms, 0U);
  sets_.leave(second_.attempt);
  EXPECT_TRUE(sets_.take_changes().empty()) << "without turns nothing is to be ended";
}

TEST_F(TimeSliceSetsTest, TellsANewLauncherAll) {
  sets_.join(first_);
  sets_.join(second_);
  sets_.take_changes();
  sets_.tell_all_again();
  EXPECT_EQ(sets_.take_changes(), both_);
}

TEST_F(TimeSliceSetsTest, KeepsGpusApart) {
  sets_.join(first_);
  sets_.join(part_of("GPU-2", 3, kRest));
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(TimeSliceSetsTest, TakesTheShortestSliceWithinTheBounds) {
  sets_.join(first_);
  sets_.join(part_of("GPU-1", 2, kRest, base::milliseconds(250)));
  EXPECT_EQ(sets_.take_changes().front().slice_ms, 250U);
  sets_.join(part_of("GPU-1", 2, kRest, base::milliseconds(1)));
  EXPECT_EQ(sets_.take_changes().front().slice_ms, 100U);
}

TEST_F(TimeSliceSetsTest, TellsAnotherSliceOfTheSite) {
  sets_.join(first_);
  sets_.join(second_);
  sets_.take_changes();
  sets_.use_slice(base::seconds(1));
  ASSERT_EQ(sets_.take_changes().front().slice_ms, 1000U);
  sets_.use_slice(base::seconds(1));
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(TimeSliceSetsTest, LeavesOutWhatSharesAGpuInAnotherWay) {
  EXPECT_TRUE(takes_turns(first_));
  const StartOrder whole = part_of("GPU-1", 3, base::kWholeGpu, {}, model::ShareMode::kNone);
  const StartOrder mps = part_of("GPU-1", 4, kQuarter, {}, model::ShareMode::kMps);
  EXPECT_FALSE(takes_turns(whole));
  EXPECT_FALSE(takes_turns(mps));
  for (const StartOrder& order : {whole, mps, first_}) sets_.join(order);
  EXPECT_TRUE(sets_.take_changes().empty());
}

}  // namespace
}  // namespace gpu_platform::execution
