// Backfill with planned starts, by examples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Backfill : public ::testing::Test {
 protected:
  Backfill() { policy_.stop_grace = {}; }

  // A job that runs on so many GPUs of the node and ends in so many minutes.
  void running(std::uint64_t job, std::uint64_t on, std::vector<std::uint32_t> gpu_indices,
               std::int64_t minutes, std::uint32_t cpus = 1) {
    model::NodeAllocation part{.node = model::NodeId(on), .grants = {}, .cpus = cpus, .memory = {}};
    for (const std::uint32_t index : gpu_indices) {
      part.grants.push_back({index, base::kWholeGpu, base::kGiB * 80});
    }
    const model::Allocation allocation{{part}};
    occupy(nodes_, allocation, model::JobId(job));
    const base::Instant end = minutes == 0 ? RunningEnds::kAnyTime : kNow + base::minutes(minutes);
    ends_.put({model::JobId(job), 1}, end, allocation);
  }
  void wait(std::uint64_t job, std::uint32_t gpu_count, std::int64_t minutes,
            std::uint32_t cpus = 1) {
    model::ResourceRequest request = gpus(gpu_count);
    request.cpus = cpus;
    request.memory = base::Bytes();
    model::JobSpec spec;
    spec.request = request;
    spec.time_limit = base::minutes(minutes);
    jobs_.push_back({model::JobId(job), std::make_shared<model::JobSpec>(spec),
                     base::Instant() + base::seconds(static_cast<std::int64_t>(job))});
  }
  template <class Change>
  void change(std::uint64_t job, Change change_it) {
    WaitingJob& waiting = *std::ranges::find(jobs_, model::JobId(job), &WaitingJob::id);
    auto spec = std::make_shared<model::JobSpec>(*waiting.spec);
    change_it(spec->request);
    waiting.spec = std::move(spec);
  }
  Plan plan(std::size_t max_starts = 1000) {
    Books books({.history = history_,
                 .cluster = cluster_of(nodes_),
                 .queue = queue_of(jobs_, policy_),
                 .running = ends_});
    const std::uint64_t before = books->cluster.hash();
    Plan result = plan_cycle(books, policy_, {.now = kNow, .max_starts = max_starts});
    EXPECT_EQ(books->cluster.hash(), before);
    return result;
  }
  static std::vector<std::uint64_t> started(const Plan& plan) {
    std::vector<std::uint64_t> jobs;
    for (const Start& start : plan.starts) jobs.push_back(start.job.value);
    return jobs;
  }
  // (job, minutes from now) of each planned start.
  static std::vector<std::pair<std::uint64_t, std::int64_t>> planned_start(const Plan& plan) {
    std::vector<std::pair<std::uint64_t, std::int64_t>> result;
    for (const PlannedStart& each : plan.planned_starts) {
      result.emplace_back(each.job.value,
                          (each.slot.start - kNow).value() / base::minutes(1).value());
    }
    return result;
  }

  std::vector<model::Node> nodes_;
  std::vector<WaitingJob> jobs_;
  RunningEnds ends_;
  RunHistory history_;
  model::Policy policy_;
};

using At = std::pair<std::uint64_t, std::int64_t>;

TEST_F(Backfill, ShortJobRunsBeforeThePlannedStartAndALongOneDoesNot) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);  // needs all, in an hour
  wait(2, 1, 90);  // would run into that
  wait(3, 1, 60);  // ends just then
  const Plan made = plan();
  EXPECT_THAT(started(made), ElementsAre(3));
  EXPECT_EQ(made.starts[0].why, model::StartWhy::kBackfill);
  EXPECT_EQ(made.blocked_head, model::JobId(1));
  EXPECT_EQ(planned_start(made).front(), At(1, 60));
}

TEST_F(Backfill, GraceCountsAsTimeThatAJobMayTake) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);
  wait(3, 1, 60);
  policy_.stop_grace = base::seconds(30);
  EXPECT_THAT(started(plan()), ElementsAre(3));  // the grace of both is the same
  ends_.put({model::JobId(90), 1}, kNow + base::minutes(60) + base::seconds(-1),
            ends_.ends().begin()->second);
  EXPECT_THAT(started(plan()), IsEmpty());
}

