#include "model/node_lookup.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gpu_platform::model {
namespace {

Node node_of(std::uint64_t id, std::string name, std::vector<std::string> uuids) {
  Node node;
  node.id = NodeId(id);
  node.name = std::move(name);
  for (std::string& uuid : uuids) {
    Gpu gpu;
    gpu.info.uuid = std::move(uuid);
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

class NodeLookupTest : public ::testing::Test {
 protected:
  NodeLookupTest() {
    nodes_.put(1, node_of(1, "n1", {"a", "b"}));
    Node second = node_of(2, "n2", {"c", "a"});
    second.engine = EngineKind::kKubernetes;
    nodes_.put(2, std::move(second));
  }
  base::PersistentMap<Node> nodes_;
};

TEST_F(NodeLookupTest, FindsANodeByItsName) {
  nodes_.put(3, node_of(3, "a9", {}));
  const NodesByName by_name = nodes_by_name(nodes_);
  EXPECT_EQ(by_name, (NodesByName{NodeId(3), NodeId(1), NodeId(2)}));
  for (const auto& [name, id] : {std::pair{"a9", 3U}, {"n1", 1U}, {"n2", 2U}}) {
    ASSERT_NE(node_named(nodes_, by_name, name), nullptr) << name;
    EXPECT_EQ(node_named(nodes_, by_name, name)->id, NodeId(id));
  }
  for (const char* name : {"", "a", "n", "n11", "n3"}) {
    EXPECT_EQ(node_named(nodes_, by_name, name), nullptr) << name;
  }
  EXPECT_EQ(node_named(nodes_, {}, "n1"), nullptr);
}

TEST_F(NodeLookupTest, FindsAllPlacesOfAGpu) {
  EXPECT_EQ(index_of_gpu(*nodes_.find(2), "a"), 1U);
  EXPECT_EQ(index_of_gpu(*nodes_.find(1), "c"), std::nullopt);
  EXPECT_EQ(places_of_gpu(nodes_, "a"), (std::vector<GpuRef>{{NodeId(1), 0}, {NodeId(2), 1}}));
  EXPECT_TRUE(places_of_gpu(nodes_, "d").empty());
}

TEST_F(NodeLookupTest, AnAttemptHasTheEngineOfItsNodes) {
  Job job;
  EXPECT_EQ(engine_of(nodes_, job, 1), std::nullopt);
  Attempt attempt;
  attempt.number = 1;
  job.attempts = {attempt};
  EXPECT_EQ(engine_of(nodes_, job, 1), std::nullopt);
  NodeAllocation part;
  part.node = NodeId(2);
  job.attempts[0].allocation.nodes = {part};
  EXPECT_EQ(engine_of(nodes_, job, 1), EngineKind::kKubernetes);
  EXPECT_EQ(engine_of(nodes_, job, 0), std::nullopt);
  EXPECT_EQ(engine_of(nodes_, job, 2), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::model
