#include "health/gpu_judge.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpu_platform::health {
namespace {

using hardware::GpuCondition;
using hardware::GpuReading;
using model::TaintEffect;

constexpr base::Instant kNoon(1'790'000'000'000'000'000);
constexpr base::Instant kLater(1'790'000'060'000'000'000);

GpuReading refusing(GpuCondition condition) {
  GpuReading reading;
  reading.condition = condition;
  reading.problem = "GPU is lost";
  return reading;
}

GpuReading with_errors(std::uint64_t uncorrected) {
  GpuReading reading;
  reading.ecc_uncorrected = uncorrected;
  return reading;
}

GpuReading with_remaps(bool failed) {
  GpuReading reading;
  reading.slow.emplace().remap_failed = failed;
  return reading;
}

// Answers until health says that it is back; how many it took.
std::uint32_t answers_until_back(GpuJudge& judge) {
  for (std::uint32_t count = 1; count < 100; ++count) {
    if (const auto judged = judge.judge({}, kNoon)) {
      EXPECT_EQ(*judged, Judgement());
      return count;
    }
  }
  return 0;
}

TEST(GpuJudge, TakesOutALostGpuAtOnceAndSaysSoAgainInTheSameWords) {
  for (const GpuCondition condition : {GpuCondition::kLost, GpuCondition::kResetRequired}) {
    GpuJudge judge;
    const auto first = judge.judge(refusing(condition), kNoon);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->effect, TaintEffect::kOut);
    EXPECT_EQ(first->text, "does not answer since 2026-09-21T14:13:20Z: GPU is lost");
    EXPECT_EQ(judge.judge(refusing(condition), kLater), first);
  }
}

TEST(GpuJudge, ForgivesOneRefusalThatMayPass) {
  GpuJudge judge;
  EXPECT_FALSE(judge.judge(refusing(GpuCondition::kNotAnswering), kNoon));
  EXPECT_FALSE(judge.judge({}, kNoon));
  EXPECT_FALSE(judge.judge(refusing(GpuCondition::kNotAnswering), kNoon));
  const auto judged = judge.judge(refusing(GpuCondition::kNotAnswering), kLater);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->effect, TaintEffect::kOut);
}

TEST(GpuJudge, AGpuIsBackWhenItHasAnsweredForAWhile) {
  GpuJudge judge;
  EXPECT_EQ(answers_until_back(judge), GpuJudge::kAnswers) << "a daemon that has just started";
  EXPECT_EQ(answers_until_back(judge), 0U) << "said once";
  judge.judge(refusing(GpuCondition::kLost), kNoon);
  for (std::uint32_t i = 1; i < GpuJudge::kAnswers; ++i) EXPECT_FALSE(judge.judge({}, kNoon));
  judge.judge(refusing(GpuCondition::kLost), kNoon);
  EXPECT_EQ(answers_until_back(judge), GpuJudge::kAnswers) << "in a row";
}

TEST(GpuJudge, DrainsAGpuWithNewUncorrectedErrors) {
  GpuJudge judge;
  EXPECT_FALSE(judge.judge(with_errors(7), kNoon)) << "they were there before";
  EXPECT_FALSE(judge.judge({}, kNoon)) << "withheld";
  EXPECT_FALSE(judge.judge(with_errors(7), kNoon));
  const auto judged = judge.judge(with_errors(9), kNoon);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->effect, TaintEffect::kNoNewWork);
  EXPECT_EQ(judged->text,
            "2 uncorrected memory errors at 2026-09-21T14:13:20Z: reset the GPU, then run "
            "'gpu-platform online'");
  EXPECT_FALSE(judge.judge(with_errors(0), kNoon)) << "the driver was loaded anew";
  EXPECT_TRUE(judge.judge(with_errors(1), kNoon));
  EXPECT_FALSE(judge.judge(with_errors(1), kNoon)) << "said once";
}

TEST(GpuJudge, DrainsAGpuWhoseMemoryCannotBeRepairedAnyMore) {
  GpuJudge judge;
  EXPECT_FALSE(judge.judge(with_remaps(true), kNoon)) << "it was so before";
  EXPECT_FALSE(judge.judge(with_remaps(false), kNoon));
  const auto judged = judge.judge(with_remaps(true), kNoon);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->effect, TaintEffect::kNoNewWork);
  EXPECT_FALSE(judge.judge(with_remaps(true), kNoon));
}

TEST(JudgeXid, NamesTheFaultTheTimeAndWhatHelps) {
  const auto judged = judge_xid(79, kNoon);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->effect, TaintEffect::kNoNewWork);
  EXPECT_EQ(judged->text,
            "XID 79 (fallen off the bus) at 2026-09-21T14:13:20Z: reboot the node, then run "
            "'gpu-platform online'");
  for (const std::uint64_t xid : {13, 31, 43, 45, 63, 94, 999}) {
    EXPECT_FALSE(judge_xid(xid, kNoon)) << xid;
  }
}

}  // namespace
}  // namespace gpu_platform::health
