#include "controller/loop/pacer.h"

#include <gtest/gtest.h>

namespace gpu_platform::controller {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Pacer::Options kOptions{.pace = milliseconds(8), .burst = 4};
const Pacer::Time kStart{std::chrono::hours(1)};

TEST(Pacer, LetsTheFirstStepsThroughAtOnceAndTheRestOnePaceApart) {
  Pacer pacer(kOptions);
  Pacer::Time now = kStart;
  std::vector<Pacer::Time> steps;
  for (int i = 0; i < 8; ++i) {
    now = std::max(now, pacer.next());
    pacer.note_step(now);
    steps.push_back(now);
  }
  const std::vector<Pacer::Time> expected = {
      kStart,
      kStart,
      kStart,
      kStart,
      kStart,
      kStart + milliseconds(8),
      kStart + milliseconds(16),
      kStart + milliseconds(24),
  };
  EXPECT_EQ(steps, expected);
}

TEST(Pacer, GivesOneStepBackForEachPaceThatPasses) {
  Pacer pacer(kOptions);
  for (int i = 0; i < 5; ++i) pacer.note_step(kStart);
  const Pacer::Time later = kStart + milliseconds(8 * 3);
  EXPECT_LE(pacer.next(), later);
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(pacer.next(), later) << i;
    pacer.note_step(later);
  }
  EXPECT_GT(pacer.next(), later);
}

TEST(Pacer, StepsThatDidNotWaitHoldLaterOnesBackForOnePaceOnly) {
  Pacer pacer(kOptions);
  for (int i = 0; i < 1'000; ++i) pacer.note_step(kStart + microseconds(i));
  EXPECT_LE(pacer.next(), kStart + microseconds(999) + kOptions.pace);
}

TEST(Pacer, ForgetsOldSteps) {
  Pacer pacer(kOptions);
  for (int i = 0; i < 5; ++i) pacer.note_step(kStart);
  const Pacer::Time much_later = kStart + std::chrono::hours(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(pacer.next(), much_later);
    pacer.note_step(much_later);
  }
  EXPECT_EQ(pacer.next(), much_later + kOptions.pace);
}

}  // namespace
}  // namespace gpu_platform::controller
