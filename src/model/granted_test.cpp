#include "model/granted.h"

#include <gtest/gtest.h>

#include "base/persistent_map.h"
#include "model/node.h"

namespace gpu_platform::model {
namespace {

// Four GPUs on two sockets, with a slow link across.
Node board() {
  Node node;
  node.id = NodeId(1);
  node.name = "n1";
  node.gpus.resize(4);
  node.topology.numa_nodes = {{.id = 0, .socket = 0}, {.id = 1, .socket = 1}};
  node.topology.links.assign(6, {.kind = LinkKind::kSystem});
  node.topology.links[link_index(4, 0, 1)] = {.kind = LinkKind::kPix};
  for (std::size_t i = 0; i < 4; ++i) {
    node.gpus[i].info.uuid = "GPU-" + std::to_string(i);
    node.gpus[i].info.model = "Tesla T4";
    node.gpus[i].info.numa_node = static_cast<std::int32_t>(i / 2);
  }
  return node;
}

NodeAllocation part_of(std::vector<std::uint32_t> gpus) {
  NodeAllocation part{.node = NodeId(1)};
  for (const std::uint32_t gpu : gpus) part.grants.push_back({gpu, base::kWholeGpu, {}});
  return part;
}

TEST(Granted, NamesWhatTheNodeHasNow) {
  const GrantedNode near = granted_on(board(), part_of({0, 1}));
  EXPECT_EQ(near.name, "n1");
  EXPECT_EQ(near.sockets, 1U);
  ASSERT_EQ(near.gpus.size(), 2U);
  EXPECT_EQ(near.gpus[0], (GrantedGpu{"GPU-0", "Tesla T4", {.kind = LinkKind::kPix}}));
  EXPECT_EQ(near.gpus[1], (GrantedGpu{"GPU-1", "Tesla T4", {.kind = LinkKind::kPix}}));
  const GrantedNode far = granted_on(board(), part_of({0, 1, 2}));
  EXPECT_EQ(far.sockets, 2U);
  EXPECT_EQ(far.gpus[1].link.kind, LinkKind::kSystem);
  EXPECT_EQ(granted_on(board(), part_of({})), (GrantedNode{"n1", 0, {}}));
}

TEST(Granted, LeavesOpenWhatIsNotKnown) {
  const GrantedNode gone = granted_on(board(), part_of({0, 5}));
  ASSERT_EQ(gone.gpus.size(), 2U);
  EXPECT_EQ(gone.gpus[0], (GrantedGpu{"GPU-0", "Tesla T4", {}}));
  EXPECT_EQ(gone.gpus[1], GrantedGpu());
  EXPECT_EQ(gone.sockets, 0U);
  base::PersistentMap<Node> nodes;
  const Allocation allocation{.nodes = {part_of({2})}};
  EXPECT_EQ(granted_of(allocation, nodes), (Granted{{"", 0, {GrantedGpu()}}}));
  nodes.put(1, board());
  const Granted granted = granted_of(allocation, nodes);
  EXPECT_EQ(granted.front().gpus.front().uuid, "GPU-2");
  EXPECT_TRUE(is_of(granted, allocation));
  EXPECT_FALSE(is_of(granted, {.nodes = {part_of({2, 3})}}));
  EXPECT_FALSE(is_of({}, allocation));
}

}  // namespace
}  // namespace gpu_platform::model
