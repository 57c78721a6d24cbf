#include "scheduling/placement/place.h"

#include <string>
#include <utility>
#include <vector>

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

// ---- GPUs by name, and degraded ones

std::optional<model::Allocation> placed(const std::vector<model::Node>& nodes,
                                        const model::ResourceRequest& request) {
  Cluster cluster = cluster_of(nodes);
  const std::uint64_t hash = cluster.hash();
  std::optional<model::Allocation> allocation;
  {
    Trial trial(cluster);
    allocation = place(trial, request);
  }
  EXPECT_EQ(cluster.hash(), hash) << "nothing is left of what was withheld";
  return allocation;
}

model::ResourceRequest avoiding(std::uint32_t count, std::vector<std::string> uuids) {
  model::ResourceRequest request = gpus(count);
  request.gpus_avoid = std::move(uuids);
  return request;
}

model::ResourceRequest only(std::uint32_t count, std::vector<std::string> uuids) {
  model::ResourceRequest request = gpus(count);
  request.gpus_only = std::move(uuids);
  return request;
}

TEST(PlaceByName, KeepsOffTheGpusThatAJobAvoids) {
  const std::vector<model::Node> nodes = {node(1).gpus(4).named()};
  EXPECT_EQ(indices(*placed(nodes, avoiding(2, {"GPU-1-0", "GPU-1-1"}))), (Indices{2, 3}));
  EXPECT_FALSE(placed(nodes, avoiding(3, {"GPU-1-0", "GPU-1-1"})).has_value());
  EXPECT_EQ(indices(*placed(nodes, avoiding(4, {"GPU-9-0", "GPU-of-old"}))).size(), 4U);
}

TEST(PlaceByName, AnAvoidedGpuSendsTheJobToAnotherNode) {
  const std::vector<model::Node> nodes = {node(1).gpus(2).named(), node(2).gpus(8).named()};
  EXPECT_EQ(node_of(placed(nodes, avoiding(2, {"GPU-1-1"}))), 2U);
  EXPECT_EQ(node_of(placed(nodes, avoiding(1, {"GPU-1-1"}))), 1U);
}

TEST(PlaceByName, GivesOnlyTheGpusThatAJobNames) {
  const std::vector<model::Node> nodes = {node(1).gpus(4).named(), node(2).gpus(8).named(),
                                          node(3).gpus(1).named()};
  EXPECT_EQ(indices(*placed(nodes, only(2, {"GPU-2-3", "GPU-2-6"}))), (Indices{3, 6}));
  EXPECT_EQ(node_of(placed(nodes, only(1, {"GPU-2-3"}))), 2U);
  EXPECT_FALSE(placed(nodes, only(2, {"GPU-1-0", "GPU-2-3"})).has_value()) << "of one node each";
  EXPECT_FALSE(placed(nodes, only(1, {"GPU-of-old"})).has_value());
  const std::vector<model::Node> busy = {node(2).gpus(8).named().busy(3)};
  EXPECT_FALSE(placed(busy, only(1, {"GPU-2-3"})).has_value());
}

TEST(PlaceByName, WhatIsAvoidedIsNotAmongWhatIsNamed) {
  const std::vector<model::Node> nodes = {node(1).gpus(4).named()};
  model::ResourceRequest request = only(1, {"GPU-1-1", "GPU-1-2"});
  request.gpus_avoid = {"GPU-1-1"};
  EXPECT_EQ(indices(*placed(nodes, request)), (Indices{2}));
  request.exclude = {model::NodeId(1)};
  EXPECT_FALSE(placed(nodes, request).has_value());
}

TEST(PlaceByName, CrossesSocketsBecauseItMayHaveNoOthers) {
  const std::vector<model::Node> nodes = {dgx_h100(1).named()};
  const auto crossing = placed(nodes, only(2, {"GPU-1-0", "GPU-1-7"}));
  ASSERT_TRUE(crossing.has_value());
  EXPECT_EQ(crossing->nodes[0].level, model::PlacementLevel::kAcrossSockets);
  model::ResourceRequest strict = only(2, {"GPU-1-0", "GPU-1-7"});
  strict.numa = model::NumaPolicy::kStrict;
  EXPECT_FALSE(placed(nodes, strict).has_value());
}

