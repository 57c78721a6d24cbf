// What holds of victims in every world, compared with a search through all sets.

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/preemption/find_victims.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

struct FullWorld {
  std::vector<model::Node> nodes;
  std::vector<Victim> victims;  // all that run
  model::ResourceRequest request;
  model::PriorityClass priority_class = model::PriorityClass::kMedium;
  model::PreemptionRule rule = model::PreemptionRule::kClass;

  VictimIndex::PoolNames pools;  // in which it may have borrowers stopped

  Beneficiary beneficiary() const { return {request, priority_class, rule, "own", pools}; }
};

// Jobs run where the reference places them; another one waits.
FullWorld full_world() {
  World world = random_world(draw, {.max_nodes = 3, .max_jobs = 12});
  FullWorld full;
  full.nodes = std::move(world.nodes);
  std::vector<model::ResourceRequest> placed;
  // Mostly requests that many nodes can serve, else hardly a world is full.
  const bool is_plain = draw(4) != 0;
  for (const WaitingJob& job : world.jobs) {
    const model::ResourceRequest request =
        is_plain ? gpus(1 + static_cast<std::uint32_t>(draw(3))) : job.spec->request;
    const auto allocation = naive_place(full.nodes, request);
    if (!allocation || full.victims.size() == 10) continue;
    occupy(full.nodes, *allocation, job.id);
    placed.push_back(request);
    full.victims.push_back({{job.id, 1},
                            static_cast<model::PriorityClass>(3 - draw(3)),
                            kNow + base::minutes(-static_cast<std::int64_t>(3 + draw(20))),
                            *allocation});
    Victim& victim = full.victims.back();
    victim.yields_to_class = draw(8) != 0;
    victim.yields_to_overdue = draw(3) != 0;
    victim.team = draw(3) == 0 ? "own" : "other";
    victim.is_borrowed = draw(3) != 0;
    if (victim.is_borrowed) victim.pool = draw(3) == 0 ? "H100" : "";
    victim.preempt_min_runtime = base::minutes(static_cast<std::int64_t>(draw(3) * 5));
    victim.reclaim_min_runtime = base::minutes(static_cast<std::int64_t>(draw(2) * draw(15)));
    victim.stops = static_cast<std::uint32_t>(draw(6));
  }
  // Mostly like one of the running jobs, or larger, so that it would fit in place of some.
  const bool is_alike = !placed.empty() && draw(2) != 0;
  const bool is_large = is_plain && draw(4) != 0;
  full.request = is_alike   ? placed[draw(placed.size())]
                 : is_large ? gpus(2 + static_cast<std::uint32_t>(draw(5)))
                            : random_request(draw);
  full.priority_class = static_cast<model::PriorityClass>(draw(3));
  full.rule = static_cast<model::PreemptionRule>(draw(model::kPreemptionRules));
  if (draw(4) != 0) full.pools.emplace_back("");
  if (draw(3) != 0) full.pools.emplace_back("H100");
  return full;
}

bool may_be_stopped(const FullWorld& world, const Victim& victim) {
  if (world.rule == model::PreemptionRule::kReclaim) {
    return victim.is_borrowed && victim.started_at + victim.reclaim_min_runtime <= kNow &&
           std::ranges::find(world.pools, victim.pool) != world.pools.end();
  }
  if (!victim.yields_to_class || victim.started_at + victim.preempt_min_runtime > kNow)
    return false;
  const bool is_of_other_team = victim.yields_to_overdue && victim.team != "own";
  const bool is_like = victim.priority_class == world.priority_class && is_of_other_team;
  return victim.priority_class > world.priority_class ||
         (is_like && world.rule == model::PreemptionRule::kOverdue);
}

// How often one that is reclaimed was stopped before: more than three times is as three times.
std::uint32_t stops_of(const FullWorld& world, const Victim& victim) {
  if (world.rule != model::PreemptionRule::kReclaim) return 0;
  return std::min<std::uint32_t>(victim.stops, 3);
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
  VictimSearch search(trial, index, options);
  const std::uint64_t before = cluster.hash();
  auto fit = search.find(world.beneficiary(), [&] { return place(trial, world.request); });
  RC_ASSERT(cluster.hash() == before);
  return fit;
}

// The most stops of one of them, and what all of them lose.
using Loss = std::pair<std::uint32_t, std::int64_t>;

// The least loss of all sets that make room; nothing where none does.
std::optional<Loss> least_loss(const FullWorld& world) {
  std::optional<Loss> least;
  for (std::uint32_t set = 1; set < (1U << world.victims.size()); ++set) {
    Loss lost;
    bool is_allowed = true;
    std::vector<model::AttemptId> gone;
    for (std::size_t i = 0; i < world.victims.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      is_allowed = is_allowed && may_be_stopped(world, world.victims[i]);
      lost.first = std::max(lost.first, stops_of(world, world.victims[i]));
      lost.second += lost_ms(world.victims[i]);
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
    const std::optional<Loss> least = least_loss(world);
    RC_ASSERT(fit.has_value() == least.has_value());
    RC_TAG(fit ? fit->victims.size() : 0);
    if (!fit) return;
    Loss lost;
    for (const Victim& victim : world.victims) {
      if (!std::ranges::binary_search(fit->victims, victim.attempt)) continue;
      RC_ASSERT(may_be_stopped(world, victim));
      lost.first = std::max(lost.first, stops_of(world, victim));
      lost.second += lost_ms(victim);
    }
    RC_ASSERT(lost == *least);
  }));
}

// With every bound so tight that only a little is looked at.
TEST(VictimsProperty, WhatIsFoundMakesRoomAndNobodyOfItCouldBeSpared) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const FullWorld world = full_world();
    RC_PRE(!naive_place(world.nodes, world.request));
    VictimSearch::Options options;
    options.max_exact = draw(4);
    options.max_nodes = 1 + draw(3);
    options.max_steps = 4 + draw(60);
    options.max_looks = 4 + draw(24);
    const std::optional<Fit> fit = found_in(world, options);
    if (!hits.count(fit.has_value())) return;
    const auto there = naive_place(without(world, fit->victims), world.request);
    RC_ASSERT(there == fit->allocation);
    for (std::size_t i = 0; i < fit->victims.size(); ++i) {
      std::vector<model::AttemptId> fewer = fit->victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!naive_place(without(world, fewer), world.request));
    }
  }));
  EXPECT_TRUE(hits.are_enough());
}

}  // namespace
}  // namespace gpu_platform::scheduling
