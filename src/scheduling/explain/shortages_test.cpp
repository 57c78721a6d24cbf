#include "scheduling/explain/shortages.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/persistent_map.h"
#include "scheduling/testing/boards.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using model::Shortage;

using Counts = std::vector<model::WaitCount>;

TEST(CountShortages, CountsEachNodeUnderItsFirstFailingConstraint) {
  const NodeList nodes{{
      node(1).gpus(8).busy(0).state(model::NodeState::kDraining),
      node(2).gpus(8, "T4-16GB", base::kGiB * 16),
      node(3).gpus(8, "A100-40GB", base::kGiB * 40),
      node(4).gpus(8, "A100-80GB").busy(0).busy(1).busy(2).busy(3).busy(4),
      node(5).gpus(8, "A100-80GB").busy(0).busy(1).busy(2).busy(3).busy(4).busy(5),
      node(6).gpus(8, "A100-80GB").cpus(64).used(50),
      node(7).gpus(8, "A100-80GB").memory(base::kGiB * 512).used(0, base::kGiB * 400),
      node(8).gpus(8, "A100-80GB"),
  }};
  model::ResourceRequest request = gpus(4);
  request.gpu_types = {"A100"};
  request.gpu_memory = base::kGiB * 80;
  EXPECT_EQ(count_shortages(nodes, request), (Counts{{Shortage::kNodeState, 1, 0},
                                                     {Shortage::kGpuType, 1, 0},
                                                     {Shortage::kGpuMemory, 1, 0},
                                                     {Shortage::kGpus, 2, 1},
                                                     {Shortage::kCpus, 1, 18},
                                                     {Shortage::kMemory, 1, 144 * 1024},
                                                     {Shortage::kFits, 1, 0}}));
}

TEST(CountShortages, CountsNodesOfAnotherEngineAsSuch) {
  const NodeList nodes{
      {node(1).gpus(1).busy(0), node(2).gpus(8).kubernetes(), node(3).gpus(8).kubernetes()}};
  EXPECT_EQ(count_shortages(nodes, gpus(1)),
            (Counts{{Shortage::kEngine, 2, 0}, {Shortage::kGpus, 1, 1}}));
}

TEST(CountShortages, CountsNodesOfAnotherCapacityClassAsSuch) {
  using model::CapacityClass;
  const NodeList nodes{{node(1).gpus(1).capacity(CapacityClass::kSpot),
                        node(2).gpus(8).capacity(CapacityClass::kReserved), node(3).gpus(8)}};
  model::ResourceRequest request = gpus(2);
  request.capacity = model::CapacityRequest::kSpot;
  EXPECT_EQ(count_shortages(nodes, request),
            (Counts{{Shortage::kCapacity, 2, 0}, {Shortage::kGpus, 1, 1}}));
  request.capacity = model::CapacityRequest::kOnDemand;
  EXPECT_EQ(count_shortages(nodes, request),
            (Counts{{Shortage::kCapacity, 1, 0}, {Shortage::kFits, 2, 0}}));
}

TEST(CountShortages, CountsNodesThatCouldHoldAPartByEngine) {
  model::ResourceRequest request = gpus(8);
  request.engines = model::kAnyEngine;
  ShortageCounter counter(request);
  counter.visit(node(1).gpus(8));
  counter.visit(node(2).gpus(8).kubernetes());
  counter.visit(node(3).gpus(8).kubernetes());
  EXPECT_EQ(counter.nodes_up_that_could_hold(), 2U);
}

TEST(CountShortages, CallsANodeWithoutGpusShortOfGpusWhenNoTypeIsAsked) {
  EXPECT_EQ(count_shortages(NodeList{{node(1)}}, gpus(2)), (Counts{{Shortage::kGpus, 1, 2}}));
  model::ResourceRequest request = gpus(2);
  request.gpu_types = {"H100"};
  EXPECT_EQ(count_shortages(NodeList{{node(1)}}, request), (Counts{{Shortage::kGpuType, 1, 0}}));
}

TEST(CountShortages, CountsFreeGpusOfOneTypeAtATime) {
  const NodeList mixed{
      {node(1).gpus(2, "T4-16GB", base::kGiB * 16).gpus(3, "L4-24GB", base::kGiB * 24)}};
  EXPECT_EQ(count_shortages(mixed, gpus(4)), (Counts{{Shortage::kGpus, 1, 1}}));
}

TEST(CountShortages, RoundsMissingMemoryUpToWholeMebibytes) {
  model::ResourceRequest request;
  request.memory = base::Bytes(1);
  const NodeList full{{node(1).memory(base::kGiB).used(0, base::kGiB)}};
  EXPECT_EQ(count_shortages(full, request), (Counts{{Shortage::kMemory, 1, 1}}));
}

