#include "scheduling/trial.h"
#include "scheduling/testing/draw.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/placement/place.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

// Takes what some request gets, or gives back something taken before, at random.
void act(Trial& trial, std::vector<model::Allocation>& taken) {
  if (!taken.empty() && draw(3) == 0) {
    const std::size_t which = draw(taken.size());
    trial.release(taken[which]);
    taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
    return;
  }
  const auto allocation = place(trial, draw(2) == 0 ? random_request(draw) : random_gang(draw));
  if (!allocation.has_value()) return;
  trial.take(*allocation);
  taken.push_back(*allocation);
}

bool is_nothing(const model::Allocation& allocation) {
  return std::ranges::all_of(allocation.nodes, [](const model::NodeAllocation& part) {
    return part.grants.empty() && part.cpus == 0 && part.memory == base::Bytes();
  });
}

TEST(Trial, WhatAJobGivesBackMakesUpFirstForWhatOthersTook) {
  Cluster cluster = cluster_of({node(1).cpus(8).used(6, base::kGiB * 8).others(5)});
  Trial trial(cluster);
  model::NodeAllocation part;
  part.node = model::NodeId(1);
  part.cpus = 2;
  part.memory = base::kGiB;
  trial.release({{part}});
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.cpus, 0U);
  trial.release({{part}});
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.cpus, 1U);
  trial.release({{part}});
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.cpus, 3U) << "others still have theirs";
}

TEST(TrialProperty, RolledBackLeavesTheClusterAsItWas) {
  EXPECT_TRUE(rc::check([] {
    Cluster cluster = cluster_of(random_world(draw).nodes);
    const std::uint64_t hash = cluster.hash();
    {
      Trial trial(cluster);
      std::vector<model::Allocation> taken;
      for (std::uint64_t steps = draw(20); steps > 0; --steps) act(trial, taken);
    }
    RC_ASSERT(cluster.hash() == hash);
  }));
}

TEST(TrialProperty, ReturnsToEachOfNestedMarks) {
  EXPECT_TRUE(rc::check([] {
    Cluster cluster = cluster_of(random_world(draw).nodes);
    Trial trial(cluster);
    std::vector<model::Allocation> taken;
    std::vector<std::pair<Trial::Mark, std::uint64_t>> marks;
    for (std::uint64_t steps = draw(8); steps > 0; --steps) {
      marks.emplace_back(trial.mark(), cluster.hash());
      act(trial, taken);
    }
    for (; !marks.empty(); marks.pop_back()) {
      trial.rollback_to(marks.back().first);
      RC_ASSERT(cluster.hash() == marks.back().second);
    }
  }));
}

TEST(TrialProperty, TakingAndGivingBackIsTheSameAsNothing) {
  EXPECT_TRUE(rc::check([] {
    Cluster cluster = cluster_of(random_world(draw).nodes);
    const std::uint64_t hash = cluster.hash();
    Trial trial(cluster);
    const auto allocation = place(trial, draw(2) == 0 ? random_request(draw) : random_gang(draw));
    RC_PRE(allocation.has_value());
    trial.take(*allocation);
    RC_ASSERT(cluster.hash() != hash || is_nothing(*allocation));
    trial.release(*allocation);
    RC_ASSERT(cluster.hash() == hash);
  }));
}

TEST(Trial, KeepsWhatIsCommitted) {
  Cluster cluster = cluster_of({node(1).gpus(8)});
  {
    Trial trial(cluster);
    trial.take(*place(cluster, gpus(8)));
    trial.commit();
  }
  EXPECT_EQ(cluster.find(model::NodeId(1))->free.gpus, 0U);
}

TEST(TrialDeathTest, StopsTheProgramRatherThanGiveAGpuTwice) {
  Cluster cluster = cluster_of({node(1).gpus(1)});
  const model::Allocation allocation = *place(cluster, gpus(1));
  Trial trial(cluster);
  trial.take(allocation);
  EXPECT_DEATH(trial.take(allocation), "");
}

}  // namespace
}  // namespace gpu_platform::scheduling
