#include "scheduling/placement/by_load.h"

#include <gtest/gtest.h>

#include "scheduling/placement/place.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using Indices = std::vector<std::uint32_t>;

std::optional<model::Allocation> place_in(Cluster& cluster, const model::ResourceRequest& request) {
  Trial trial(cluster);
  return place(trial, request);
}

Indices indices_in(Cluster& cluster, const model::ResourceRequest& request) {
  const auto allocation = place_in(cluster, request);
  return allocation ? indices(*allocation) : Indices{};
}

TEST(PlaceByLoad, TakesGpusWithoutLoadFirst) {
  Cluster cluster =
      cluster_of({node(1).gpus(4).loaded(0, 20, base::kGiB * 70).loaded(1, 5, base::kGiB * 78)});
  EXPECT_EQ(indices_in(cluster, gpus(1)), (Indices{2}));
  EXPECT_EQ(indices_in(cluster, gpus(2)), (Indices{2, 3}));
  // The third is the one with the higher availability.
  EXPECT_EQ(indices_in(cluster, gpus(3)), (Indices{1, 2, 3}));
  EXPECT_EQ(indices_in(cluster, gpus(4)), (Indices{0, 1, 2, 3}));
}

TEST(PlaceByLoad, PrefersTheLeastLoadedToTheBestLinks) {
  // Two NUMA nodes of two GPUs: the pair on one of them is loaded.
  Cluster cluster = cluster_of({node(1)
                                    .gpus(4, "H100-80GB", base::kGiB * 80, 2)
                                    .loaded(0, 50, base::kGiB * 20)
                                    .loaded(1, 50, base::kGiB * 20)
                                    .busy(3)});
  EXPECT_EQ(indices_in(cluster, gpus(1)), (Indices{2}));
}

TEST(PlaceByLoad, PrefersIdleNodesToIdleGpusOfBusyNodes) {
  // Node 1 has an idle GPU among busy ones; node 2 is idle as a whole.
  Cluster cluster =
      cluster_of({node(1).gpus(3).loaded(0, 90, base::kGiB * 10).loaded(1, 90, base::kGiB * 10),
                  node(2).gpus(3).loaded(0, 10, base::kGiB * 70)});
  const auto chosen = place_in(cluster, gpus(1));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->nodes.at(0).node.value, 2U);
  EXPECT_EQ(indices(*chosen), (Indices{1}));
}

TEST(PlaceByLoad, MindsTheMemoryThatIsFree) {
  Cluster cluster = cluster_of({node(1).gpus(1).loaded(0, 10, base::kGiB * 30)});
  model::ResourceRequest request = gpus(1);
  request.gpu_memory = base::kGiB * 30;
  EXPECT_TRUE(place_in(cluster, request));
  request.gpu_memory = base::kGiB * 40;
  EXPECT_FALSE(place_in(cluster, request));
}

TEST(PlaceByLoad, LeavesTheClusterAsItWas) {
  Cluster cluster = cluster_of({node(1).gpus(4).loaded(0, 20, base::kGiB * 70), node(2).gpus(4)});
  const std::uint64_t before = cluster.hash();
  place_in(cluster, gpus(8));
  place_in(cluster, gpus(2));
  EXPECT_EQ(cluster.hash(), before);
}

TEST(PlaceByLoad, ALoadThatEndsIsForgotten) {
  Cluster cluster = cluster_of({node(1).gpus(2).loaded(0, 20, base::kGiB * 70)});
  EXPECT_EQ(indices_in(cluster, gpus(1)), (Indices{1}));
  EXPECT_TRUE(cluster.update(node(1).gpus(2)));
  EXPECT_TRUE(cluster.nodes_with_load().empty());
  EXPECT_EQ(indices_in(cluster, gpus(1)), (Indices{0}));
}

}  // namespace
}  // namespace gpu_platform::scheduling
