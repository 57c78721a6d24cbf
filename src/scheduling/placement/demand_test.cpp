#include "scheduling/placement/demand.h"

#include <limits>

#include <gtest/gtest.h>

namespace gpu_platform::scheduling {
namespace {

model::ResourceRequest gpus(std::uint32_t count) {
  model::ResourceRequest request;
  request.gpus = count;
  return request;
}

TEST(Demand, OfGpusIsTheirShareOfTheNode) {
  const NodeTotals node{.cpus = 112, .memory = base::kGiB * 2048, .gpus = 8};
  EXPECT_EQ(demand_on(gpus(2), node).cpus, 28);
  EXPECT_EQ(demand_on(gpus(2), node).memory, base::kGiB * 512);
  EXPECT_EQ(demand_on(gpus(8), node).cpus, 112);
}

TEST(Demand, RoundsDownSoThatAllGpusCanBeGivenOut) {
  const NodeTotals node{.cpus = 30, .memory = base::Bytes(103), .gpus = 4};
  EXPECT_EQ(demand_on(gpus(1), node).cpus, 7);
  EXPECT_EQ(demand_on(gpus(3), node).cpus, 22);
  EXPECT_EQ(demand_on(gpus(1), node).memory, base::Bytes(25));
}

TEST(Demand, IsAtLeastOneCpu) {
  EXPECT_EQ(demand_on(gpus(1), {.cpus = 2, .memory = base::kGiB, .gpus = 8}).cpus, 1);
}

TEST(Demand, OfCpuJobsIsOneCpuAndTheMemoryOfItsCpus) {
  const NodeTotals node{.cpus = 64, .memory = base::kGiB * 512, .gpus = 8};
  EXPECT_EQ(demand_on(gpus(0), node).cpus, 1);
  EXPECT_EQ(demand_on(gpus(0), node).memory, base::kGiB * 8);
  model::ResourceRequest four_cpus;
  four_cpus.cpus = 4;
  EXPECT_EQ(demand_on(four_cpus, node).memory, base::kGiB * 32);
}

TEST(Demand, IsWhatWasAskedForWhereItWas) {
  model::ResourceRequest request = gpus(2);
  request.cpus = 3;
  request.memory = base::kGiB;
  const Demand demand = demand_on(request, {.cpus = 64, .memory = base::kGiB * 512, .gpus = 8});
  EXPECT_EQ(demand.cpus, 3);
  EXPECT_EQ(demand.memory, base::kGiB);
}

TEST(Demand, BeyondTheNumberRangeStaysBeyondEveryNode) {
  const NodeTotals node{.cpus = 64, .memory = base::kGiB * 512, .gpus = 1};
  const Demand demand = demand_on(gpus(std::numeric_limits<std::uint32_t>::max()), node);
  EXPECT_EQ(demand.cpus, std::numeric_limits<std::uint32_t>::max());
  EXPECT_GT(demand.memory, base::kGiB * (1 << 20));
}

TEST(Demand, OnNodesWithoutWhatItIsAShareOfFitsNowhere) {
  EXPECT_GT(demand_on(gpus(1), {.cpus = 64, .memory = base::kGiB, .gpus = 0}).cpus, 64U);
  EXPECT_GT(demand_on(gpus(0), {.cpus = 0, .memory = base::kGiB, .gpus = 0}).memory, base::kGiB);
}

TEST(Demand, LeavesTheReserveToCpuJobs) {
  const NodeTotals node{.cpus = 224, .memory = base::kGiB * 2000, .gpus = 8};
  model::ResourceRequest all = gpus(8);
  all.reserve_percent = 5;  // 11.2 CPUs, rounded up
  EXPECT_EQ(demand_on(all, node).cpus, 212U);
  EXPECT_EQ(demand_on(all, node).memory, base::kGiB * 1900);
  model::ResourceRequest one = gpus(1);
  one.reserve_percent = 5;
  EXPECT_EQ(demand_on(one, node).cpus, 26U);
  const NodeTotals small{.cpus = 4, .memory = base::kGiB * 16, .gpus = 4};
  all.gpus = 4;
  EXPECT_EQ(demand_on(all, small).cpus, 4U) << "each GPU keeps a CPU";
  all.cpus = 224;
  all.memory = base::kGiB * 2000;
  EXPECT_EQ(demand_on(all, node).cpus, 224U) << "what is asked for is not cut";
  model::ResourceRequest none;
  none.reserve_percent = 5;
  EXPECT_EQ(demand_on(none, node).cpus, 1U);
}

}  // namespace
}  // namespace gpu_platform::scheduling