TEST_F(Backfill, LongJobTakesGpusThatThePlannedStartDoesNotNeed) {
  nodes_ = {node(1).gpus(4), node(2).gpus(2)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);
  wait(2, 2, 10'000);
  const Plan made = plan();
  ASSERT_THAT(started(made), ElementsAre(2));
  EXPECT_EQ(made.starts[0].allocation.nodes[0].node, model::NodeId(2));
}

TEST_F(Backfill, AGangAcrossNodesKeepsItsPlaceOnAllOfThem) {
  nodes_ = {node(1).gpus(4), node(2).gpus(4), node(3).gpus(4)};
  running(90, 1, {0, 1, 2, 3}, 60);
  running(91, 2, {0, 1, 2, 3}, 120);
  running(92, 3, {0}, 240);
  wait(1, 4, 30);
  change(1, [](model::ResourceRequest& request) { request.nodes = 2; });
  wait(2, 3, 1000);  // on node 3, which the gang does not need
  wait(3, 4, 50);    // would hold node 1 when the gang needs it no sooner than it ends
  const Plan made = plan();
  EXPECT_THAT(started(made), ElementsAre(2));
  EXPECT_THAT(planned_start(made), ElementsAre(At(1, 120), At(3, 60)));
}

TEST_F(Backfill, TakesTheSlowerTypeNowAndReckonsWithTheTimeThatItTakesThere) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1, "A100-80GB")};
  running(90, 1, {0}, 60);
  wait(1, 1, 30);
  change(1, [](model::ResourceRequest& request) {
    request.gpu_types = {"H100", "A100"};
    request.gpu_speeds = {1000, 500};
  });
  wait(2, 1, 10);
  change(2, [](model::ResourceRequest& request) { request.gpu_types = {"A100"}; });
  const Plan made = plan();
  ASSERT_THAT(started(made), ElementsAre(1));
  EXPECT_EQ(made.starts[0].allocation.speed, 500U);
  // Half the speed: 30 minutes become 60.
  EXPECT_THAT(planned_start(made), ElementsAre(At(2, 60)));
}

TEST_F(Backfill, ASlowerTypeOnWhichItWouldMeetAPlannedStartIsNotTaken) {
  nodes_ = {node(1).gpus(1), node(2).gpus(2, "A100-80GB")};
  running(90, 1, {0}, 200);
  running(91, 2, {0}, 60);
  wait(1, 2, 30);  // both A100, in an hour
  change(1, [](model::ResourceRequest& request) { request.gpu_types = {"A100"}; });
  wait(2, 1, 40);
  change(2, [](model::ResourceRequest& request) {
    request.gpu_types = {"H100", "A100"};
    request.gpu_speeds = {1000, 500};
  });
  wait(3, 1, 40);
  change(3, [](model::ResourceRequest& request) { request.gpu_types = {"H100", "A100"}; });
  EXPECT_THAT(started(plan()), ElementsAre(3));
}

TEST_F(Backfill, AnotherNodeWithAsManyFreeGpusIsNoPlaceForAGang) {
  // Six GPUs are free at once, but never four on one node before the hour is over.
  nodes_ = {node(1).gpus(4), node(2).gpus(4)};
  running(90, 1, {0}, 120);
  running(91, 2, {0}, 60);
  wait(1, 4, 30);
  EXPECT_THAT(planned_start(plan()), ElementsAre(At(1, 60)));
}

TEST_F(Backfill, SecondPlannedStartStandsBehindTheFirst) {
  nodes_ = {node(1).gpus(2)};
  running(90, 1, {0, 1}, 60);
  wait(1, 2, 30);
  wait(2, 2, 15);
  wait(3, 1, 5);
  EXPECT_THAT(planned_start(plan()), ElementsAre(At(1, 60), At(2, 90), At(3, 105)));
}

TEST_F(Backfill, PlannedStartFillsAGapBetweenOthers) {
  nodes_ = {node(1).gpus(2)};
  running(90, 1, {0}, 60);
  running(91, 1, {1}, 20);
  wait(1, 2, 30);
  wait(2, 1, 50);  // too long for the gap before job 1
  wait(3, 1, 40);  // just fits into it
  EXPECT_THAT(planned_start(plan()), ElementsAre(At(1, 60), At(2, 90), At(3, 20)));
}

TEST_F(Backfill, DepthSaysHowManyHavePlannedStarts) {
  nodes_ = {node(1).gpus(2)};
  running(90, 1, {0, 1}, 60);
  for (std::uint64_t job = 1; job <= 5; ++job) wait(job, 2, 10);
  policy_.backfill_depth = 1;
  EXPECT_THAT(planned_start(plan()), ElementsAre(At(1, 60)));
  policy_.backfill_depth = 3;
  EXPECT_EQ(plan().planned_starts.size(), 3u);
  policy_.backfill_depth = 1000;
  EXPECT_THAT(planned_start(plan()),
              ElementsAre(At(1, 60), At(2, 70), At(3, 80), At(4, 90), At(5, 100)));
}

TEST_F(Backfill, WithoutDepthOrderIsStrict) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);
  wait(2, 1, 1);
  policy_.backfill_depth = 0;
  const Plan made = plan();
  EXPECT_THAT(started(made), IsEmpty());
  EXPECT_THAT(made.planned_starts, IsEmpty());
}

