#include "bin/found_nodes.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

using model::EngineKind;

controller::Snapshot two_nodes() {
  controller::Snapshot snapshot;
  model::Node here;
  here.gpus.resize(2);
  for (model::Gpu& gpu : here.gpus) gpu.info.type = "L4";
  model::Node of_cluster;
  of_cluster.engine = EngineKind::kKubernetes;
  of_cluster.gpus.resize(3);
  for (model::Gpu& gpu : of_cluster.gpus) gpu.info.type = "H100-80GB";
  of_cluster.gpus[0].info.type = "L4";
  snapshot.nodes.put(1, here);
  snapshot.nodes.put(2, of_cluster);
  return snapshot;
}

TEST(FoundNodes, AreCountedByTheEngineThatTheyBelongTo) {
  const controller::Snapshot snapshot = two_nodes();
  EXPECT_EQ(nodes_of(EngineKind::kProcess, snapshot).gpus, 2U);
  EXPECT_EQ(nodes_of(EngineKind::kKubernetes, snapshot).nodes, 1U);
  EXPECT_EQ(nodes_of(EngineKind::kKubernetes, {}).nodes, 0U);
}

TEST(FoundNodes, GpusAreCountedByTheirType) {
  EXPECT_EQ(gpus_by_type(two_nodes()), (scheduling::GpusByType{{"H100-80GB", 2}, {"L4", 3}}));
}

}  // namespace
}  // namespace gpu_platform::bin
