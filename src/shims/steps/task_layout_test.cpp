#include "shims/steps/task_layout.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

TEST(TaskLayout, SpreadsTasksInBlocksEvenly) {
  EXPECT_EQ(layout_of(4, 2), (Layout{{0, 1}, {2, 3}}));
  EXPECT_EQ(layout_of(5, 3), (Layout{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(layout_of(3, 3), (Layout{{0}, {1}, {2}}));
  EXPECT_EQ(layout_of(3, 1), (Layout{{0, 1, 2}}));
}

TEST(TaskLayout, TakesTurnsWhereAsked) {
  const Distribution cyclic = *parse_distribution("cyclic:block");
  EXPECT_EQ(layout_of(5, 2, cyclic), (Layout{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(layout_of(8, 2, *parse_distribution("plane=2")), (Layout{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(layout_of(3, 3, *parse_distribution("plane=4")), (Layout{{0}, {1}, {2}}));
}

TEST(TaskLayout, DistributionsThatAreNoneAreRefused) {
  EXPECT_TRUE(parse_distribution("block:cyclic,Pack"));
  EXPECT_TRUE(parse_distribution("*:*"));
  EXPECT_FALSE(parse_distribution("arbitrary"));
  EXPECT_FALSE(parse_distribution("plane=0"));
  EXPECT_FALSE(parse_distribution("plane"));
}

TEST(TaskLayout, IsWrittenWithRepeats) {
  EXPECT_EQ(per_node_text({2, 2, 2, 1}), "2(x3),1");
  EXPECT_EQ(per_node_text({4}), "4");
  EXPECT_EQ(per_node_text({2, 1, 2}), "2,1,2");
}

}  // namespace
}  // namespace gpu_platform::shims
