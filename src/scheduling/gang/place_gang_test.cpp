#include "scheduling/gang/place_gang.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/placement/place.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using model::NetworkLevel;

model::ResourceRequest gang(std::uint32_t nodes, std::uint32_t gpus_each) {
  model::ResourceRequest request = gpus(gpus_each);
  request.nodes = nodes;
  return request;
}

model::ResourceRequest across(std::uint32_t total) {
  model::ResourceRequest request = gpus(total);
  request.cross_node = true;
  return request;
}

std::vector<std::uint64_t> nodes_of(const std::optional<model::Allocation>& allocation) {
  std::vector<std::uint64_t> nodes;
  if (!allocation) return nodes;
  for (const model::NodeAllocation& part : allocation->nodes) nodes.push_back(part.node.value);
  return nodes;
}

using Ids = std::vector<std::uint64_t>;

TEST(PlaceGang, GivesEachPartANodeOfItsOwn) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8), node(3).gpus(4)});
  EXPECT_EQ(nodes_of(place(cluster, gang(3, 4))), (Ids{1, 2, 3}));
  EXPECT_EQ(nodes_of(place(cluster, gang(2, 8))), (Ids{1, 2}));
  EXPECT_EQ(place(cluster, gang(3, 8)), std::nullopt);
  EXPECT_EQ(place(cluster, gang(4, 1)), std::nullopt);
}

TEST(PlaceGang, HasGpusOfOneTypeOnAllItsNodes) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8, "A100-80GB"),
                                      node(3).gpus(8, "A100-80GB"), node(4).gpus(8)});
  EXPECT_EQ(nodes_of(place(cluster, gang(2, 8))), (Ids{2, 3}));
  EXPECT_EQ(place(cluster, gang(3, 8)), std::nullopt);
  EXPECT_EQ(nodes_of(place(cluster, gang(4, 0))), (Ids{1, 2, 3, 4}));
}

TEST(PlaceGang, LiesOnNodesOfOneEngine) {
  const Cluster cluster =
      cluster_of({node(1).gpus(8), node(2).gpus(8).kubernetes(), node(3).gpus(8),
                  node(4).gpus(8).kubernetes(), node(5).gpus(8).kubernetes()});
  model::ResourceRequest request = gang(2, 8);
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{1, 3})) << "processes alone";
  request.engines = model::EngineSet::of(model::EngineKind::kKubernetes);
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{2, 4}));
  request.engines = model::kAnyEngine;
  request.nodes = 3;
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{2, 4, 5}));
  request.nodes = 4;
  EXPECT_EQ(place(cluster, request), std::nullopt);
  EXPECT_FALSE(some_node_up_could_hold(cluster, request));
}

TEST(PlaceGang, OnePartTakesTheBestNodeWhateverItsEngine) {
  const Cluster cluster =
      cluster_of({node(1).gpus(8), node(2).gpus(2), node(3).gpus(8).kubernetes()});
  model::ResourceRequest request = gpus(2);
  request.engines = model::kAnyEngine;
  request.nodelist = {model::NodeId(1), model::NodeId(2), model::NodeId(3)};
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{2}));
}

TEST(PlaceGang, TakesTheSmallestDomainThatHoldsIt) {
  const Cluster cluster =
      cluster_of({node(1).gpus(8).network("big"), node(2).gpus(8).network("big"),
                  node(3).gpus(8).network("big"), node(4).gpus(8).network("small"),
                  node(5).gpus(8).network("small")});
  EXPECT_EQ(nodes_of(place(cluster, gang(2, 8))), (Ids{4, 5}));
  EXPECT_EQ(nodes_of(place(cluster, gang(3, 8))), (Ids{1, 2, 3}));
  EXPECT_EQ(nodes_of(place(cluster, gang(4, 8))).size(), 4U);
}

