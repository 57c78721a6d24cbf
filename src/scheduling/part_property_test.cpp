#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduling/explain/feasibility.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/placement/place.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"
#include "scheduling/trial.h"

// Worlds in which jobs share GPUs: the same rules hold, and parts add up.

namespace gpu_platform::scheduling {
namespace {

struct SharedWorld {
  World world;
  model::Policy policy{.backfill_depth = 0};
};

SharedWorld shared_world() {
  SharedWorld result{random_world(draw), {}};
  result.policy.backfill_depth = 0;
  result.policy.sharing = random_sharing(draw);
  add_random_parts(draw, result.world.nodes);
  for (WaitingJob& job : result.world.jobs) {
    if (draw(3) == 0) continue;
    model::JobSpec spec = *job.spec;
    make_random_part(draw, spec.request);
    if (draw(4) == 3) add_random_names(draw, result.world.nodes, spec.request);
    job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  }
  return result;
}

std::string text_of_shared(const Plan& plan) {
  std::string text;
  for (const Start& start : plan.starts) {
    text += fmt::format("{}:", start.job.value);
    for (const model::NodeAllocation& part : start.allocation.nodes) {
      text += fmt::format(" node {} level {} cpus {} memory {};", part.node.value,
                          static_cast<int>(part.level), part.cpus, part.memory.value());
      for (const model::GpuGrant& grant : part.grants) {
        text +=
            fmt::format(" GPU {} {} {} {} {} {};", grant.gpu_index, grant.share.value(),
                        grant.memory.value(), model::to_string(grant.mode),
                        model::to_string(grant.wall.memory), model::to_string(grant.wall.compute));
      }
    }
    text += fmt::format(" {} {}", start.allocation.tenant.uid, start.allocation.tenant.team);
  }
  return text + fmt::format(" blocked {}", plan.blocked_head.value_or(model::JobId()).value);
}

// Returns the first GPU of which more is given than it has, or in two ways.
std::string broken_sharing(const std::vector<model::Node>& nodes) {
  for (const model::Node& node : nodes) {
    for (const model::Gpu& gpu : node.gpus) {
      base::GpuShare share;
      base::Bytes memory;
      for (const model::GpuHolder& holder : gpu.holders) {
        share += holder.share;
        memory += holder.memory;
        if (holder.mode != gpu.holders.front().mode) return gpu.info.uuid + " in two modes";
        const bool is_alone = holder.uid == gpu.holders.front().uid;
        if (holder.mode == model::ShareMode::kMps && !is_alone) return gpu.info.uuid + " MPS users";
      }
      if (share > base::kWholeGpu) return gpu.info.uuid + " share";
      if (memory > gpu.info.memory) return gpu.info.uuid + " memory";
    }
  }
  return {};
}

bool starts_a_part(const Plan& plan) {
  return std::ranges::any_of(plan.starts,
                             [](const Start& start) { return model::is_part(start.allocation); });
}

TEST(PartProperty, APlanEqualsTheReferenceThatScansEveryNode) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const auto [world, policy] = shared_world();
    Books books = books_of(world.nodes, world.jobs, policy);
    const std::uint64_t hash = books->cluster.hash();
    const Plan plan = plan_cycle(books, policy);
    hits.count(starts_a_part(plan));
    RC_ASSERT(books->cluster.hash() == hash);
    RC_ASSERT(text_of_shared(plan) == text_of_shared(naive_plan(world.nodes, world.jobs, policy)));
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PartProperty, WhatIsGivenOfAGpuAddsUp) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    auto [world, policy] = shared_world();
    RC_PRE(broken_sharing(world.nodes).empty());
    policy.backfill_depth = static_cast<std::uint32_t>(draw(4));
    Books books = books_of(world.nodes, world.jobs, policy);
    const Plan plan = plan_cycle(books, policy, {.now = kNow});
    hits.count(starts_a_part(plan));
    for (const Start& start : plan.starts) {
      occupy(world.nodes, start.allocation, start.job);
      RC_ASSERT(broken_sharing(world.nodes) == "");
    }
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PartProperty, AnIndexThatFollowsEqualsOneThatIsComputedAfresh) {
  EXPECT_TRUE(rc::check([] {
    auto [world, policy] = shared_world();
    Cluster cluster = cluster_of(world.nodes, policy.sharing);
    for (std::uint64_t steps = draw(10); steps > 0 && !world.nodes.empty(); --steps) {
      if (draw(4) == 0) policy.sharing = draw(3) == 0 ? model::Sharing() : random_sharing(draw);
      model::Node& node = world.nodes[draw(world.nodes.size())];
      switch (draw(3)) {
        case 0: {
          model::ResourceRequest request = gpus(1);
          make_random_part(draw, request);
          const auto allocation = place(cluster, request);
          if (allocation) occupy(world.nodes, *allocation, model::JobId(steps));
          break;
        }
        case 1: {
          std::vector<model::Node> other = {random_node(draw, node.id.value)};
          add_random_parts(draw, other);
          node = other.front();
          break;
        }
        default:
          for (model::Gpu& gpu : node.gpus) {
            if (gpu.holders.empty() || draw(2) == 0) continue;
            gpu.holders.pop_back();
            if (gpu.holders.empty()) gpu.state = model::GpuState::kAvailable;
          }
      }
      cluster.follow(policy.sharing);
      for (const model::Node& each : world.nodes) cluster.update(each);
      RC_ASSERT(cluster == cluster_of(world.nodes, policy.sharing));
    }
  }));
}

