#include "scheduling/explain/feasibility.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/testing/boards.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

class CouldEverFit : public ::testing::Test {
 protected:
  std::string refusal(const model::ResourceRequest& request) {
    const base::Status status = could_ever_fit(nodes_, request);
    if (status.has_value()) return "";
    EXPECT_EQ(status.error().code, base::ErrorCode::kFailedPrecondition);
    EXPECT_TRUE(status.error().message.starts_with(status.error().field + " "));
    return status.error().message;
  }

  NodeList nodes_{{node(1).gpus(8).cpus(112).memory(base::kGiB * 2048),
                   node(2).gpus(4, "T4-16GB", base::kGiB * 16).cpus(200), node(3).cpus(16)}};
};

TEST_F(CouldEverFit, IgnoresUseAndState) {
  nodes_ = {{node(1).gpus(1).busy(0).used(64, base::kGiB * 512).state(model::NodeState::kOffline)}};
  EXPECT_EQ(refusal(gpus(1)), "");
}

TEST_F(CouldEverFit, NamesTheLargestNode) {
  EXPECT_EQ(refusal(gpus(16)), "gpus 16: the largest node has 8 GPUs");
  model::ResourceRequest request = gpus(8);
  request.gpu_types = {"T4"};
  EXPECT_EQ(refusal(request), "gpus 8: the largest node has 4 GPUs of the requested kind");
}

TEST_F(CouldEverFit, NamesTypesThatAreNotHere) {
  model::ResourceRequest request = gpus(1);
  request.gpu_types = {"B200", "A100-80GB"};
  EXPECT_EQ(refusal(request), "gpu_types B200,A100-80GB: no node has a GPU of these types");
}

TEST_F(CouldEverFit, NamesTheLargestGpuMemory) {
  model::ResourceRequest request = gpus(1);
  request.gpu_memory = base::kGiB * 141;
  EXPECT_EQ(refusal(request), "gpu_memory_bytes 141 GiB: the largest GPU has 80 GiB");
  request.gpu_types = {"T4"};
  EXPECT_EQ(refusal(request),
            "gpu_memory_bytes 141 GiB: the largest GPU of the requested types has 16 GiB");
}

TEST_F(CouldEverFit, NamesCpusAndMemoryOfNodesThatHaveTheGpus) {
  model::ResourceRequest request = gpus(8);
  request.cpus = 150;
  EXPECT_EQ(refusal(request), "cpus 150: the largest node with these GPUs has 112 CPUs");
  request.gpus = 0;
  request.cpus = 201;
  EXPECT_EQ(refusal(request), "cpus 201: the largest node has 200 CPUs");
  request.cpus = 1;
  request.memory = base::kGiB * 4096;
  EXPECT_EQ(refusal(request),
            "memory_bytes 4096 GiB: the largest node with these CPUs has 2048 GiB");
}

TEST_F(CouldEverFit, RefusesStrictRequestsLargerThanEverySocket) {
  nodes_ = {{dgx_h100(1), a100_pcie_x4(2)}};
  model::ResourceRequest request = gpus(5);
  EXPECT_EQ(refusal(request), "");
  request.numa = model::NumaPolicy::kStrict;
  EXPECT_EQ(refusal(request),
            "gpus 5: strict NUMA placement needs one socket, and the largest socket has 4 GPUs");
  request.gpus = 4;
  EXPECT_EQ(refusal(request), "");
  nodes_ = {{dgx_a100_nps4(1)}};
  EXPECT_EQ(refusal(request), "");
}

TEST_F(CouldEverFit, RefusesACapacityClassThatNoNodeHas) {
  nodes_ = {{node(1).gpus(8)}};
  model::ResourceRequest request = gpus(1);
  request.capacity = model::CapacityRequest::kOnDemand;
  EXPECT_EQ(refusal(request), "");
  request.capacity = model::CapacityRequest::kSpot;
  EXPECT_EQ(refusal(request), "capacity spot: no node is of that capacity class");
  request.gpus = 0;
  request.exclude = {model::NodeId(2)};
  EXPECT_EQ(refusal(request), "capacity spot: no node that it may use is of that capacity class");
  nodes_ = {{node(1).gpus(8), node(3).gpus(2).capacity(model::CapacityClass::kSpot)}};
  EXPECT_EQ(refusal(request), "");
  request.gpus = 3;
  EXPECT_EQ(refusal(request), "gpus 3: the largest node that it may use has 2 GPUs");
}

TEST_F(CouldEverFit, CountsOnlyTheGpusThatItMayUseByName) {
  nodes_ = {{node(1).gpus(4).named(), node(2).gpus(2).named()}};
  model::ResourceRequest request = gpus(4);
  request.gpus_avoid = {"GPU-1-0"};
  EXPECT_EQ(refusal(request),
            "gpus 4: the largest node has 3 GPUs of those that it may use (gpus_only, gpus_avoid)");
  request.gpus = 3;
  EXPECT_EQ(refusal(request), "");
  request.gpus_avoid.clear();
  request.gpus_only = {"GPU-1-0", "GPU-2-0", "GPU-2-1"};
  EXPECT_EQ(refusal(request),
            "gpus 3: the largest node has 2 GPUs of those that it may use (gpus_only, gpus_avoid)");
  request.gpus_only = {"GPU-9-0", "GPU-9-1", "GPU-9-2"};
  EXPECT_EQ(refusal(request),
            "gpus 3: no node has a GPU of those that it may use (gpus_only, gpus_avoid)");
}

TEST_F(CouldEverFit, RefusesGpusWhereThereAreNone) {
  nodes_ = {{node(1)}};
  EXPECT_EQ(refusal(gpus(2)), "gpus 2: no node has a GPU");
  nodes_ = {};
  EXPECT_EQ(refusal(gpus(2)), "gpus 2: no node has a GPU");
  EXPECT_EQ(refusal(gpus(0)), "cpus 1: the largest node has 0 CPUs");
}

TEST(FeasibilityProperty, AgreesWithPlacementOnEmptyHealthyNodes) {
  EXPECT_TRUE(rc::check([] {
    NodeList list{random_world(draw).nodes};
    model::ResourceRequest request = random_request(draw);
    if (draw(3) == 2) add_random_names(draw, list.nodes, request);
    const bool could = could_ever_fit(list, request).has_value();
    for (model::Node& each : list.nodes) each = model::as_idle(each);
    RC_ASSERT(could == naive_place(list.nodes, request).has_value());
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