TEST(CountShortages, TellsGpusThatAreFreeOnlyAcrossSockets) {
  const NodeList nodes{{
      dgx_h100(1).busy(0).busy(7),
      l40s_x8(2).busy(0).busy(1).busy(5).busy(6),
      dgx_h100(3).busy(0).busy(1).busy(2).busy(3).busy(4),
      dgx_a100_nps4(4).busy(0).busy(7),
  }};
  model::ResourceRequest request = gpus(4);
  // No NUMA node of node 4 could hold four: they may lie on two sockets there.
  EXPECT_EQ(count_shortages(nodes, request),
            (Counts{{Shortage::kGpus, 1, 1}, {Shortage::kSockets, 2, 1}, {Shortage::kFits, 1, 0}}));
  request.numa = model::NumaPolicy::kStrict;
  EXPECT_EQ(count_shortages(nodes, request),
            (Counts{{Shortage::kGpus, 1, 1}, {Shortage::kSockets, 3, 1}}));
  request.numa = model::NumaPolicy::kAllowCross;
  EXPECT_EQ(count_shortages(nodes, request),
            (Counts{{Shortage::kGpus, 1, 1}, {Shortage::kFits, 3, 0}}));
}

TEST(CountShortages, SaysOfflineWhereNoEndOfJobsBringsEnough) {
  model::Node dead = node(1).gpus(8).busy(0).busy(1);
  dead.gpus[7].state = model::GpuState::kOffline;
  ShortageCounter counter(gpus(8));
  counter.visit(dead);
  EXPECT_EQ(counter.counts(), (Counts{{Shortage::kGpusOffline, 1, 1}}));
  EXPECT_EQ(counter.nodes_up_that_could_hold(), 0U);
  EXPECT_EQ(count_shortages(NodeList{{dead}}, gpus(7)), (Counts{{Shortage::kGpus, 1, 2}}));
  EXPECT_EQ(count_shortages(NodeList{{dead}}, gpus(9)), (Counts{{Shortage::kGpus, 1, 4}}))
      << "it has never had so many";
}

TEST(CountShortages, SaysOfflineWhereTheSocketHasLostTheGpu) {
  model::Node dead = dgx_h100(1).busy(1);
  dead.gpus[0].state = model::GpuState::kOffline;
  dead.gpus[7].state = model::GpuState::kOffline;
  ShortageCounter counter(gpus(4));
  counter.visit(dead);
  EXPECT_EQ(counter.counts(), (Counts{{Shortage::kGpusOffline, 1, 1}}));
  EXPECT_EQ(counter.nodes_up_that_could_hold(), 0U);
}

TEST(CountShortages, WorksOnPublishedMaps) {
  base::PersistentMap<model::Node> nodes;
  nodes.put(1, node(1).gpus(8));
  nodes.put(2, node(2).gpus(8).state(model::NodeState::kLost));
  EXPECT_EQ(count_shortages(nodes.freeze(), gpus(8)),
            (Counts{{Shortage::kNodeState, 1, 0}, {Shortage::kFits, 1, 0}}));
}

TEST(ShortageProperty, CountsAddUpToTheNodesAndAgreeWithPlacement) {
  EXPECT_TRUE(rc::check([] {
    const NodeList list{random_world(draw).nodes};
    model::ResourceRequest request = random_request(draw);
    if (draw(3) == 2) add_random_names(draw, list.nodes, request);
    std::size_t total = 0;
    std::size_t fits = 0;
    for (const model::WaitCount& count : count_shortages(list, request)) {
      RC_ASSERT(count.nodes > 0U);
      total += count.nodes;
      if (count.shortage == Shortage::kFits) fits = count.nodes;
    }
    RC_ASSERT(total == list.nodes.size());
    std::size_t placeable = 0;
    for (const model::Node& each : list.nodes) {
      placeable += naive_place({each}, request).has_value() ? 1 : 0;
    }
    RC_ASSERT(fits == placeable);
  }));
}

TEST(ShortageProperty, WhatCouldBeHeldFitsOnceTheNodesAreEmpty) {
  EXPECT_TRUE(rc::check([] {
    NodeList list{random_world(draw).nodes};
    const model::ResourceRequest request = random_request(draw);
    ShortageCounter counter(request);
    for (model::Node& each : list.nodes) {
      counter.visit(each);
      each.cpus_used = 0;
      each.memory_used = {};
      each.others_cpus = 0;
      each.others_memory = {};
      for (model::Gpu& gpu : each.gpus) {
        if (!model::is_in_service(gpu)) continue;
        gpu.state = model::GpuState::kAvailable;
        gpu.holders.clear();
      }
    }
    RC_ASSERT((counter.nodes_up_that_could_hold() > 0) ==
              naive_place(list.nodes, request).has_value());
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
