// What holds of victims in every world, compared with a search through all sets.

#include <bit>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/placement/place.h"
#include "scheduling/preemption/find_victims.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

const base::Instant kNow = base::Instant() + base::hours(1000);
constexpr base::Duration kMinRuntime = base::minutes(5);

std::uint64_t draw(std::uint64_t n) {
  return *rc::gen::inRange<std::uint64_t>(0, n);
}

struct FullWorld {
  std::vector<model::Node> nodes;
  std::vector<Victim> victims;  // all that run
  model::ResourceRequest request;
  model::PriorityClass priority_class = model::PriorityClass::kMedium;
};

// Jobs run where the reference places them; another one waits.
FullWorld full_world() {
  World world = random_world(draw, {.max_nodes = 3, .max_jobs = 12});
  FullWorld full;
  full.nodes = std::move(world.nodes);
  for (const WaitingJob& job : world.jobs) {
    const auto allocation = naive_place(full.nodes, job.spec->request);
    if (!allocation || full.victims.size() == 10) continue;
    occupy(full.nodes, *allocation, job.id);
    full.victims.push_back({{job.id, 1},
                            static_cast<model::PriorityClass>(3 - draw(3)),
                            kNow + base::minutes(-static_cast<std::int64_t>(3 + draw(20))),
                            *allocation});
  }
  // Mostly like one of those that run, so that it would fit in place of some.
  const bool is_alike = !world.jobs.empty() && draw(4) != 0;
  full.request =
      is_alike ? world.jobs[draw(world.jobs.size())].spec->request : random_request(draw);
  full.priority_class = static_cast<model::PriorityClass>(draw(2));
  return full;
}

bool may_be_stopped(const FullWorld& world, const Victim& victim) {
  return victim.priority_class > world.priority_class && victim.started_at + kMinRuntime <= kNow;
}

std::int64_t lost_ms(const Victim& victim) {
  return base::whole_milliseconds(kNow - victim.started_at) *
         std::max<std::int64_t>(1, victim.allocation.gpu_count());
}

std::vector<model::Node> without(const FullWorld& world,
                                 const std::vector<model::AttemptId>& gone) {
  std::vector<model::Node> nodes = world.nodes;
  for (const Victim& victim : world.victims) {
    if (!std::ranges::binary_search(gone, victim.attempt)) continue;
    for (const model::NodeAllocation& part : victim.allocation.nodes) {
      model::Node& holder = *std::ranges::find(nodes, part.node, &model::Node::id);
      holder.cpus_used -= part.cpus;
      holder.memory_used -= part.memory;
      for (const model::GpuGrant& grant : part.grants) {
        model::Gpu& gpu = holder.gpus.at(grant.gpu_index);
        gpu.holders.clear();
        if (gpu.state == model::GpuState::kAllocated) gpu.state = model::GpuState::kAvailable;
      }
    }
  }
  return nodes;
}

std::optional<Fit> found_in(const FullWorld& world, VictimSearch::Options options) {
  Cluster cluster = cluster_of(world.nodes);
  VictimIndex index;
  for (const Victim& victim : world.victims) index.put(victim);
  Trial trial(cluster);
  options.now = kNow;
  options.min_runtime = kMinRuntime;
  VictimSearch search(trial, index, options);
  const std::uint64_t before = cluster.hash();
  auto fit = search.find({world.request, world.priority_class},
                         [&] { return place(trial, world.request); });
  RC_ASSERT(cluster.hash() == before);
  return fit;
}

// The least loss of all sets that make room; nothing where none does.
std::optional<std::int64_t> least_loss(const FullWorld& world) {
  std::optional<std::int64_t> least;
  for (std::uint32_t set = 1; set < (1U << world.victims.size()); ++set) {
    std::int64_t lost = 0;
    bool is_allowed = true;
    std::vector<model::AttemptId> gone;
    for (std::size_t i = 0; i < world.victims.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      is_allowed = is_allowed && may_be_stopped(world, world.victims[i]);
      lost += lost_ms(world.victims[i]);
      gone.push_back(world.victims[i].attempt);
    }
    if (!is_allowed || (least && *least <= lost)) continue;
    std::ranges::sort(gone);
    if (naive_place(without(world, gone), world.request)) least = lost;
  }
  return least;
}

TEST(VictimsProperty, TheCheapestSetIsFound) {
  EXPECT_TRUE(rc::check([] {
    const FullWorld world = full_world();
    RC_PRE(!naive_place(world.nodes, world.request));
    const std::optional<Fit> fit = found_in(world, {});
    const std::optional<std::int64_t> least = least_loss(world);
    RC_ASSERT(fit.has_value() == least.has_value());
    RC_TAG(fit ? fit->victims.size() : 0);
    if (!fit) return;
    std::int64_t lost = 0;
    for (const Victim& victim : world.victims) {
      if (!std::ranges::binary_search(fit->victims, victim.attempt)) continue;
      RC_ASSERT(may_be_stopped(world, victim));
      lost += lost_ms(victim);
    }
    RC_ASSERT(lost == *least);
  }));
}

// With every bound so tight that only a little is looked at.
TEST(VictimsProperty, WhatIsFoundMakesRoomAndNobodyOfItCouldBeSpared) {
  EXPECT_TRUE(rc::check([] {
    const FullWorld world = full_world();
    RC_PRE(!naive_place(world.nodes, world.request));
    VictimSearch::Options options;
    options.max_exact = draw(4);
    options.max_nodes = draw(3);
    options.max_steps = draw(30);
    options.max_looks = 1 + draw(12);
    const std::optional<Fit> fit = found_in(world, options);
    if (!fit) return;
    const auto there = naive_place(without(world, fit->victims), world.request);
    RC_ASSERT(there == fit->allocation);
    for (std::size_t i = 0; i < fit->victims.size(); ++i) {
      std::vector<model::AttemptId> fewer = fit->victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!naive_place(without(world, fewer), world.request));
    }
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
