#include "scheduling/placement/place.h"

#include <gtest/gtest.h>

#include "scheduling/testing/boards.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using Indices = std::vector<std::uint32_t>;

std::uint64_t node_of(const std::optional<model::Allocation>& allocation) {
  return allocation.has_value() ? allocation->nodes.at(0).node.value : 0;
}

TEST(Place, TakesTheNodeWithFewestFreeGpusThatSuffice) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8).busy(0).busy(1),
                                      node(3).gpus(8).busy(0).busy(1).busy(2).busy(3).busy(4)});
  EXPECT_EQ(node_of(place(cluster, gpus(3))), 3U);
  EXPECT_EQ(node_of(place(cluster, gpus(4))), 2U);
  EXPECT_EQ(node_of(place(cluster, gpus(7))), 1U);
  EXPECT_FALSE(place(cluster, gpus(9)).has_value());
}

TEST(Place, ThenTheOneWithFewestCpusAndLeastMemoryLeft) {
  const Cluster by_cpus = cluster_of({node(1).gpus(8), node(2).gpus(8).used(8)});
  EXPECT_EQ(node_of(place(by_cpus, gpus(1))), 2U);
  const Cluster by_memory = cluster_of({node(1).gpus(8), node(2).gpus(8).used(0, base::kGiB)});
  EXPECT_EQ(node_of(place(by_memory, gpus(1))), 2U);
}

TEST(Place, BreaksTiesByTheLowestNode) {
  const Cluster cluster = cluster_of({node(7).gpus(8), node(3).gpus(8), node(5).gpus(8)});
  EXPECT_EQ(node_of(place(cluster, gpus(8))), 3U);
  // The same number of free GPUs, only other ones.
  const Cluster other = cluster_of({node(4).gpus(8).busy(0), node(2).gpus(8).busy(7)});
  EXPECT_EQ(node_of(place(other, gpus(1))), 2U);
}

TEST(Place, KeepsGpusOfOneJobInOneNumaNode) {
  const Cluster cluster = cluster_of({node(1).gpus(8).busy(0).busy(1)});
  EXPECT_EQ(indices(*place(cluster, gpus(2))), (Indices{2, 3}));
  EXPECT_EQ(indices(*place(cluster, gpus(3))), (Indices{4, 5, 6}));
  EXPECT_EQ(indices(*place(cluster, gpus(5))), (Indices{2, 3, 4, 5, 6}));
}

TEST(Place, GivesWholeGpusWithAllTheirMemoryAndTheNodesShare) {
  const Cluster cluster = cluster_of({node(1).gpus(8).cpus(64).memory(base::kGiB * 512)});
  const model::Allocation allocation = *place(cluster, gpus(2));
  const model::NodeAllocation& part = allocation.nodes.at(0);
  EXPECT_EQ(part.cpus, 16U);
  EXPECT_EQ(part.memory, base::kGiB * 128);
  EXPECT_EQ(part.grants.at(1), (model::GpuGrant{1, base::kWholeGpu, base::kGiB * 80}));
}

TEST(Place, MindsTypesAndFamilies) {
  const Cluster cluster =
      cluster_of({node(1).gpus(4, "T4-16GB", base::kGiB * 16),
                  node(2).gpus(8, "A100-40GB", base::kGiB * 40), node(3).gpus(8)});
  model::ResourceRequest request = gpus(1);
  EXPECT_EQ(node_of(place(cluster, request)), 1U);
  request.gpu_types = {"A100"};
  EXPECT_EQ(node_of(place(cluster, request)), 2U);
  request.gpu_types = {"H100-80GB", "B200"};
  EXPECT_EQ(node_of(place(cluster, request)), 3U);
  request.gpu_types = {"B200"};
  EXPECT_FALSE(place(cluster, request).has_value());
}

TEST(Place, KnowsTypesThatComeWithLaterNodes) {
  Cluster cluster = cluster_of({node(1).gpus(4, "T4-16GB", base::kGiB * 16)});
  model::ResourceRequest request = gpus(1);
  request.gpu_types = {"H100"};
  EXPECT_FALSE(place(cluster, request).has_value());
  cluster.update(node(2).gpus(8));
  EXPECT_EQ(node_of(place(cluster, request)), 2U);
}

