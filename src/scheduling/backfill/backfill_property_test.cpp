// These properties hold for backfill in every world. They are checked by following the plan through
// time without any of its code.

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

base::Duration random_limit() {
  return base::minutes(static_cast<std::int64_t>(1 + draw(12)));
}

struct BusyWorld {
  std::vector<model::Node> nodes;
  std::vector<WaitingJob> waiting;
  std::map<model::JobId, base::Duration> limits;
  RunningEnds running;
  RunHistory history;  // empty: what is expected of a job is what its user says
  model::Policy policy;
};

// In one of four it was let in by what was expected of it, and perhaps is to yield now.
void let_run_at(BusyWorld& busy, model::JobId job, base::Duration limit,
                const model::Allocation& allocation) {
  base::Instant end = kNow + limit;
  const bool yields = draw(4) == 3;
  if (yields && draw(2) == 1) end = kNow;
  if (!yields && draw(8) == 7) end = RunningEnds::kAnyTime;
  busy.running.put({job, 1}, end, allocation, yields);
}

// Some jobs of a random world run, where the reference places them; the others wait.
BusyWorld busy_world() {
  World world = random_world(draw, {.max_nodes = 6, .max_jobs = 24});
  BusyWorld busy;
  busy.nodes = std::move(world.nodes);
  busy.policy.stop_grace = base::seconds(static_cast<std::int64_t>(30 * draw(3)));
  constexpr std::uint32_t kDepths[] = {1, 2, 8, 1000};
  busy.policy.backfill_depth = kDepths[draw(4)];
  for (WaitingJob& job : world.jobs) {
    const base::Duration limit = random_limit();
    const auto allocation =
        draw(2) == 0 ? naive_place(busy.nodes, job.spec->request) : std::nullopt;
    if (allocation) {
      occupy(busy.nodes, *allocation, job.id);
      let_run_at(busy, job.id, limit, *allocation);
    } else {
      model::JobSpec spec = *job.spec;
      spec.time_limit = limit;
      if (draw(2) == 1) spec.preemptible = true;
      if (draw(2) == 1) spec.expected_time = random_limit();
      if (draw(4) == 3) spec.request = random_gang(draw);
      for (std::size_t i = 0; i < spec.request.gpu_types.size(); ++i) {
        const auto speed = static_cast<std::uint32_t>(250 * (1 + draw(8)));
        spec.request.gpu_speeds.push_back(i == 0 ? model::kFullSpeed : speed);
      }
      busy.limits[job.id] = limit;
      busy.waiting.push_back({job.id, std::make_shared<model::JobSpec>(spec), job.submitted_at});
      busy.waiting.back().preemptions = draw(4) == 3 ? 1 : 0;
    }
  }
  return busy;
}

Plan backfilled(const BusyWorld& world, std::uint32_t depth) {
  model::Policy policy = world.policy;
  policy.backfill_depth = depth;
  Books books({.history = world.history,
               .cluster = cluster_of(world.nodes),
               .queue = queue_of(world.waiting, policy),
               .running = world.running});
  return plan_cycle(books, policy, {.now = kNow});
}
Plan backfilled(const BusyWorld& world) {
  return backfilled(world, world.policy.backfill_depth);
}

void give_back(std::vector<model::Node>& nodes, const model::Allocation& allocation,
               model::JobId job) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    model::Node& holder = *std::ranges::find(nodes, part.node, &model::Node::id);
    holder.cpus_used -= part.cpus;
    holder.memory_used -= part.memory;
    for (const model::GpuGrant& grant : part.grants) {
      model::Gpu& gpu = holder.gpus.at(grant.gpu_index);
      std::erase_if(gpu.holders, [&](const auto& h) { return h.attempt.job == job; });
      if (gpu.state == model::GpuState::kAllocated) gpu.state = model::GpuState::kAvailable;
    }
  }
}

