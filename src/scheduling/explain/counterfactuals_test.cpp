#include "scheduling/explain/counterfactuals.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/job_spec.h"
#include "scheduling/testing/boards.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

// A cluster at rest: every job that can start has.
struct AtRest {
  std::vector<model::Node> nodes;
  Books books;
  model::Policy policy;
  Plan plan;

  void settle() {
    while (true) {
      plan = plan_cycle(books, policy, {.now = kNow});
      if (plan.starts.empty()) return;
      for (const Start& start : plan.starts) {
        occupy(nodes, start.allocation, start.job);
        const base::Instant end = kNow + books->queue.find(start.job)->spec->time_limit;
        const bool yields = start.yields_at.is_set();
        books.rewrite([&](Books::Parts& parts) {
          parts.running.put({start.job, 1}, yields ? start.yields_at : end, start.allocation,
                            yields);
          parts.queue.erase(start.job);
        });
      }
      for (const model::Node& each : nodes) books.put(each);
    }
  }

  std::vector<Counterfactual> of(model::JobId job) {
    const CycleOptions options{.now = kNow};
    WhatIf what_if(books, policy, options, plan.planned_starts, *books->queue.find_rank(job));
    return counterfactuals(what_if, books->cluster, *books->queue.find(job));
  }
};

AtRest at_rest(std::vector<model::Node> nodes, const std::vector<WaitingJob>& jobs,
               const model::Policy& policy = {}) {
  AtRest world;
  world.nodes = std::move(nodes);
  world.policy = policy;
  world.books = books_of(world.nodes, jobs, policy);
  world.settle();
  return world;
}

WaitingJob limited(WaitingJob job, base::Duration limit) {
  auto spec = std::make_shared<model::JobSpec>(*job.spec);
  spec->time_limit = limit;
  job.spec = std::move(spec);
  return job;
}

std::vector<std::string> options(const std::vector<Counterfactual>& found) {
  std::vector<std::string> texts;
  for (const Counterfactual& each : found) texts.push_back(option_of(each));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Counterfactuals, AJobCouldAcceptDegradedGpus) {
  AtRest world = at_rest({node(1).gpus(2).degraded(0)}, {waiting(1, gpus(2))});
  EXPECT_EQ(options(world.of(model::JobId(1))), (Texts{"--gpus 1", "--accept-degraded"}));
  AtRest healthy = at_rest({node(1).gpus(2).busy(0)}, {waiting(1, gpus(2))});
  EXPECT_EQ(options(healthy.of(model::JobId(1))), Texts{"--gpus 1"});
}

TEST(Counterfactuals, AJobTooLargeCouldHaveFewerGpus) {
  AtRest world = at_rest({node(1).gpus(8).busy(0).busy(1)}, {waiting(1, gpus(8))});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--gpus 6"});
}

TEST(Counterfactuals, AJobOfAnotherTypeCouldHaveTheFreeOne) {
  model::ResourceRequest request = gpus(2);
  request.gpu_types = {"H100-80GB"};
  AtRest world =
      at_rest({node(1).gpus(2).busy(0).busy(1), node(2).gpus(4, "T4-16GB", base::kGiB * 16)},
              {waiting(1, request)});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--gpu-type T4-16GB"});
}

TEST(Counterfactuals, AJobThatWantsMoreMemoryCouldHaveLess) {
  model::ResourceRequest request = gpus(1);
  request.gpu_memory = base::kGiB * 80;
  AtRest world = at_rest({node(1).gpus(1).busy(0), node(2).gpus(4, "T4-16GB", base::kGiB * 16)},
                         {waiting(1, request)});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--gpu-memory 16G"});
}

TEST(Counterfactuals, AJobOnOneSocketCouldLieOnTwo) {
  AtRest world = at_rest({node(1)
                              .gpus(8, "H100-80GB", base::kGiB * 80, 4)
                              .sockets({0, 1})
                              .busy(0)
                              .busy(1)
                              .busy(4)
                              .busy(5)},
                         {waiting(1, gpus(4))});
  EXPECT_EQ(options(world.of(model::JobId(1))), (Texts{"--gpus 2", "--allow-cross-numa"}));
}

TEST(Counterfactuals, AJobOfOneCapacityClassCouldTakeAny) {
  model::ResourceRequest request = gpus(1);
  request.capacity = model::CapacityRequest::kSpot;
  AtRest world =
      at_rest({node(1).gpus(1), node(2).gpus(1).busy(0).capacity(model::CapacityClass::kSpot)},
              {waiting(1, request)});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--capacity any"});
}

TEST(Counterfactuals, AJobWithManyCpusCouldHaveFewer) {
  model::ResourceRequest request = gpus(1);
  request.cpus = 60;
  request.memory = base::kGiB * 500;
  AtRest world = at_rest({node(1).gpus(8).cpus(64).used(32)}, {waiting(1, request)});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--cpus 32"});
}

TEST(Counterfactuals, AJobWithMuchMemoryCouldHaveLess) {
  model::ResourceRequest request = gpus(1);
  request.memory = base::kGiB * 500;
  AtRest world =
      at_rest({node(1).gpus(8).used(1, base::kGiB * 112 + base::kMiB)}, {waiting(1, request)});
  EXPECT_EQ(options(world.of(model::JobId(1))), Texts{"--memory 399G"});
}