TEST(PlaceByName, AGangGetsNoAvoidedGpuOnAnyOfItsNodes) {
  const std::vector<model::Node> nodes = {node(1).gpus(4).named(), node(2).gpus(4).named(),
                                          node(3).gpus(4).named()};
  model::ResourceRequest gang = avoiding(4, {"GPU-2-3"});
  gang.nodes = 2;
  const auto allocation = placed(nodes, gang);
  ASSERT_TRUE(allocation.has_value());
  EXPECT_EQ(allocation->nodes.at(0).node, model::NodeId(1));
  EXPECT_EQ(allocation->nodes.at(1).node, model::NodeId(3));
  gang.nodes = 3;
  EXPECT_FALSE(placed(nodes, gang).has_value());
}

TEST(PlaceByName, FindsAGpuWhereItIsNow) {
  Cluster cluster = cluster_of({node(1).gpus(2).named()});
  model::Node swapped = node(1).gpus(2).named();
  std::swap(swapped.gpus[0].info.uuid, swapped.gpus[1].info.uuid);
  EXPECT_TRUE(cluster.update(swapped));
  Trial trial(cluster);
  EXPECT_EQ(indices(*place(trial, only(1, {"GPU-1-0"}))), (Indices{1}));
}

TEST(PlaceOnDegraded, GoesOnlyToJobsThatAcceptThem) {
  const std::vector<model::Node> nodes = {node(1).gpus(2).degraded(0).degraded(1)};
  model::ResourceRequest request = gpus(1);
  EXPECT_FALSE(placed(nodes, request).has_value());
  request.accept_degraded = true;
  EXPECT_EQ(indices(*placed(nodes, request)), (Indices{0}));
}

TEST(PlaceOnDegraded, PrefersHealthyGpusAnywhere) {
  const std::vector<model::Node> nodes = {node(1).gpus(2).degraded(0), node(2).gpus(8)};
  model::ResourceRequest request = gpus(2);
  request.accept_degraded = true;
  EXPECT_EQ(node_of(placed(nodes, request)), 2U) << "although node 1 is the better fit";
  request.gpus = 1;
  EXPECT_EQ(indices(*placed(nodes, request)), (Indices{1}));
  const std::vector<model::Node> full = {node(1).gpus(2).degraded(0), node(2).gpus(1).busy(0)};
  request.gpus = 2;
  EXPECT_EQ(indices(*placed(full, request)), (Indices{0, 1}));
}

TEST(PlaceOnDegraded, ATaintOfAnotherPartyKeepsItFromAll) {
  model::Node sick = node(1).gpus(1).degraded(0);
  model::set_taint(sick.gpus[0].taints, {.source = model::TaintSource::kProcesses,
                                         .effect = model::TaintEffect::kAvoided,
                                         .text = "someone's",
                                         .by = "node",
                                         .at = {}});
  model::settle(sick.gpus[0]);
  model::ResourceRequest request = gpus(1);
  request.accept_degraded = true;
  EXPECT_FALSE(placed({sick}, request).has_value());
}

TEST(PlaceOnDegraded, IsTakenGivenBackAndRolledBack) {
  Cluster cluster = cluster_of({node(1).gpus(2).degraded(1)});
  const std::uint64_t hash = cluster.hash();
  {
    Trial trial(cluster);
    model::ResourceRequest request = gpus(2);
    request.accept_degraded = true;
    const model::Allocation both = *place(trial, request);
    EXPECT_FALSE(is_free(cluster, both));
    EXPECT_TRUE(is_free(cluster, both, Accepts::kDegraded));
    trial.take(both);
    EXPECT_FALSE(place(trial, request).has_value());
    trial.release(both);
    EXPECT_EQ(cluster.hash(), hash);
    EXPECT_EQ(place(trial, request), both);
  }
  EXPECT_EQ(cluster.hash(), hash);
}

TEST(SomeNodeUpCouldHold, MindsTheGpusThatARequestNames) {
  const Cluster cluster = cluster_of({node(1).gpus(2).named().busy(0),
                                      node(2).gpus(2).named().state(model::NodeState::kDraining)});
  EXPECT_TRUE(some_node_up_could_hold(cluster, only(1, {"GPU-1-0", "GPU-2-0"})));
  EXPECT_FALSE(some_node_up_could_hold(cluster, only(1, {"GPU-2-0"})));
  EXPECT_TRUE(some_node_up_could_hold(cluster, avoiding(1, {"GPU-1-0"})));
  EXPECT_FALSE(some_node_up_could_hold(cluster, avoiding(2, {"GPU-1-0"})));
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