bool is_free(const std::vector<model::Node>& nodes, const model::Allocation& allocation) {
  return std::ranges::all_of(allocation.nodes, [&](const model::NodeAllocation& part) {
    const model::Node& holder = *std::ranges::find(nodes, part.node, &model::Node::id);
    return holder.state == model::NodeState::kUp && holder.cpus_used + part.cpus <= holder.cpus &&
           holder.memory_used + part.memory <= holder.memory &&
           std::ranges::all_of(part.grants, [&](const model::GpuGrant& grant) {
             return model::is_free(holder.gpus.at(grant.gpu_index));
           });
  });
}

struct Holding {
  model::JobId job;
  model::Allocation allocation;
};

base::Duration limit_of(const BusyWorld& world, model::JobId job,
                        const model::Allocation& allocation) {
  return model::limit_at_speed(world.limits.at(job), allocation.speed);
}

// When each job gives back: by hard limits, and earlier if the job is to yield.
std::multimap<base::Instant, Holding> ends_of(const BusyWorld& world, const Plan& plan,
                                              std::size_t starts) {
  std::multimap<base::Instant, Holding> ends;
  for (const auto& [key, allocation] : world.running.ends()) {
    base::Instant end = kNow + base::nanoseconds(1);
    if (key.end.is_set()) end = std::max(end, key.end + world.policy.stop_grace);
    ends.emplace(end, Holding{key.attempt.job, allocation});
  }
  for (std::size_t i = 0; i < starts; ++i) {
    const Start& start = plan.starts[i];
    const base::Instant end = start.yields_at.is_set()
                                  ? start.yields_at
                                  : kNow + limit_of(world, start.job, start.allocation);
    ends.emplace(end + world.policy.stop_grace, Holding{start.job, start.allocation});
  }
  return ends;
}

// An attempt that was to yield by now and may stay does not give back then.
void let_stay(std::multimap<base::Instant, Holding>& ends, const Plan& plan, base::Duration grace) {
  for (const Yield& yield : plan.yields) {
    if (yield.to.valid()) continue;
    const auto own = std::ranges::find(ends, yield.attempt.job,
                                       [](const auto& entry) { return entry.second.job; });
    const Holding holding = own->second;
    ends.erase(own);
    if (yield.yields_at.is_set()) ends.emplace(yield.yields_at + grace, holding);
  }
}

TEST(BackfillProperty, JobsBeforeTheBlockedHeadStartAsWithoutBackfill) {
  EXPECT_TRUE(rc::check([] {
    const BusyWorld world = busy_world();
    const Plan strict = backfilled(world, 0);
    const Plan plan = backfilled(world);
    RC_ASSERT(plan.blocked_head == strict.blocked_head);
    RC_ASSERT(plan.starts.size() >= strict.starts.size());
    RC_ASSERT(
        std::ranges::equal(strict.starts, std::span(plan.starts).first(strict.starts.size())));
  }));
}

// Every job takes all of its time. At each planned start the planned place is free.
TEST(BackfillProperty, NoStartMovesAPlannedStart) {
  EXPECT_TRUE(rc::check([] {
    const BusyWorld world = busy_world();
    const Plan plan = backfilled(world);
    std::vector<model::Node> nodes = world.nodes;
    for (const Start& start : plan.starts) {
      RC_ASSERT(is_free(nodes, start.allocation));
      occupy(nodes, start.allocation, start.job);
    }
    std::multimap<base::Instant, Holding> ends = ends_of(world, plan, plan.starts.size());
    let_stay(ends, plan, world.policy.stop_grace);
    std::multimap<base::Instant, Holding> begins;
    for (const PlannedStart& each : plan.planned_starts) {
      begins.emplace(each.slot.start, Holding{each.job, each.slot.allocation});
    }
    RC_TAG(plan.planned_starts.size());
    for (const auto& [at, holding] : begins) {
      while (!ends.empty() && ends.begin()->first <= at) {
        give_back(nodes, ends.begin()->second.allocation, ends.begin()->second.job);
        ends.erase(ends.begin());
      }
      RC_ASSERT(is_free(nodes, holding.allocation));
      occupy(nodes, holding.allocation, holding.job);
      const base::Duration limit = limit_of(world, holding.job, holding.allocation);
      ends.emplace(at + limit + world.policy.stop_grace, holding);
    }
  }));
}

