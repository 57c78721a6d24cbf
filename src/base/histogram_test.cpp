#include "base/histogram.h"

#include <gtest/gtest.h>

namespace gpu_platform::base {
namespace {

constexpr double kBounds[] = {1, 5, 10};

TEST(Histogram, CountsValuesByTheBoundThatTheyDoNotPass) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.1, 5.0, 10.5, 99.0}) histogram.add(value);
  EXPECT_EQ(std::vector(histogram.counts().begin(), histogram.counts().end()),
            (std::vector<std::uint64_t>{2, 2, 0, 2}));
  EXPECT_EQ(histogram.count(), 6U);
  EXPECT_DOUBLE_EQ(histogram.sum(), 117.1);
  EXPECT_DOUBLE_EQ(histogram.mean(), 117.1 / 6);
  EXPECT_EQ(histogram.last(), 99);
  EXPECT_EQ(histogram.max(), 99);
}

TEST(Histogram, TheLargestMayBeBelowZero) {
  Histogram histogram(kBounds);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.add(-3);
  histogram.add(-4);
  EXPECT_EQ(histogram.max(), -3);
  EXPECT_EQ(histogram.last(), -4);
}

}  // namespace
}  // namespace gpu_platform::base
