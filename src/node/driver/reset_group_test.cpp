#include "node/driver/reset_group.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using hardware::GpuDescription;
using hardware::GpuLink;
using hardware::LinkKind;
using Group = std::vector<std::uint32_t>;

std::vector<GpuDescription> gpus(std::uint32_t count, std::uint32_t major) {
  std::vector<GpuDescription> all(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    all[i].index = i;
    if (major != 0) all[i].compute_capability = {major, 0};
  }
  return all;
}

std::vector<GpuLink> all_joined(std::uint32_t count, LinkKind kind) {
  std::vector<GpuLink> links;
  for (std::uint32_t a = 0; a < count; ++a) {
    for (std::uint32_t b = a + 1; b < count; ++b) links.push_back({a, b, kind, 1, 0});
  }
  return links;
}

TEST(ResetGroup, OfHopperAndLaterIsTheGpuAlone) {
  EXPECT_EQ(reset_group(gpus(8, 9), all_joined(8, LinkKind::kNvLink), 3), Group{3});
  EXPECT_EQ(reset_group(gpus(8, 10), all_joined(8, LinkKind::kNvLink), 0), Group{0});
}

TEST(ResetGroup, OfA100sOnABoardIsTheBoard) {
  EXPECT_EQ(reset_group(gpus(8, 8), all_joined(8, LinkKind::kNvLink), 3),
            (Group{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ResetGroup, OfGpusWithoutNvLinksIsTheGpuAlone) {
  EXPECT_EQ(reset_group(gpus(4, 7), all_joined(4, LinkKind::kPix), 2), Group{2});
  EXPECT_EQ(reset_group(gpus(4, 8), {}, 2), Group{2});
}

TEST(ResetGroup, FollowsLinksFromGpuToGpu) {
  const std::vector<GpuLink> chain{{0, 1, LinkKind::kNvLink, 1, 0},
                                   {1, 2, LinkKind::kNvLink, 1, 0},
                                   {2, 3, LinkKind::kPhb, 0, 0},
                                   {3, 4, LinkKind::kNvLink, 1, 0}};
  EXPECT_EQ(reset_group(gpus(5, 7), chain, 2), (Group{0, 1, 2}));
  EXPECT_EQ(reset_group(gpus(5, 7), chain, 4), (Group{3, 4}));
}

TEST(ResetGroup, OfAGenerationThatIsNotKnownIsTheGreaterOne) {
  EXPECT_EQ(reset_group(gpus(2, 0), all_joined(2, LinkKind::kNvLink), 0), (Group{0, 1}));
}

}  // namespace
}  // namespace gpu_platform::node
