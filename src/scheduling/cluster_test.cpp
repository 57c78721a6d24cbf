#include "scheduling/cluster.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/testing/draw.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

TEST(Cluster, SaysWhetherSomethingThatCountsChanged) {
  Cluster cluster;
  model::Node n = node(1).gpus(8);
  EXPECT_TRUE(cluster.update(n));
  n.cause = "a remark";
  EXPECT_FALSE(cluster.update(n));
  n.gpus[0].info.uuid = "GPU-1";
  EXPECT_TRUE(cluster.update(n)) << "a job may name it";
  EXPECT_FALSE(cluster.update(n));
  n.gpus[0].state = model::GpuState::kDegraded;
  EXPECT_TRUE(cluster.update(n));
}

TEST(Cluster, NoticesStateCapacityAndShape) {
  Cluster cluster;
  const auto changes = [&](const model::Node& n) { return cluster.update(n); };
  EXPECT_TRUE(changes(node(1).gpus(8)));
  EXPECT_TRUE(changes(node(1).gpus(8).state(model::NodeState::kDraining)));
  EXPECT_TRUE(changes(node(1).gpus(8)));
  EXPECT_TRUE(changes(node(1).gpus(8).used(1)));
  EXPECT_TRUE(changes(node(1).gpus(8).used(1, base::kGiB)));
  EXPECT_TRUE(changes(node(1).gpus(7)));
  EXPECT_TRUE(changes(node(1).gpus(7).numa(0, 1)));
  EXPECT_FALSE(changes(node(1).gpus(7).numa(0, 1)));
}

TEST(Cluster, ForgetsRemovedNodesAndTheirShapes) {
  Cluster cluster = cluster_of({node(1).gpus(8)});
  const std::uint64_t hash = cluster.hash();
  cluster.update(node(2).gpus(4));
  EXPECT_NE(cluster.hash(), hash);
  cluster.remove(model::NodeId(2));
  EXPECT_EQ(cluster.hash(), hash);
  EXPECT_EQ(cluster.size(), 1U);
  EXPECT_EQ(cluster.shapes().size(), 1U);
  cluster.remove(model::NodeId(2));
  EXPECT_EQ(cluster.hash(), hash);
}

TEST(Cluster, CountsNoMoreUsedThanThereIs) {
  const Cluster cluster = cluster_of({node(1).cpus(4).used(6, base::kGiB * 1024)});
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.cpus, 0U);
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.memory, base::Bytes());
}

TEST(Cluster, WhatOthersUseMakesNoShapesOfItsOwn) {
  const Cluster cluster =
      cluster_of({node(1).cpus(64), node(2).cpus(64).others(10, base::kGiB), node(3).cpus(64)});
  EXPECT_EQ(cluster.shapes().size(), 1U);
  EXPECT_EQ(cluster.find(model::NodeId(2))->free.cpus, 54U);
  EXPECT_EQ(cluster_of({node(1), node(2).kubernetes()}).shapes().size(), 2U);
}

TEST(Cluster, OursAndOthersTogetherLeaveNothingAndNeverLess) {
  const Cluster cluster =
      cluster_of({node(1).cpus(8).used(6, base::kGiB * 500).others(5, base::kGiB * 20)});
  const FreeState& free = cluster.find(model::NodeId(1))->free;
  EXPECT_EQ(free.cpus, 0U);
  EXPECT_EQ(free.memory, base::Bytes());
  EXPECT_EQ(free.missing_cpus, 3U);
  EXPECT_EQ(free.missing_memory, base::kGiB * 8);
}

TEST(ClusterProperty, UpdatedStepByStepEqualsBuiltAnew) {
  EXPECT_TRUE(rc::check([] {
    Cluster grown;
    std::map<std::uint64_t, model::Node> last;
    for (std::uint64_t steps = draw(40); steps > 0; --steps) {
      const std::uint64_t id = 1 + draw(6);
      if (draw(5) == 0) {
        grown.remove(model::NodeId(id));
        last.erase(id);
      } else {
        last[id] = random_node(draw, id);
        grown.update(last[id]);
      }
    }
    Cluster built;
    for (const auto& [id, each] : last) built.update(each);
    RC_ASSERT(grown.hash() == built.hash());
  }));
}

TEST(ClusterProperty, TheOrderOfInsertionLeavesNoTrace) {
  EXPECT_TRUE(rc::check([] {
    std::vector<model::Node> nodes = random_world(draw).nodes;
    const std::uint64_t hash = cluster_of(nodes).hash();
    shuffle(draw, nodes);
    RC_ASSERT(cluster_of(nodes).hash() == hash);
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
