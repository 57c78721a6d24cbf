#include "monitoring/hang_watch.h"

#include <gtest/gtest.h>

namespace gpu_platform::monitoring {
namespace {

class HangWatchTest : public ::testing::Test {
 protected:
  using Attempts = std::vector<model::AttemptId>;

  // One reading of each GPU, then a look at the attempt.
  Attempts after(base::Duration passed, std::optional<std::uint32_t> first,
                 std::optional<std::uint32_t> second) {
    now_ = now_ + passed;
    watch_.take_reading("GPU-0", first, now_);
    watch_.take_reading("GPU-1", second, now_);
    return look();
  }
  Attempts look() {
    return watch_.look(
        {{kAttempt, base::minutes(5), {"GPU-0", "GPU-1"}}},
        [this](model::AttemptId) { return output_; }, now_);
  }

  static constexpr model::AttemptId kAttempt{model::JobId(7), 1};
  HangWatch watch_;
  base::Instant now_ = base::Instant() + base::hours(1);
  std::optional<std::uint64_t> output_ = 10;
};

const std::vector<model::AttemptId> kNone;

TEST_F(HangWatchTest, TellsAnAttemptThatWasQuietForItsTime) {
  EXPECT_EQ(after(base::minutes(1), 0, 0), kNone);
  for (int minute = 1; minute < 5; ++minute) EXPECT_EQ(after(base::minutes(1), 0, 0), kNone);
  EXPECT_EQ(after(base::minutes(1), 0, 0), Attempts{kAttempt});
  EXPECT_EQ(after(base::minutes(1), 0, 0), Attempts{kAttempt}) << "until it is stopped";
}

TEST_F(HangWatchTest, OneActiveGpuIsActivity) {
  EXPECT_EQ(after(base::minutes(1), 0, 0), kNone);
  EXPECT_EQ(after(base::minutes(4), 0, 1), kNone);
  EXPECT_EQ(after(base::minutes(4), 0, 0), kNone);
  EXPECT_EQ(after(base::minutes(1), 0, 0), Attempts{kAttempt});
}

TEST_F(HangWatchTest, SoIsOutputAlsoWhereItsFileBeginsAnew) {
  EXPECT_EQ(after(base::minutes(1), 0, 0), kNone);
  output_ = 11;
  EXPECT_EQ(after(base::minutes(4), 0, 0), kNone);
  output_ = 2;
  EXPECT_EQ(after(base::minutes(4), 0, 0), kNone);
  EXPECT_EQ(after(base::minutes(5), 0, 0), Attempts{kAttempt});
}

TEST_F(HangWatchTest, WhatIsNotKnownIsActivity) {
  EXPECT_EQ(after(base::minutes(1), 0, std::nullopt), kNone);
  EXPECT_EQ(after(base::minutes(6), 0, std::nullopt), kNone) << "its utilization";
  output_.reset();
  EXPECT_EQ(after(base::minutes(6), 0, 0), kNone) << "its output";
  EXPECT_EQ(after(base::minutes(6), 0, 0), kNone);
  now_ = now_ + HangWatch::kLongestGap + base::seconds(1);
  output_ = 3;
  EXPECT_EQ(look(), kNone) << "its GPUs now";
  EXPECT_EQ(after(base::minutes(1), 0, 0), kNone) << "and what they did meanwhile";
  EXPECT_EQ(after(base::minutes(5), 0, 0), Attempts{kAttempt});
}

TEST_F(HangWatchTest, AGpuThatWasNeverReadTellsNothing) {
  const auto on_other = [&] {
    return watch_.look(
        {{kAttempt, base::minutes(5), {"GPU-9"}}},
        [](model::AttemptId) { return std::optional<std::uint64_t>(1); }, now_);
  };
  EXPECT_EQ(on_other(), kNone);
  now_ = now_ + base::minutes(6);
  EXPECT_EQ(on_other(), kNone);
}

TEST_F(HangWatchTest, TheTimeOfAnAttemptBeginsWithTheAttempt) {
  watch_.take_reading("GPU-0", 0, now_);
  watch_.take_reading("GPU-1", 0, now_);
  EXPECT_EQ(after(base::minutes(9), 0, 0), kNone) << "idle for long, before it";
  EXPECT_EQ(after(base::minutes(5), 0, 0), Attempts{kAttempt});
}

}  // namespace
}  // namespace gpu_platform::monitoring