// A job that is let in by its prediction has all of that time, could be stopped, and is stopped
// only for a job that needs its place.
TEST(BackfillProperty, WhoIsTrustedHasTheTimeThatIsExpectedOfIt) {
  EXPECT_TRUE(rc::check([] {
    const BusyWorld world = busy_world();
    const Plan plan = backfilled(world);
    std::size_t trusted = 0;
    for (const Start& start : plan.starts) {
      if (!start.yields_at.is_set()) continue;
      ++trusted;
      const WaitingJob& job = *std::ranges::find(world.waiting, start.job, &WaitingJob::id);
      RC_ASSERT(start.why == model::StartWhy::kBackfill);
      RC_ASSERT(job.preemptions == 0);
      RC_ASSERT(model::is_preemptible(*job.spec, world.policy));
      RC_ASSERT(job.spec->expected_time.has_value());
      const auto expected = model::limit_at_speed(*job.spec->expected_time, start.allocation.speed);
      RC_ASSERT(start.yields_at >= kNow + expected);
      RC_ASSERT(start.yields_at < kNow + limit_of(world, start.job, start.allocation));
    }
    RC_TAG(trusted);
    std::size_t due = 0;
    for (const RunningEnds::Key& key : world.running.yielding()) due += key.end <= kNow ? 1 : 0;
    RC_ASSERT(plan.yields.size() == due);
    for (const Yield& yield : plan.yields) {
      const auto holds_place = [&](const PlannedStart& each) { return each.job == yield.to; };
      RC_ASSERT(!yield.to.valid() || std::ranges::any_of(plan.planned_starts, holds_place));
      RC_ASSERT(!yield.yields_at.is_set() || yield.yields_at > kNow);
    }
  }));
}

TEST(BackfillProperty, FirstPlannedStartIsTheEarliestThereIs) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    const BusyWorld world = busy_world();
    const Plan strict = backfilled(world, 0);
    const Plan plan = backfilled(world);
    if (!hits.count(strict.blocked_head.has_value())) return;
    std::vector<model::Node> nodes = world.nodes;
    for (const Start& start : strict.starts) occupy(nodes, start.allocation, start.job);
    const auto head = std::ranges::find(world.waiting, *strict.blocked_head, &WaitingJob::id);
    std::optional<base::Instant> earliest;
    for (const auto& [at, holding] : ends_of(world, plan, strict.starts.size())) {
      give_back(nodes, holding.allocation, holding.job);
      if (!naive_fits(nodes, head->spec->request)) continue;
      earliest = at;
      break;
    }
    RC_TAG(earliest.has_value());
    const bool has_reservation =
        !plan.planned_starts.empty() && plan.planned_starts.front().job == head->id;
    RC_ASSERT(has_reservation == earliest.has_value());
    if (earliest) RC_ASSERT(plan.planned_starts.front().slot.start == *earliest);
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(BackfillProperty, SamePlanWhateverTheOrderInWhichThingsCame) {
  EXPECT_TRUE(rc::check([] {
    BusyWorld world = busy_world();
    const Plan plan = backfilled(world);
    shuffle(draw, world.nodes);
    shuffle(draw, world.waiting);
    RC_ASSERT(backfilled(world) == plan);
  }));
}

TEST(BackfillProperty, KeepsAtMostSoManyPlannedStartsAsThePolicySays) {
  EXPECT_TRUE(rc::check([] {
    const BusyWorld world = busy_world();
    RC_ASSERT(backfilled(world).planned_starts.size() <= world.policy.backfill_depth);
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