TEST_F(Backfill, JobsBeingEndedLeaveNoGap) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 0);
  wait(1, 4, 30);
  wait(2, 1, 1);
  const Plan made = plan();
  EXPECT_THAT(started(made), IsEmpty());
  EXPECT_EQ(made.planned_starts.front().slot.start, kNow + base::nanoseconds(1));
}

TEST_F(Backfill, OverdueJobsEndAtTheNextInstant) {
  nodes_ = {node(1).gpus(2)};
  running(90, 1, {0, 1}, -5);
  wait(1, 2, 30);
  EXPECT_EQ(plan().planned_starts.front().slot.start, kNow + base::nanoseconds(1));
}

TEST_F(Backfill, GpusOutOfServiceAreNotWaitedFor) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  nodes_[0].gpus[1].state = model::GpuState::kDraining;
  wait(1, 4, 30);
  wait(2, 2, 10'000);
  wait(3, 3, 30);  // of the three in service, when those of job 2 come back
  const Plan made = plan();
  EXPECT_THAT(started(made), ElementsAre(2));
  EXPECT_THAT(planned_start(made), ElementsAre(At(3, 10'000)));
}

TEST_F(Backfill, CpusOfAPlannedStartAreKeptToo) {
  nodes_ = {node(1).gpus(4).cpus(10)};
  running(90, 1, {0}, 60, 2);
  wait(1, 4, 30, 10);
  wait(2, 0, 90, 1);
  wait(3, 0, 60, 1);
  EXPECT_THAT(started(plan()), ElementsAre(3));
}

TEST_F(Backfill, CpusThatAPlannedStartLeavesAreUsed) {
  nodes_ = {node(1).gpus(4).cpus(10)};
  running(90, 1, {0}, 60, 2);
  wait(1, 4, 30, 6);
  wait(2, 0, 90, 2);
  EXPECT_THAT(started(plan()), ElementsAre(2));
}

TEST_F(Backfill, WhatStartsInACycleIsWaitedForInTheSame) {
  nodes_ = {node(1).gpus(2)};
  wait(1, 2, 45);
  wait(2, 2, 10);
  const Plan made = plan();
  EXPECT_THAT(started(made), ElementsAre(1));
  EXPECT_THAT(planned_start(made), ElementsAre(At(2, 45)));
}

TEST_F(Backfill, StopsAtTheBoundOfStarts) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);
  wait(2, 1, 1);
  wait(3, 1, 1);
  EXPECT_FALSE(plan(1).complete);
  EXPECT_THAT(started(plan(1)), ElementsAre(2));
  EXPECT_TRUE(plan(2).complete);
}

TEST_F(Backfill, AnswersFromTheCacheUntilARunningJobChangesItsEnd) {
  nodes_ = {node(1).gpus(4)};
  running(90, 1, {0, 1}, 60);
  wait(1, 4, 30);
  wait(2, 1, 90);
  Books books({.cluster = cluster_of(nodes_), .queue = queue_of(jobs_, policy_), .running = ends_});
  CycleCache cache;
  const auto cycle = [&](base::Instant now) { return cache.plan(books, policy_, {.now = now}); };
  EXPECT_FALSE(cycle(kNow).unchanged);
  EXPECT_TRUE(cycle(kNow + base::minutes(30)).unchanged);
  books.rewrite([&](Books::Parts& parts) {
    parts.running.put({model::JobId(90), 1}, kNow + base::minutes(200),
                      ends_.ends().begin()->second);
  });
  const Plan later = cycle(kNow + base::minutes(30));
  EXPECT_FALSE(later.unchanged);
  EXPECT_THAT(started(later), ElementsAre(2));
}

// By what is expected of them, beside eight GPUs of which 1 has four for an hour and 2 waits for
// all.
class Trust : public Backfill {
 protected:
  Trust() {
    policy_.stop_grace = base::minutes(1);
    nodes_ = {node(1).gpus(8)};
    running(1, 1, {0, 1, 2, 3}, 59);
    wait(2, 8, 10);
    wait(3, 4, 600);
    expect_of(3, 30);
  }

  model::JobSpec& spec(std::uint64_t job) {
    WaitingJob& waiting = *std::ranges::find(jobs_, model::JobId(job), &WaitingJob::id);
    auto copy = std::make_shared<model::JobSpec>(*waiting.spec);
    model::JobSpec& changed = *copy;
    waiting.spec = std::move(copy);
    return changed;
  }
  void expect_of(std::uint64_t job, std::int64_t minutes) {
    spec(job).preemptible = true;
    spec(job).expected_time = base::minutes(minutes);
  }
  void ends(std::uint64_t job, base::Instant end, bool yields) {
    const model::AttemptId attempt{model::JobId(job), 1};
    const auto own = std::ranges::find(ends_.ends(), attempt,
                                       [](const auto& entry) { return entry.first.attempt; });
    ends_.put(attempt, end, model::Allocation(own->second), yields);
  }
  // Job 3 runs and yields so many minutes from now.
  void runs_on(std::int64_t minutes) {
    jobs_.erase(std::ranges::find(jobs_, model::JobId(3), &WaitingJob::id));
    running(3, 1, {4, 5, 6, 7}, 1000);
    ends(3, kNow + base::minutes(minutes), true);
  }
};

TEST_F(Trust, LetsAJobInThatIsExpectedToBeGoneByThen) {
  const Plan found = plan();
  EXPECT_EQ(started(found), std::vector<std::uint64_t>{3});
  EXPECT_EQ(found.starts[0].yields_at, kNow + base::minutes(59)) << "the grace before its place";
  EXPECT_EQ(found.starts[0].passed, model::JobId(2));
  EXPECT_EQ(planned_start(found), (std::vector<std::pair<std::uint64_t, std::int64_t>>{{2, 60}}));
}

TEST_F(Trust, IsForThoseWhoCanBeStoppedAndNeverWere) {
  spec(3).preemptible = false;
  EXPECT_THAT(plan().starts, IsEmpty());
  spec(3).preemptible = true;
  jobs_.back().preemptions = 1;
  EXPECT_THAT(plan().starts, IsEmpty());
  jobs_.back().preemptions = 0;
  for (const auto forbid : {+[](model::Policy& p) { p.allow_preemption = false; },
                            +[](model::Policy& p) { p.backfill_by_prediction = false; },
                            +[](model::Policy& p) { p.max_preemptions_per_job = 0; }}) {
    const model::Policy before = policy_;
    forbid(policy_);
    EXPECT_THAT(plan().starts, IsEmpty());
    policy_ = before;
  }
  EXPECT_EQ(plan().starts.size(), 1U);
}

TEST_F(Trust, IsNoMoreThanTheTimeUntilThen) {
  // Half as long again, as long as it is not known how far its user keeps to such times.
  expect_of(3, 40);
  EXPECT_THAT(plan().starts, IsEmpty()) << "with the grace it would be too late";
  expect_of(3, 39);
  EXPECT_EQ(plan().starts.size(), 1U);
}

TEST_F(Trust, RestsOnNineInTenOfTheRunsOfItsLike) {
  spec(3).expected_time.reset();
  EXPECT_THAT(plan().starts, IsEmpty());
  for (const std::int64_t minutes : {5, 20, 30}) history_.add(spec(3), base::minutes(minutes));
  EXPECT_EQ(plan().starts.size(), 1U);
  for (int i = 0; i < 3; ++i) history_.add(spec(3), base::minutes(300));
  EXPECT_THAT(plan().starts, IsEmpty());
}

// The first of equal jobs may not be let in, the next may.
TEST_F(Trust, OneThatWasStoppedOnceIsNoObstacleToItsEquals) {
  wait(4, 4, 600);
  expect_of(4, 30);
  std::ranges::find(jobs_, model::JobId(3), &WaitingJob::id)->preemptions = 1;
  EXPECT_EQ(started(plan()), std::vector<std::uint64_t>{4});
}

TEST_F(Trust, WhoIsNotGoneByThenIsStoppedForThePlaceItStandsIn) {
  runs_on(0);
  ends(1, RunningEnds::kAnyTime, false);
  const Plan found = plan();
  EXPECT_THAT(found.yields,
              ElementsAre(Yield{{model::JobId(3), 1}, model::JobId(2), base::Instant()}));
}

TEST_F(Trust, AnAttemptInNoJobsPlaceMayStay) {
  runs_on(0);
  jobs_.clear();
  const Plan found = plan();
  EXPECT_THAT(found.yields, ElementsAre(Yield{{model::JobId(3), 1}, {}, base::Instant()}));
}

// The place it yields to is not before an hour from now: others hold it for as long.
TEST_F(Trust, WhoIsNotInTheWayYetIsLookedAtAgain) {
  runs_on(0);
  const Plan found = plan();
  EXPECT_THAT(found.yields, ElementsAre(Yield{{model::JobId(3), 1}, {}, kNow + base::minutes(59)}));
}

TEST_F(Trust, TheCycleRunsAgainWhenAnAttemptIsToYield) {
  runs_on(20);
  const Plan found = plan();
  EXPECT_THAT(found.yields, IsEmpty());
  EXPECT_EQ(found.look_again_at, kNow + base::minutes(20));
}

}  // namespace
}  // namespace gpu_platform::scheduling