TEST(PartProperty, ATrialReturnsToEachOfNestedMarks) {
  EXPECT_TRUE(rc::check([] {
    const auto [world, policy] = shared_world();
    Cluster cluster = cluster_of(world.nodes, policy.sharing);
    Trial trial(cluster);
    std::vector<model::Allocation> taken;
    std::vector<std::pair<Trial::Mark, std::uint64_t>> marks;
    for (std::uint64_t steps = draw(12); steps > 0; --steps) {
      marks.emplace_back(trial.mark(), cluster.hash());
      if (!taken.empty() && draw(3) == 0) {
        const std::size_t which = draw(taken.size());
        trial.release(taken[which]);
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      model::ResourceRequest request = random_request(draw);
      if (draw(3) != 0) make_random_part(draw, request);
      const auto allocation = place(trial, request);
      if (!allocation) continue;
      RC_ASSERT(is_free(cluster, *allocation));
      trial.take(*allocation);
      taken.push_back(*allocation);
    }
    for (; !marks.empty(); marks.pop_back()) {
      trial.rollback_to(marks.back().first);
      RC_ASSERT(cluster.hash() == marks.back().second);
    }
  }));
}

TEST(PartProperty, TakingAndGivingBackIsTheSameAsNothing) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const auto [world, policy] = shared_world();
    Cluster cluster = cluster_of(world.nodes, policy.sharing);
    const std::uint64_t hash = cluster.hash();
    Trial trial(cluster);
    model::ResourceRequest request = random_request(draw);
    make_random_part(draw, request);
    const auto allocation = place(trial, request);
    if (!hits.count(allocation.has_value())) return;
    trial.take(*allocation);
    RC_ASSERT(cluster.hash() != hash);
    trial.release(*allocation);
    RC_ASSERT(cluster.hash() == hash);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PartProperty, ShortagesAddUpToTheNodesAndAgreeWithPlacement) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const auto [world, policy] = shared_world();
    model::ResourceRequest request = random_request(draw);
    make_random_part(draw, request);
    if (draw(3) == 2) add_random_names(draw, world.nodes, request);
    std::size_t total = 0;
    std::size_t fits = 0;
    for (const auto& count : count_shortages(NodeList{world.nodes}, request, policy.sharing)) {
      total += count.nodes;
      if (count.shortage == model::Shortage::kFits) fits = count.nodes;
    }
    RC_ASSERT(total == world.nodes.size());
    std::size_t placeable = 0;
    for (const model::Node& each : world.nodes) {
      placeable += naive_place({each}, request, policy.sharing).has_value() ? 1 : 0;
    }
    hits.count(placeable > 0);
    RC_ASSERT(fits == placeable);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PartProperty, FeasibilityAgreesWithPlacementOnEmptyHealthyNodes) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    auto [world, policy] = shared_world();
    model::ResourceRequest request = random_request(draw);
    make_random_part(draw, request);
    if (draw(3) == 2) add_random_names(draw, world.nodes, request);
    NodeList list{world.nodes};
    const bool could = could_ever_fit(list, request, policy.sharing).has_value();
    for (model::Node& each : list.nodes) each = model::as_idle(each);
    hits.count(could);
    RC_ASSERT(could == naive_place(list.nodes, request, policy.sharing).has_value());
  }));
  EXPECT_TRUE(hits.are_enough());
}

