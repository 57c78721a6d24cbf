#include "node/channel_lines.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

int lines_taken(ChannelLines& lines, std::uint32_t uid, int channels, std::int64_t now) {
  int count = 0;
  for (int i = 0; i < channels; ++i) count += lines.take(uid, now) ? 1 : 0;
  return count;
}

TEST(ChannelLines, AreSoManyAMinuteForEachUser) {
  ChannelLines lines;
  EXPECT_EQ(lines_taken(lines, 1000, 100, 5), 30);
  EXPECT_EQ(lines_taken(lines, 1001, 10, 6), 10) << "a flood takes nothing from another user";
  EXPECT_EQ(lines.close_if_over(60'004), "");
  EXPECT_EQ(lines.close_if_over(60'005),
            "gpu-platform-node: … 70 channels of uid 1000 were not logged in the last 60 s\n");
  EXPECT_EQ(lines_taken(lines, 1000, 1, 60'006), 1);
}

TEST(ChannelLines, OfVeryManyUsersAreCountedTogether) {
  ChannelLines lines;
  int all = 0;
  for (std::uint32_t uid = 1; uid <= 2000; ++uid) all += lines_taken(lines, uid, 1, 5);
  EXPECT_EQ(all, 1024 + 30);
  EXPECT_EQ(lines.close_if_over(60'005),
            "gpu-platform-node: … 946 channels of others were not logged in the last 60 s\n");
}

}  // namespace
}  // namespace gpu_platform::node