TEST(PlaceGang, GoesToTheRackAndTheZoneWhereNoDomainHoldsIt) {
  const Cluster cluster = cluster_of(
      {node(1).gpus(8).network("d1", "r1", "z1"), node(2).gpus(8).network("d2", "r2", "z1"),
       node(3).gpus(8).network("d3", "r2", "z1"), node(4).gpus(8).network("d4", "r3", "z2")});
  EXPECT_EQ(nodes_of(place(cluster, gang(2, 8))), (Ids{2, 3}));
  EXPECT_EQ(nodes_of(place(cluster, gang(3, 8))), (Ids{1, 2, 3}));
  EXPECT_EQ(nodes_of(place(cluster, gang(4, 8))), (Ids{1, 2, 3, 4}));
}

TEST(PlaceGang, DoesNotGoPastTheLevelThatIsAskedFor) {
  const Cluster cluster =
      cluster_of({node(1).gpus(8).network("d1", "r1"), node(2).gpus(8).network("d2", "r1")});
  model::ResourceRequest request = gang(2, 8);
  request.within = NetworkLevel::kRack;
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{1, 2}));
  request.within = NetworkLevel::kDomain;
  EXPECT_EQ(place(cluster, request), std::nullopt);
}

TEST(PlaceGang, NodesWithoutANameAreTogetherWithNoOther) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8)});
  model::ResourceRequest request = gang(2, 8);
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{1, 2}));
  request.within = NetworkLevel::kZone;
  EXPECT_EQ(place(cluster, request), std::nullopt);
}

TEST(PlaceGang, FillsWholeDomainsBeforeItBreaksOne) {
  std::vector<model::Node> nodes;
  for (std::uint64_t id = 1; id <= 9; ++id) {
    nodes.push_back(node(id).gpus(8).network("d" + std::to_string((id - 1) / 3), "r"));
  }
  // One domain whole, and the rest out of a second one alone.
  const auto allocation = place(cluster_of(nodes), gang(5, 8));
  std::set<std::uint64_t> domains;
  for (const std::uint64_t id : nodes_of(allocation)) domains.insert((id - 1) / 3);
  EXPECT_EQ(domains.size(), 2U);
}

TEST(PlaceGang, AcrossNodesTakesTheFewestThatGiveEqualParts) {
  const Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8).busy(0), node(3).gpus(8)});
  EXPECT_EQ(nodes_of(place(cluster, across(8))), (Ids{1}));
  EXPECT_EQ(nodes_of(place(cluster, across(16))), (Ids{1, 3}));
  const auto three = place(cluster, across(21));
  ASSERT_TRUE(three);
  EXPECT_EQ(nodes_of(three), (Ids{1, 2, 3}));
  for (const model::NodeAllocation& part : three->nodes) EXPECT_EQ(part.grants.size(), 7U);
  EXPECT_EQ(place(cluster, across(24)), std::nullopt);
}

TEST(PlaceGang, StaysOnItsNodelistAndOffTheExcluded) {
  Cluster cluster = cluster_of({node(1).gpus(8), node(2).gpus(8), node(3).gpus(8)});
  model::ResourceRequest request = gang(2, 8);
  request.nodelist = {model::NodeId(2), model::NodeId(3)};
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{2, 3}));
  request.nodes = 3;
  EXPECT_EQ(place(cluster, request), std::nullopt);
  request = gang(2, 8);
  request.exclude = {model::NodeId(2)};
  Trial trial(cluster);
  EXPECT_EQ(nodes_of(place(trial, request)), (Ids{1, 3}));
  request = gang(1, 8);
  request.nodelist = {model::NodeId(3)};
  EXPECT_EQ(nodes_of(place(cluster, request)), (Ids{3}));
}

// ---- against the reference

struct Asked {
  std::vector<model::Node> nodes;
  model::ResourceRequest request;
};

Asked random_case() {
  Asked asked;
  const std::uint64_t count = 1 + draw(10);
  // Few shapes, so that gangs find several alike.
  for (std::uint64_t id = 1; id <= count; ++id) {
    if (draw(4) == 3) {
      asked.nodes.push_back(random_node(draw, id));
      continue;
    }
    NodeBuilder builder = node(id).gpus(4, draw(3) == 2 ? "A100-80GB" : "H100-80GB").named();
    for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
      if (draw(5) == 0) builder.busy(gpu);
    }
    asked.nodes.push_back(builder);
    asked.nodes.back().network = random_place(draw);
  }
  asked.request = random_gang(draw);
  if (draw(4) == 3) add_random_names(draw, asked.nodes, asked.request);
  return asked;
}