TEST(Place, MindsTheMemoryOfEachGpu) {
  const Cluster cluster = cluster_of(
      {node(1).gpus(4, "V100-16GB", base::kGiB * 16).gpus(4, "V100-32GB", base::kGiB * 32)});
  model::ResourceRequest request = gpus(4);
  request.gpu_memory = base::kGiB * 32;
  EXPECT_EQ(indices(*place(cluster, request)), (Indices{4, 5, 6, 7}));
  request.gpus = 5;
  EXPECT_FALSE(place(cluster, request).has_value());
}

TEST(Place, NeverMixesTypesInOneJob) {
  const Cluster cluster =
      cluster_of({node(1).gpus(2, "T4-16GB", base::kGiB * 16).gpus(2, "L4-24GB", base::kGiB * 24)});
  EXPECT_TRUE(place(cluster, gpus(2)).has_value());
  EXPECT_FALSE(place(cluster, gpus(3)).has_value());
}

TEST(Place, LooksAtWhichTypeIsFreeWhereNodesDifferInNothingElse) {
  const auto mixed = [](std::uint64_t id) {
    return node(id).gpus(2, "T4-16GB", base::kGiB * 16).gpus(2, "L4-24GB", base::kGiB * 24);
  };
  const Cluster cluster = cluster_of({mixed(1).busy(0).busy(1), mixed(2).busy(1).busy(2),
                                      mixed(3).busy(2).busy(3), mixed(4).busy(2).busy(3)});
  model::ResourceRequest request = gpus(2);
  request.gpu_types = {"T4"};
  EXPECT_EQ(node_of(place(cluster, request)), 3U);
  request.gpu_types = {"L4"};
  EXPECT_EQ(node_of(place(cluster, request)), 1U);
}

TEST(Place, NeedsCpusAndMemoryToo) {
  const Cluster cluster = cluster_of({node(1).gpus(8).cpus(64).used(60)});
  EXPECT_FALSE(place(cluster, gpus(1)).has_value());
  model::ResourceRequest request = gpus(1);
  request.cpus = 4;
  EXPECT_TRUE(place(cluster, request).has_value());
  request.memory = base::kGiB * 513;
  EXPECT_FALSE(place(cluster, request).has_value());
}

TEST(Place, UsesNoNodeThatIsNotUpAndNoGpuThatIsNotAvailable) {
  const Cluster cluster = cluster_of({node(1).gpus(1).state(model::NodeState::kDraining),
                                      node(2).gpus(1).state(model::NodeState::kLost),
                                      node(3).gpus(1).state(model::NodeState::kOffline),
                                      node(4).gpus(1).gpu_state(0, model::GpuState::kCleaning)});
  EXPECT_FALSE(place(cluster, gpus(1)).has_value());
}

TEST(Place, PutsCpuJobsWhereNoFreeGpuIsKeptFromOthers) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).cpus(4)});
  EXPECT_EQ(node_of(place(cluster, gpus(0))), 2U);
  EXPECT_TRUE(indices(*place(cluster, gpus(0))).empty());
}

TEST(Place, PutsNoGpuJobOnANodeWithoutGpus) {
  const Cluster cluster = cluster_of({node(1).cpus(64)});
  EXPECT_FALSE(place(cluster, gpus(1)).has_value());
}

model::ResourceRequest gpus_with(model::NumaPolicy numa, std::uint32_t count) {
  model::ResourceRequest request = gpus(count);
  request.numa = numa;
  return request;
}

TEST(PlaceByTopology, PrefersTheNodeWhereTheGpusLieTogether) {
  // Node 1 would be the better fit; there the four lie on two sockets.
  const Cluster cluster =
      cluster_of({dgx_h100(1).busy(0).busy(1).busy(4).busy(5), dgx_h100(2).busy(7)});
  EXPECT_EQ(node_of(place(cluster, gpus_with(model::NumaPolicy::kAllowCross, 4))), 2U);
  EXPECT_EQ(place(cluster, gpus(4))->nodes[0].level, model::PlacementLevel::kOneNumaNode);
  EXPECT_EQ(node_of(place(cluster, gpus(2))), 1U);
}

TEST(PlaceByTopology, PrefersNvLinkOnOneNumaNodeToALargerShareOfANode) {
  const Cluster cluster = cluster_of({l40s_x8(1).busy(0).busy(1), dgx_h100(2)});
  EXPECT_EQ(node_of(place(cluster, gpus(2))), 2U);
  EXPECT_EQ(node_of(place(cluster, gpus(1))), 1U);
}

