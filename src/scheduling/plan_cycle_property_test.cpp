#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/testing/rounds.h"
#include "model/gpu_catalogue.h"
#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

// Order without exception; backfill has tests of its own.
const model::Policy kStrictPolicy{.backfill_depth = 0};

Plan plan_of(const World& world) {
  Books books = books_of(world.nodes, world.jobs, kStrictPolicy);
  return plan_cycle(books, kStrictPolicy);
}

std::string text_of(const Plan& plan) {
  std::string text;
  for (const Start& start : plan.starts) {
    text += fmt::format("{}:", start.job.value);
    for (const model::NodeAllocation& part : start.allocation.nodes) {
      text += fmt::format(" node {} gpus {} level {} cpus {} memory {};", part.node.value,
                          fmt::join(indices(start.allocation), ","), static_cast<int>(part.level),
                          part.cpus, part.memory.value());
    }
  }
  return text + fmt::format(" blocked {}", plan.blocked_head.value_or(model::JobId()).value);
}

const model::ResourceRequest& request_of(const World& world, model::JobId job) {
  return std::ranges::find(world.jobs, job, &WaitingJob::id)->spec->request;
}

// Returns the rule that the allocation would break on the nodes as they are; empty if it breaks
// none.
std::string over_allocation(const std::vector<model::Node>& nodes,
                            const model::Allocation& allocation) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    const auto holder = std::ranges::find(nodes, part.node, &model::Node::id);
    if (holder == nodes.end()) return "no such node";
    if (holder->state != model::NodeState::kUp) return "node not up";
    if (holder->cpus_used + part.cpus > holder->cpus) return "CPUs";
    if (holder->memory_used + part.memory > holder->memory) return "memory";
    std::set<std::uint32_t> seen;
    for (const model::GpuGrant& grant : part.grants) {
      if (!seen.insert(grant.gpu_index).second) return "GPU twice in one allocation";
      if (!model::is_free(holder->gpus.at(grant.gpu_index))) return "GPU not free";
    }
  }
  return {};
}

TEST(PlanProperty, EqualsTheReferenceThatScansEveryNode) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const World world = random_world(draw);
    const Plan plan = plan_of(world);
    hits.count(!plan.starts.empty());
    RC_ASSERT(text_of(plan) == text_of(naive_plan(world.nodes, world.jobs, kStrictPolicy)));
  }));
  EXPECT_TRUE(hits.are_enough());
}

// In which most jobs name GPUs.
World world_of_names() {
  World world = random_world(draw);
  for (WaitingJob& job : world.jobs) {
    if (draw(4) == 3) continue;
    model::JobSpec spec = *job.spec;
    add_random_names(draw, world.nodes, spec.request);
    job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  }
  return world;
}

TEST(PlanProperty, EqualsTheReferenceWhereJobsNameGpus) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const World world = world_of_names();
    const Plan plan = plan_of(world);
    hits.count(!plan.starts.empty());
    RC_ASSERT(text_of(plan) == text_of(naive_plan(world.nodes, world.jobs, kStrictPolicy)));
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlanProperty, EqualsTheReferenceOverALifeOfUpdates) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    World world = random_world(draw);
    Books books = books_of(world.nodes, world.jobs, kStrictPolicy);
    std::size_t started = 0;
    for (std::uint64_t rounds = 1 + draw(6); rounds > 0; --rounds) {
      const Plan plan = plan_cycle(books, kStrictPolicy);
      started += plan.starts.size();
      RC_ASSERT(text_of(plan) == text_of(naive_plan(world.nodes, world.jobs, kStrictPolicy)));
      for (const Start& start : plan.starts) {
        occupy(world.nodes, start.allocation, start.job);
        std::erase_if(world.jobs, [&](const WaitingJob& job) { return job.id == start.job; });
        books.rewrite([&](Books::Parts& parts) { parts.queue.erase(start.job); });
      }
      for (model::Node& each : world.nodes) {
        if (draw(3) == 0) each = random_node(draw, each.id.value);
        books.put(each);
      }
    }
    hits.count(started > 0);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlanProperty, DoesNotDependOnTheOrderInWhichNodesAndJobsCame) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    World world = random_world(draw);
    const Plan plan = plan_of(world);
    hits.count(!plan.starts.empty());
    shuffle(draw, world.nodes);
    shuffle(draw, world.jobs);
    RC_ASSERT(plan_of(world) == plan);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlanProperty, NeverAllocatesWhatIsNotFree) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    World world = random_world(draw);
    const Plan plan = plan_of(world);
    hits.count(!plan.starts.empty());
    for (const Start& start : plan.starts) {
      RC_ASSERT(over_allocation(world.nodes, start.allocation) == "");
      occupy(world.nodes, start.allocation, start.job);
    }
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlanProperty, GivesEachJobAllItAskedForOfOneType) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const World world = random_world(draw);
    const Plan plan = plan_of(world);
    hits.count(!plan.starts.empty());
    for (const Start& start : plan.starts) {
      const model::ResourceRequest& request = request_of(world, start.job);
      RC_ASSERT(start.allocation.gpu_count() == request.gpus);
      RC_ASSERT(start.allocation.nodes.size() == 1U);
      const model::NodeAllocation& part = start.allocation.nodes[0];
      RC_ASSERT(part.cpus >= request.cpus.value_or(1));
      RC_ASSERT(part.memory >= request.memory.value_or(base::Bytes()));
      const model::Node& holder = *std::ranges::find(world.nodes, part.node, &model::Node::id);
      std::set<std::string> types;
      for (const model::GpuGrant& grant : part.grants) {
        const model::GpuInfo& gpu = holder.gpus.at(grant.gpu_index).info;
        types.insert(gpu.type);
        RC_ASSERT(gpu.memory >= request.gpu_memory);
        RC_ASSERT(grant.share == base::kWholeGpu && grant.memory == gpu.memory);
      }
      RC_ASSERT(types.size() == (request.gpus > 0 ? 1U : 0U));
      const bool is_accepted =
          request.gpus == 0 || request.gpu_types.empty() ||
          std::ranges::any_of(request.gpu_types, [&](const std::string& wanted) {
            return model::gpu_type_matches(wanted, *types.begin());
          });
      RC_ASSERT(is_accepted);
    }
  }));
  EXPECT_TRUE(hits.are_enough());
}

