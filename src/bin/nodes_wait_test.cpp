#include "bin/nodes_wait.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

TEST(NodesWait, EndsWhenTheyAreKnown) {
  int asked = 0;
  EXPECT_TRUE(are_known_in_time([&](std::chrono::milliseconds) { return ++asked == 3; }, {}));
  EXPECT_EQ(asked, 3);
}

TEST(NodesWait, GivesUpWhenTheProcessIsToEnd) {
  EXPECT_FALSE(
      are_known_in_time([](std::chrono::milliseconds) { return false; }, [] { return true; }));
}

TEST(NodesWait, GivesUpWhenItsTimeIsOver) {
  EXPECT_FALSE(are_known_in_time([](std::chrono::milliseconds) { return false; }, {},
                                 std::chrono::milliseconds::zero()));
}

}  // namespace
}  // namespace gpu_platform::bin
