#include "hardware/nvml/nvml_links.h"

#include <gtest/gtest.h>

namespace gpu_platform::hardware {
namespace {

PciPlace bus(std::uint32_t number) {
  return {0, number, 0};
}

NvLinkPorts gpu_at(std::uint32_t number) {
  return {bus(number), {}};
}

void link(NvLinkPorts& gpu, NvLinkPeer peer, std::uint32_t to, int links, std::uint32_t version) {
  for (int i = 0; i < links; ++i) gpu.ends.push_back({peer, bus(to), version});
}

TEST(NvLinks, CountsThoseThatJoinTwoGpusDirectly) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2), gpu_at(3)};
  link(gpus[0], NvLinkPeer::kGpu, 2, 2, 3);
  link(gpus[0], NvLinkPeer::kGpu, 3, 1, 3);
  link(gpus[1], NvLinkPeer::kGpu, 1, 2, 3);
  link(gpus[2], NvLinkPeer::kGpu, 1, 1, 3);

  EXPECT_EQ(nvlink_between(gpus, 0, 1), (GpuLink{0, 1, LinkKind::kNvLink, 2, 3}));
  EXPECT_EQ(nvlink_between(gpus, 0, 2), (GpuLink{0, 2, LinkKind::kNvLink, 1, 3}));
  EXPECT_EQ(nvlink_between(gpus, 1, 2), std::nullopt);
}

TEST(NvLinks, TakesTheOtherEndsWordWhereOneIsSilent) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2)};
  link(gpus[1], NvLinkPeer::kGpu, 1, 4, 0);

  EXPECT_EQ(nvlink_between(gpus, 0, 1), (GpuLink{0, 1, LinkKind::kNvLink, 4, 0}));
}

TEST(NvLinks, MakeAllGpusOnTheSwitchesEqual) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2), gpu_at(3)};
  for (NvLinkPorts& gpu : gpus) {
    link(gpu, NvLinkPeer::kSwitch, 0xa0, 6, 6);
    link(gpu, NvLinkPeer::kSwitch, 0xa1, 12, 6);
  }

  for (const auto& [a, b] : {std::pair(0u, 1u), std::pair(0u, 2u), std::pair(1u, 2u)}) {
    EXPECT_EQ(nvlink_between(gpus, a, b), (GpuLink{a, b, LinkKind::kNvLink, 18, 6}));
  }
}

TEST(NvLinks, ThatAreDownOnOneGpuNarrowItsPairs) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2), gpu_at(3)};
  link(gpus[0], NvLinkPeer::kSwitch, 0xa0, 18, 6);
  link(gpus[1], NvLinkPeer::kSwitch, 0xa0, 17, 6);

  EXPECT_EQ(nvlink_between(gpus, 0, 1)->nvlinks, 17u);
  EXPECT_EQ(nvlink_between(gpus, 0, 2), std::nullopt) << "no link of it is up";
}

TEST(NvLinks, GuessesASwitchWhereADriverOnlyGivesAPlace) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2)};
  for (NvLinkPorts& gpu : gpus) link(gpu, NvLinkPeer::kUnknown, 0xa0, 12, 4);

  EXPECT_EQ(nvlink_between(gpus, 0, 1), (GpuLink{0, 1, LinkKind::kNvLink, 12, 4}));
}

TEST(NvLinks, ToOtherDevicesJoinNoGpus) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2)};
  for (NvLinkPorts& gpu : gpus) link(gpu, NvLinkPeer::kOther, 0xa0, 3, 3);
  for (NvLinkPorts& gpu : gpus) gpu.ends.push_back({NvLinkPeer::kUnknown, std::nullopt, 3});

  EXPECT_EQ(nvlink_between(gpus, 0, 1), std::nullopt);
}

TEST(NvLinks, GoAtTheSpeedOfTheSlowestThatIsKnown) {
  std::vector<NvLinkPorts> gpus{gpu_at(1), gpu_at(2)};
  link(gpus[0], NvLinkPeer::kGpu, 2, 1, 4);
  link(gpus[0], NvLinkPeer::kGpu, 2, 1, 0);
  link(gpus[0], NvLinkPeer::kGpu, 2, 1, 3);

  EXPECT_EQ(nvlink_between(gpus, 0, 1)->nvlink_version, 3u);
}

TEST(PciPaths, AreTheDriversLevels) {
  EXPECT_EQ(kind_of_topology_level(0), LinkKind::kPix);
  EXPECT_EQ(kind_of_topology_level(10), LinkKind::kPix);
  EXPECT_EQ(kind_of_topology_level(20), LinkKind::kPxb);
  EXPECT_EQ(kind_of_topology_level(30), LinkKind::kPhb);
  EXPECT_EQ(kind_of_topology_level(40), LinkKind::kNode);
  EXPECT_EQ(kind_of_topology_level(50), LinkKind::kSystem);
  EXPECT_EQ(kind_of_topology_level(15), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::hardware