// The job with the planned start can begin in an hour and the grace of 30 seconds.
TEST(Counterfactuals, AJobThatWouldDelayAPlannedStartCouldTakeLessTime) {
  const WaitingJob running = limited(waiting(1, gpus(4)), base::hours(1));
  const WaitingJob head = limited(waiting(2, gpus(8)), base::hours(1));
  const WaitingJob longer = limited(waiting(3, gpus(2)), base::hours(3));
  AtRest world = at_rest({node(1).gpus(8)}, {running, head, longer});
  EXPECT_EQ(options(world.of(model::JobId(3))), Texts{"--time 1h"});
  EXPECT_EQ(options(world.of(model::JobId(2))), Texts{"--gpus 4"});
}

// It would be let in before the job with the planned start by what is expected of it.
TEST(Counterfactuals, AJobThatIsExpectedToBeShortCouldBeStoppable) {
  const WaitingJob running = limited(waiting(1, gpus(4)), base::hours(1));
  const WaitingJob head = limited(waiting(2, gpus(8)), base::hours(1));
  WaitingJob longer = limited(waiting(3, gpus(2)), base::hours(3));
  auto spec = std::make_shared<model::JobSpec>(*longer.spec);
  spec->expected_time = base::minutes(5);
  longer.spec = std::move(spec);
  AtRest world = at_rest({node(1).gpus(8)}, {running, head, longer});
  EXPECT_EQ(options(world.of(model::JobId(3))), (Texts{"--time 1h", "--preemptible"}));
}

TEST(Counterfactuals, NoJobPassesWhereOrderIsStrict) {
  model::Policy policy;
  policy.backfill_depth = 0;
  const WaitingJob head = limited(waiting(2, gpus(8)), base::hours(1));
  const WaitingJob behind = limited(waiting(3, gpus(8)), base::hours(1));
  AtRest world = at_rest({node(1).gpus(8).busy(0)}, {head, behind}, policy);
  EXPECT_EQ(world.of(model::JobId(3)), std::vector<Counterfactual>());
  EXPECT_EQ(options(world.of(model::JobId(2))), Texts{"--gpus 7"});
}

TEST(Counterfactuals, NothingHelpsWhereEverythingIsBusy) {
  AtRest world = at_rest({node(1).gpus(1).busy(0)}, {waiting(1, gpus(1))});
  EXPECT_EQ(world.of(model::JobId(1)), std::vector<Counterfactual>());
}

// Each job, asked for as its counterfactual says, starts in the next cycle; all else being equal.
RC_GTEST_PROP(Counterfactuals, StartWhenTheyAreAskedFor, ()) {
  const Draw draw = [](std::uint64_t n) { return *rc::gen::inRange<std::uint64_t>(0, n); };
  World drawn = random_world(draw, {.max_nodes = 6, .max_jobs = 10});
  for (WaitingJob& job : drawn.jobs) {
    job = limited(job, base::minutes(static_cast<std::int64_t>(1 + draw(300))));
    auto spec = std::make_shared<model::JobSpec>(*job.spec);
    if (draw(2) == 1) spec->expected_time = base::minutes(static_cast<std::int64_t>(1 + draw(60)));
    job.spec = std::move(spec);
  }
  model::Policy policy;
  policy.backfill_depth = static_cast<std::uint32_t>(draw(4));
  AtRest world = at_rest(std::move(drawn.nodes), drawn.jobs, policy);
  std::vector<WaitingJob> left;
  world.books->queue.for_each_while([&](const WaitingJob& job) {
    left.push_back(job);
    return true;
  });
  std::size_t asked = 0;
  for (const WaitingJob& job : left) {
    const std::uint64_t before = world.books->cluster.hash();
    for (const Counterfactual& changed : world.of(job.id)) {
      ++asked;
      RC_ASSERT(world.books->cluster.hash() == before);
      auto spec = std::make_shared<model::JobSpec>(*job.spec);
      spec->request = changed.request;
      spec->time_limit = changed.time_limit;
      if (changed.change == Change::kPreemptible) spec->preemptible = true;
      WaitingJob again = job;
      again.spec = std::move(spec);
      world.books.rewrite([&](Books::Parts& parts) { parts.queue.put(again, policy); });
      const Plan plan = plan_cycle(world.books, policy, {.now = kNow});
      RC_ASSERT(std::ranges::count(plan.starts, job.id, &Start::job) == 1);
      world.books.rewrite([&](Books::Parts& parts) { parts.queue.put(job, policy); });
    }
  }
  RC_TAG(asked == 0 ? "none" : "some");
}

// For a job with a planned start, slot_of() returns that planned start.
RC_GTEST_PROP(WhatIf, FindsThePlannedStartsOfThePlan, ()) {
  const Draw draw = [](std::uint64_t n) { return *rc::gen::inRange<std::uint64_t>(0, n); };
  World drawn = random_world(draw, {.max_nodes = 6, .max_jobs = 10});
  for (WaitingJob& job : drawn.jobs) {
    job = limited(job, base::minutes(static_cast<std::int64_t>(1 + draw(300))));
  }
  AtRest world = at_rest(std::move(drawn.nodes), drawn.jobs);
  for (const PlannedStart& each : world.plan.planned_starts) {
    const WaitingQueue& queue = world.books->queue;
    const CycleOptions options{.now = kNow};
    WhatIf what_if(world.books, world.policy, options, world.plan.planned_starts,
                   *queue.find_rank(each.job));
    RC_ASSERT(what_if.slot_of(*queue.find(each.job)) == each.slot);
  }
}

}  // namespace
}  // namespace gpu_platform::scheduling