// Order is strict when the started jobs are exactly those before the blocked head.
void expect_strict(const World& world, const Plan& plan) {
  const WaitingQueue queue = queue_of(world.jobs, kStrictPolicy);
  std::size_t position = 0;
  std::optional<model::JobId> first_waiting;
  queue.for_each_while([&](const WaitingJob& job) {
    if (position < plan.starts.size() && plan.starts[position].job == job.id) {
      ++position;
      return true;
    }
    first_waiting = job.id;
    return false;
  });
  RC_ASSERT(position == plan.starts.size());
  RC_ASSERT(plan.blocked_head == first_waiting);
}

TEST(PlanProperty, StartsNoJobWhileOneBeforeItWaits) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const World world = random_world(draw);
    const Plan plan = plan_of(world);
    hits.count(plan.blocked_head && !plan.starts.empty());
    expect_strict(world, plan);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(PlanProperty, PassesOnlyJobsThatNoNodeUpCouldHold) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    World world = random_world(draw);
    Books books = books_of(world.nodes, world.jobs, kStrictPolicy);
    const Plan passing = plan_cycle(books, kStrictPolicy, {.pass_unplaceable = true});
    // An empty, healthy copy of the nodes that are up.
    std::vector<model::Node> empty = world.nodes;
    for (model::Node& each : empty) {
      const model::NodeState state = each.state;
      each = model::as_idle(each);
      each.state = state;
    }
    const std::size_t passed = std::erase_if(world.jobs, [&](const WaitingJob& job) {
      return !naive_place(empty, job.spec->request).has_value();
    });
    hits.count(passed > 0 && !passing.starts.empty());
    RC_ASSERT(text_of(passing) == text_of(naive_plan(world.nodes, world.jobs, kStrictPolicy)));
  }));
  EXPECT_TRUE(hits.are_enough());
}

// Four GPUs in every arrangement of nodes, use and three jobs: nothing left to chance.
class SmallWorlds : public ::testing::TestWithParam<std::vector<std::uint32_t>> {};

std::vector<model::Node> nodes_with(const std::vector<std::uint32_t>& sizes, std::uint32_t busy) {
  std::vector<model::Node> nodes;
  std::uint32_t first = 0;
  for (const std::uint32_t size : sizes) {
    NodeBuilder builder = node(nodes.size() + 1);
    builder.gpus(size, "H100-80GB", base::kGiB * 80, 2).cpus(4);
    for (std::uint32_t i = 0; i < size; ++i) {
      if ((busy >> (first + i) & 1) != 0) builder.busy(i);
    }
    first += size;
    nodes.push_back(builder);
  }
  return nodes;
}

TEST_P(SmallWorlds, EqualTheReferenceAndKeepEveryRule) {
  const auto every = static_cast<std::uint32_t>(base::every_how_many());
  std::size_t worlds = 0;
  for (std::uint32_t busy = 0; busy < 16; ++busy) {
    const std::vector<model::Node> nodes = nodes_with(GetParam(), busy);
    for (std::uint32_t code = 0; code < 5 * 5 * 5 * 8; code += every) {
      World world{.nodes = nodes, .jobs = {}};
      std::uint32_t rest = code;
      for (std::uint64_t id = 1; id <= 3; ++id) {
        const std::uint32_t size = rest % 5;
        rest /= 5;
        const bool is_urgent = (code / 125 >> (id - 1) & 1) != 0;
        world.jobs.push_back(waiting(id, gpus(size), is_urgent ? 1 : 5));
      }
      const Plan plan = plan_of(world);
      ASSERT_EQ(plan, naive_plan(world.nodes, world.jobs, kStrictPolicy)) << busy << " " << code;
      for (const Start& start : plan.starts) {
        ASSERT_EQ(over_allocation(world.nodes, start.allocation), "") << busy << " " << code;
        occupy(world.nodes, start.allocation, start.job);
      }
      ++worlds;
    }
  }
  EXPECT_EQ(worlds, 16 * ((1000 + every - 1) / every));
}

INSTANTIATE_TEST_SUITE_P(Arrangements, SmallWorlds,
                         ::testing::Values(std::vector<std::uint32_t>{4},
                                           std::vector<std::uint32_t>{1, 3},
                                           std::vector<std::uint32_t>{2, 2},
                                           std::vector<std::uint32_t>{2, 1, 1},
                                           std::vector<std::uint32_t>{1, 1, 1, 1}));

}  // namespace
}  // namespace gpu_platform::scheduling