// What the bookings of a cycle keep is there when their time comes, whatever has started since.
TEST(PartProperty, NoStartDelaysAPlannedStart) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    auto [world, policy] = shared_world();
    RC_PRE(broken_sharing(world.nodes).empty());
    policy.backfill_depth = static_cast<std::uint32_t>(1 + draw(6));
    policy.stop_grace = base::seconds(30);
    RunningEnds running;
    for (std::size_t i = 0; i < world.jobs.size();) {  // some run already
      const auto place = draw(2) == 0
                             ? naive_place(world.nodes, world.jobs[i].spec->request, policy.sharing)
                             : std::nullopt;
      if (!place) {
        ++i;
        continue;
      }
      const model::JobId id = world.jobs[i].id;
      occupy(world.nodes, *place, id);
      running.put({id, 1}, kNow + base::minutes(static_cast<std::int64_t>(1 + draw(60))), *place);
      world.jobs.erase(world.jobs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (WaitingJob& job : world.jobs) {
      model::JobSpec spec = *job.spec;
      spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + draw(60)));
      job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
    }
    Books books = books_of(world.nodes, world.jobs, policy);
    books.rewrite([&](Books::Parts& parts) { parts.running = running; });
    const Plan plan = plan_cycle(books, policy, {.now = kNow});
    hits.count(!plan.planned_starts.empty() && starts_a_part(plan));
    // All that starts, and each planned start at its time, on the nodes as they are then.
    struct Held {
      base::Instant until;
      model::Allocation allocation;
      model::JobId job;
    };
    std::vector<Held> held;
    for (const auto& [key, allocation] : running.ends()) {
      held.push_back({key.end + policy.stop_grace, allocation, key.attempt.job});
    }
    const auto begin = [&](const model::Allocation& allocation, base::Instant at,
                           model::JobId job) {
      const auto spec = std::ranges::find(world.jobs, job, &WaitingJob::id)->spec;
      const auto limit = model::limit_at_speed(spec->time_limit, allocation.speed);
      occupy(world.nodes, allocation, job);
      held.push_back({at + limit + policy.stop_grace, allocation, job});
      RC_ASSERT(broken_sharing(world.nodes) == "");
    };
    const auto end_by = [&](base::Instant at) {
      std::erase_if(held, [&](const Held& each) {
        if (each.until > at) return false;
        for (const model::NodeAllocation& part : each.allocation.nodes) {
          model::Node& node = *std::ranges::find(world.nodes, part.node, &model::Node::id);
          node.cpus_used -= part.cpus;
          node.memory_used -= part.memory;
          for (const model::GpuGrant& grant : part.grants) {
            model::Gpu& gpu = node.gpus[grant.gpu_index];
            std::erase_if(gpu.holders, [&](const auto& h) { return h.attempt.job == each.job; });
            model::settle(gpu);
          }
        }
        return true;
      });
    };
    for (const Start& start : plan.starts) begin(start.allocation, kNow, start.job);
    std::vector<PlannedStart> planned = plan.planned_starts;
    std::ranges::stable_sort(planned, {}, [](const PlannedStart& each) { return each.slot.start; });
    for (const PlannedStart& each : planned) {
      end_by(each.slot.start);
      const Cluster then = cluster_of(world.nodes, policy.sharing);
      RC_ASSERT(is_free(then, each.slot.allocation, Accepts::kDegraded));
      begin(each.slot.allocation, each.slot.start, each.job);
    }
  }));
  EXPECT_TRUE(hits.are_enough());
}

}  // namespace
}  // namespace gpu_platform::scheduling
