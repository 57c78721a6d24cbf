#include "hardware/hwloc/hwloc_host.h"

#include <gtest/gtest.h>

#include "hardware/procfs/procfs_host.h"

namespace gpu_platform::hardware {
namespace {

TEST(HwlocHost, TellsSocketsCoresAndNumaNodes) {
  const auto host =
      open_hwloc_host(open_procfs_host(), {"package:2 numa:2(memory=1073741824) core:4 pu:2"})
          ->describe();

  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(host->sockets, 2u);
  EXPECT_EQ(host->cores, 16u);
  ASSERT_EQ(host->numa_nodes.size(), 4u);
  EXPECT_EQ(host->numa_nodes[0].socket, 0u);
  EXPECT_EQ(host->numa_nodes[1].socket, 0u);
  EXPECT_EQ(host->numa_nodes[2].socket, 1u);
  EXPECT_EQ(host->numa_nodes[3].id, 3u);
  EXPECT_EQ(host->numa_nodes[3].memory, base::kGiB);
  EXPECT_EQ(host->numa_nodes[3].cpus, (CpuSet{24, 25, 26, 27, 28, 29, 30, 31}));
}

TEST(HwlocHost, PutsNoNumaNodeThatSpansSocketsIntoOne) {
  const auto host =
      open_hwloc_host(open_procfs_host(), {"numa:1 package:2 core:2 pu:1"})->describe();

  ASSERT_TRUE(host);
  ASSERT_EQ(host->numa_nodes.size(), 1u);
  EXPECT_EQ(host->numa_nodes[0].socket, std::nullopt);
}

TEST(HwlocHost, TakesTheKernelsWordWhereHwlocFails) {
  const auto host = open_hwloc_host(open_procfs_host(), {"no such description"})->describe();

  ASSERT_TRUE(host);
  EXPECT_EQ(*host, *open_procfs_host()->describe());
}

TEST(HwlocHost, AgreesWithTheKernelAboutThisMachine) {
  const auto host = open_hwloc_host(open_procfs_host())->describe();
  const auto kernel = open_procfs_host()->describe();

  ASSERT_TRUE(host && kernel);
  EXPECT_EQ(host->cpus, kernel->cpus);
  EXPECT_EQ(host->memory, kernel->memory);
  EXPECT_EQ(host->boot_id, kernel->boot_id);
  EXPECT_GE(host->sockets.value_or(0), 1u);
  for (const NumaNode& node : kernel->numa_nodes) {
    EXPECT_TRUE(std::ranges::any_of(host->numa_nodes, [&](const NumaNode& other) {
      return other.cpus == node.cpus;
    })) << node.id;
  }
}

TEST(HwlocHost, KnowsNoPlaceOfADeviceThatIsNotThere) {
  const auto host = open_hwloc_host(open_procfs_host());
  ASSERT_TRUE(host->describe());

  EXPECT_EQ(host->numa_node_of("0000ffff:ff:1f.7"), std::nullopt);
  EXPECT_EQ(host->numa_node_of("not an address"), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::hardware
