#include "bin/progress_pace.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

TEST(ProgressPace, TellsNothingOfShortWorkAndThenNowAndAgain) {
  const base::Instant began(1'000);
  ProgressPace pace(began, base::seconds(2), base::seconds(1));
  EXPECT_FALSE(pace.is_due(began));
  EXPECT_FALSE(pace.is_due(began + base::milliseconds(1999)));
  EXPECT_TRUE(pace.is_due(began + base::seconds(2)));
  EXPECT_FALSE(pace.is_due(began + base::milliseconds(2500)));
  EXPECT_TRUE(pace.is_due(began + base::seconds(10)));
  EXPECT_FALSE(pace.is_due(began + base::milliseconds(10'999)));
}

}  // namespace
}  // namespace gpu_platform::bin
