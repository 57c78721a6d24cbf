#include "shims/views/node_view.h"

#include <gtest/gtest.h>

#include "client/answer.h"

namespace gpu_platform::shims {
namespace {

// A node of two GPUs in these states.
NodeView node_with(std::string_view first, std::string_view second) {
  const std::string text = fmt::format(
      R"({{"nodes":[{{"name":"n1","state":"UP","cpus":8}}],"gpus":[)"
      R"({{"node":"n1","index":0,"type":"H100","state":"{}","reason":"XID 48","changed_by":"node"}},)"
      R"({{"node":"n1","index":1,"type":"H100","state":"{}","reason":"XID 48","changed_by":"node"}}]}})",
      first, second);
  return node_views(*client::message_of<v1::Status>(text), {}, {}).front();
}

TEST(NodeView, IsDrainedWhereNoGpuTakesUsualWork) {
  for (const auto& [first, second] : {std::pair("DEGRADED", "DEGRADED"),
                                      {"RESETTING", "RESETTING"},
                                      {"DEGRADED", "OFFLINE"},
                                      {"DRAINING", "RESETTING"}}) {
    const NodeView node = node_with(first, second);
    EXPECT_EQ(long_state(node), "drained") << first << " " << second;
    EXPECT_EQ(full_state(node), "IDLE+DRAIN") << first << " " << second;
    EXPECT_EQ(node.reason, "XID 48");
    EXPECT_EQ(node.reason_user, "node");
  }
}

TEST(NodeView, StaysInServiceWithOneGpuThatTakesWork) {
  const NodeView node = node_with("DEGRADED", "AVAILABLE");
  EXPECT_EQ(long_state(node), "idle");
  EXPECT_EQ(node.reason, "");
}

}  // namespace
}  // namespace gpu_platform::shims