// Returns the nearness of the allocation's nodes.
NetworkLevel level_of(const std::vector<model::Node>& nodes, const model::Allocation& allocation) {
  for (const NetworkLevel level : kNearestFirst) {
    std::set<std::string_view> names;
    for (const model::NodeAllocation& part : allocation.nodes) {
      names.insert(std::ranges::find(nodes, part.node, &model::Node::id)->network.name_at(level));
    }
    if (names.size() == 1 && !names.begin()->empty()) return level;
  }
  return NetworkLevel::kAnywhere;
}

TEST(PlaceGangProperty, IsPlacedWhereAndOnlyWhereTheReferenceFindsNodes) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const auto [nodes, request] = random_case();
    Cluster cluster = cluster_of(nodes);
    Trial trial(cluster);
    const auto found = place(trial, request);
    const auto expected = naive_gang(nodes, request);
    RC_ASSERT(found.has_value() == expected.has_value());
    if (!hits.count(found.has_value())) return;
    RC_ASSERT(found->nodes.size() == expected->parts);
    if (expected->parts > 1) RC_ASSERT(level_of(nodes, *found) == expected->level);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlaceGangProperty, TakesOfEachNodeOnlyWhatIsFreeAndOfAllOneType) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const auto [nodes, request] = random_case();
    Cluster cluster = cluster_of(nodes);
    Trial trial(cluster);
    const auto found = place(trial, request);
    if (!hits.count(found.has_value())) return;
    std::set<model::NodeId> used;
    std::set<std::string> types;
    for (const model::NodeAllocation& part : found->nodes) {
      RC_ASSERT(used.insert(part.node).second);
      const model::Node& holder = *std::ranges::find(nodes, part.node, &model::Node::id);
      RC_ASSERT(holder.state == model::NodeState::kUp);
      RC_ASSERT(part.grants.size() == found->nodes.front().grants.size());
      RC_ASSERT(holder.cpus_used + part.cpus <= holder.cpus);
      for (const model::GpuGrant& grant : part.grants) {
        const model::Gpu& gpu = holder.gpus.at(grant.gpu_index);
        const bool is_degraded = request.accept_degraded && model::is_only_degraded(gpu);
        RC_ASSERT((is_degraded ? gpu.holders.empty() : model::is_free(gpu)));
        RC_ASSERT(model::may_use_gpu(request, gpu.info.uuid));
        types.insert(holder.gpus.at(grant.gpu_index).info.type);
      }
    }
    RC_ASSERT(types.size() <= 1U);
    RC_ASSERT(found->gpu_count() == model::total_gpus(request));
    RC_ASSERT(std::ranges::is_sorted(found->nodes, {}, &model::NodeAllocation::node));
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlaceGangProperty, LeavesNothingBehindOnceRolledBack) {
  EXPECT_TRUE(rc::check([] {
    const auto [nodes, request] = random_case();
    Cluster cluster = cluster_of(nodes);
    const std::uint64_t hash = cluster.hash();
    {
      Trial trial(cluster);
      if (const auto found = place(trial, request)) trial.take(*found);
    }
    RC_ASSERT(cluster.hash() == hash);
  }));
}

TEST(PlaceGangProperty, DoesNotDependOnTheOrderInWhichNodesCame) {
  EXPECT_TRUE(rc::check([] {
    auto [nodes, request] = random_case();
    Cluster cluster = cluster_of(nodes);
    shuffle(draw, nodes);
    Cluster shuffled = cluster_of(nodes);
    Trial a(cluster);
    Trial b(shuffled);
    RC_ASSERT(place(a, request) == place(b, request));
  }));
}

TEST(PlaceGangProperty, WhatIsPlacedCouldBeHeldByTheNodesThatAreUp) {
  EXPECT_TRUE(rc::check([] {
    const auto [nodes, request] = random_case();
    Cluster cluster = cluster_of(nodes);
    Trial trial(cluster);
    if (place(trial, request)) RC_ASSERT(some_node_up_could_hold(cluster, request));
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
