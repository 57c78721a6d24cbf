#include "model/step.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::model {
namespace {

JobStep step(std::uint32_t number, base::Instant ended_at = {}) {
  JobStep result;
  result.number = number;
  result.started_at = base::Instant(1000);
  result.ended_at = ended_at;
  return result;
}

std::vector<std::uint32_t> numbers_of(const JobSteps& steps) {
  std::vector<std::uint32_t> numbers;
  for (const auto& each : steps) numbers.push_back(each->number);
  return numbers;
}

TEST(JobStep, StaysInOrderHoweverStepsCome) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    base::Prng random(seed);
    JobSteps steps;
    std::vector<std::uint32_t> expected;
    for (int i = 0; i < 20; ++i) {
      const auto number = static_cast<std::uint32_t>(random.below(12));
      steps = with_step(steps, step(number));
      if (std::ranges::find(expected, number) == expected.end()) expected.push_back(number);
    }
    std::ranges::sort(expected);
    EXPECT_EQ(numbers_of(steps), expected) << seed;
  }
}

TEST(JobStep, TakesThePlaceOfTheOneOfItsNumber) {
  JobSteps steps = with_step(with_step({}, step(3)), step(7));
  steps = with_step(steps, step(3, base::Instant(5000)));
  ASSERT_EQ(numbers_of(steps), (std::vector<std::uint32_t>{3, 7}));
  ASSERT_NE(find_step(steps, 3), nullptr);
  EXPECT_EQ(find_step(steps, 3)->ended_at, base::Instant(5000));
  EXPECT_EQ(find_step(steps, 5), nullptr);
  EXPECT_EQ(find_step({}, 0), nullptr);
}

TEST(JobStep, EndsAloneIfItStillRuns) {
  const JobSteps steps = with_step(with_step({}, step(1, base::Instant(2000))), step(2));
  const JobSteps ended = with_ends(steps, base::Instant(9000));
  EXPECT_EQ(ended[0], steps[0]);
  EXPECT_EQ(ended[1]->ended_at, base::Instant(9000));
  EXPECT_EQ(ended[1]->exit.lost, Lost::kUnknown);
  EXPECT_EQ(with_ends(steps, base::Instant(500))[1]->ended_at, base::Instant(1000))
      << "never before its start";
}

}  // namespace
}  // namespace gpu_platform::model