TEST(PlaceByTopology, CrossesSocketsOnlyWhereItIsAllowed) {
  const Cluster cluster = cluster_of({l40s_x8(1).busy(0).busy(4)});
  EXPECT_FALSE(place(cluster, gpus(4)).has_value());
  EXPECT_FALSE(place(cluster, gpus_with(model::NumaPolicy::kStrict, 4)).has_value());
  const auto crossing = place(cluster, gpus_with(model::NumaPolicy::kAllowCross, 4));
  ASSERT_TRUE(crossing.has_value());
  EXPECT_EQ(crossing->nodes[0].level, model::PlacementLevel::kAcrossSockets);
}

TEST(PlaceByTopology, CrossesWhereNoNumaNodeOfThatKindOfNodeIsLargeEnough) {
  const Cluster cluster = cluster_of({l40s_x8(1)});
  EXPECT_EQ(place(cluster, gpus(6))->nodes[0].level, model::PlacementLevel::kAcrossSockets);
  EXPECT_FALSE(place(cluster, gpus_with(model::NumaPolicy::kStrict, 6)).has_value());
  // Also when a socket would be, were it free: the NUMA node decides.
  const Cluster nps4 = cluster_of({dgx_a100_nps4(1).busy(0).busy(7)});
  EXPECT_EQ(place(nps4, gpus(4))->nodes[0].level, model::PlacementLevel::kAcrossSockets);
  EXPECT_EQ(place(nps4, gpus(3))->nodes[0].level, model::PlacementLevel::kOneSocket);
  EXPECT_FALSE(place(nps4, gpus_with(model::NumaPolicy::kStrict, 4)).has_value());
}

TEST(PlaceByTopology, CountsOnlyGpusThatTheRequestAccepts) {
  // Four GPUs on NUMA node 0, of which two have the memory; two more of those on NUMA node 1.
  const Cluster cluster = cluster_of({node(1)
                                          .gpus(2, "V100-16GB", base::kGiB * 16)
                                          .gpus(4, "V100-32GB", base::kGiB * 32)
                                          .sockets({0, 1})});
  model::ResourceRequest request = gpus(4);
  request.gpu_memory = base::kGiB * 32;
  EXPECT_EQ(indices(*place(cluster, request)), (Indices{2, 3, 4, 5}));
  request.gpus = 3;
  EXPECT_TRUE(place(cluster, request).has_value());
  const Cluster worn = cluster_of({node(1)
                                       .gpus(2, "V100-16GB", base::kGiB * 16)
                                       .gpus(4, "V100-32GB", base::kGiB * 32)
                                       .sockets({0, 1})
                                       .busy(2)});
  request.gpus = 2;
  EXPECT_EQ(indices(*place(worn, request)), (Indices{4, 5}));
}

TEST(PlaceByTopology, TakesGpusOfUnknownPlaceAsOneDomain) {
  NodeBuilder board = node(1).gpus(4);
  for (std::uint32_t i = 0; i < 4; ++i) board.numa(i, -1);
  const auto allocation = place(cluster_of({board}), gpus_with(model::NumaPolicy::kStrict, 4));
  ASSERT_TRUE(allocation.has_value());
  EXPECT_EQ(allocation->nodes[0].level, model::PlacementLevel::kUnknown);
}

TEST(SomeNodeUpCouldHold, MindsStrictNumaPlacement) {
  const Cluster cluster = cluster_of({l40s_x8(1).busy(0)});
  EXPECT_TRUE(some_node_up_could_hold(cluster, gpus_with(model::NumaPolicy::kStrict, 4)));
  EXPECT_FALSE(some_node_up_could_hold(cluster, gpus_with(model::NumaPolicy::kStrict, 5)));
  EXPECT_TRUE(some_node_up_could_hold(cluster, gpus(5)));
}

TEST(SomeNodeUpCouldHold, IgnoresUseButNotTheStateOfNodes) {
  const Cluster cluster =
      cluster_of({node(1).gpus(2).busy(0).busy(1).used(64),
                  node(2).gpus(8).state(model::NodeState::kDraining), node(3).cpus(64)});
  EXPECT_TRUE(some_node_up_could_hold(cluster, gpus(2)));
  EXPECT_FALSE(some_node_up_could_hold(cluster, gpus(3)));
}

}  // namespace
}  // namespace gpu_platform::scheduling
