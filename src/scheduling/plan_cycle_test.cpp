#include "scheduling/plan_cycle.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using Ids = std::vector<std::uint64_t>;

Ids started(const Plan& plan) {
  Ids ids;
  for (const Start& start : plan.starts) ids.push_back(start.job.value);
  return ids;
}

// Backfill has tests of its own.
const model::Policy kPolicy{.backfill_depth = 0};

TEST(PlanCycle, StartsInOrderOfPriority) {
  Books books =
      books_of({node(1).gpus(2)},
               {waiting(1, gpus(1), 5), waiting(2, gpus(1), 8), waiting(3, gpus(1), 1)}, kPolicy);
  const Plan plan = plan_cycle(books, kPolicy);
  EXPECT_EQ(started(plan), (Ids{3, 1}));
  EXPECT_EQ(plan.blocked_head, model::JobId(2));
}

TEST(PlanCycle, LetsNothingPassABlockedHead) {
  Books books = books_of({node(1).gpus(8).busy(0)},
                         {waiting(1, gpus(8), 5), waiting(2, gpus(1), 5)}, kPolicy);
  const Plan plan = plan_cycle(books, kPolicy);
  EXPECT_TRUE(plan.starts.empty());
  EXPECT_EQ(plan.blocked_head, model::JobId(1));
}

TEST(PlanCycle, LeavesTheClusterAsItWas) {
  Books books = books_of({node(1).gpus(8)}, {waiting(1, gpus(3)), waiting(2, gpus(3))}, kPolicy);
  const std::uint64_t hash = books->cluster.hash();
  const std::uint64_t version = books.version();
  EXPECT_EQ(plan_cycle(books, kPolicy).starts.size(), 2U);
  EXPECT_EQ(books->cluster.hash(), hash);
  EXPECT_EQ(books.version(), version);
}

WaitingJob avoiding(WaitingJob job, std::vector<model::NodeId> nodes) {
  job.avoid = std::move(nodes);
  return job;
}

TEST(PlanCycle, KeepsAJobFromTheNodesThatItAvoidsWhereAnotherHasRoom) {
  Books books = books_of(
      {node(1).gpus(1), node(2).gpus(8)},
      {avoiding(waiting(1, gpus(1)), {model::NodeId(1), model::NodeId(7)}), waiting(2, gpus(1))},
      kPolicy);
  const std::uint64_t hash = books->cluster.hash();
  const Plan plan = plan_cycle(books, kPolicy);
  ASSERT_EQ(started(plan), (Ids{1, 2}));
  EXPECT_EQ(plan.starts[0].allocation.nodes.front().node, model::NodeId(2));
  EXPECT_EQ(plan.starts[1].allocation.nodes.front().node, model::NodeId(1));
  EXPECT_EQ(books->cluster.hash(), hash);
}

TEST(PlanCycle, GivesAJobANodeThatItAvoidsWhereNoOtherHasRoom) {
  Books books = books_of({node(1).gpus(1), node(2).gpus(8).busy(0)},
                         {avoiding(waiting(1, gpus(8)), {model::NodeId(2)}),
                          avoiding(waiting(2, gpus(1)), {model::NodeId(1), model::NodeId(2)})},
                         kPolicy);
  EXPECT_EQ(plan_cycle(books, kPolicy).blocked_head, model::JobId(1));
  books.rewrite([](Books::Parts& parts) { parts.queue.erase(model::JobId(1)); });
  const Plan plan = plan_cycle(books, kPolicy);
  ASSERT_EQ(started(plan), Ids{2});
  EXPECT_EQ(plan.starts[0].allocation.nodes.front().node, model::NodeId(1));
}

TEST(PlanCycle, GivesAJobASuspectGpuOnlyIfNoOtherIsFree) {
  WaitingJob job = waiting(1, gpus(1));
  job.avoid_gpus = {"GPU-1-0", "GPU-of-old"};
  Books books = books_of({node(1).gpus(2).named()}, {job}, kPolicy);
  const std::uint64_t hash = books->cluster.hash();
  const Plan elsewhere = plan_cycle(books, kPolicy);
  ASSERT_EQ(started(elsewhere), Ids{1});
  EXPECT_EQ(indices(elsewhere.starts[0].allocation), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(books->cluster.hash(), hash);
  books.put(node(1).gpus(2).named().busy(1));
  const Plan there = plan_cycle(books, kPolicy);
  ASSERT_EQ(started(there), Ids{1});
  EXPECT_EQ(indices(there.starts[0].allocation), (std::vector<std::uint32_t>{0}));
}

TEST(PlanCycle, OfAnEmptyQueueOrClusterIsEmpty) {
  Books empty;
  EXPECT_EQ(plan_cycle(empty, kPolicy), Plan());
  Books books = books_of({}, {waiting(1, gpus(0))}, kPolicy);
  EXPECT_EQ(plan_cycle(books, kPolicy).blocked_head, model::JobId(1));
}

TEST(PlanCycle, StopsAtMostStartsAndSaysSo) {
  Books books = books_of({node(1).gpus(8)},
                         {waiting(1, gpus(1)), waiting(2, gpus(1)), waiting(3, gpus(1))}, kPolicy);
  const Plan plan = plan_cycle(books, kPolicy, {.max_starts = 2});
  EXPECT_EQ(started(plan), (Ids{1, 2}));
  EXPECT_FALSE(plan.complete);
  EXPECT_FALSE(plan.blocked_head.has_value());
  EXPECT_TRUE(plan_cycle(books, kPolicy, {.max_starts = 3}).complete);
}

TEST(PlanCycle, LetsOthersPassAJobThatNoNodeUpCouldHoldWhereAsked) {
  Books books = books_of({node(1).gpus(2), node(2).gpus(8).state(model::NodeState::kLost)},
                         {waiting(1, gpus(8)), waiting(2, gpus(8)), waiting(3, gpus(1)),
                          waiting(4, gpus(2)), waiting(5, gpus(1))},
                         kPolicy);
  EXPECT_EQ(plan_cycle(books, kPolicy).blocked_head, model::JobId(1));
  const Plan plan = plan_cycle(books, kPolicy, {.pass_unplaceable = true});
  EXPECT_EQ(started(plan), (Ids{3}));
  EXPECT_EQ(plan.blocked_head, model::JobId(4));
}

class Recorder : public StageObserver {
 public:
  void begin(Stage stage) override { calls.push_back("begin " + std::string(to_string(stage))); }
  void end(Stage stage) override { calls.push_back("end " + std::string(to_string(stage))); }
  void end_cycle(std::size_t considered) override { considered_jobs = considered; }
  std::vector<std::string> calls;
  std::size_t considered_jobs = 0;
};

TEST(Stages, TellHowManyJobsWereConsidered) {
  Books books = books_of({node(1).gpus(8)},
                         {waiting(1, gpus(1)), waiting(2, gpus(2)), waiting(3, gpus(4))}, kPolicy);
  Recorder recorder;
  plan_cycle(books, kPolicy, {.observer = &recorder});
  EXPECT_EQ(recorder.considered_jobs, 3U);
}

TEST(Stages, RunInTheirOrderAndTellTheObserver) {
  Books books;
  Recorder recorder;
  plan_cycle(books, kPolicy, {.observer = &recorder});
  EXPECT_EQ(recorder.calls,
            (std::vector<std::string>{"begin order", "end order", "begin quota", "end quota",
                                      "begin place", "end place", "begin backfill", "end backfill",
                                      "begin preempt", "end preempt", "begin lend", "end lend",
                                      "begin yield", "end yield"}));
}

TEST(Stages, CanEachBeSwitchedOffAlone) {
  Books books =
      books_of({node(1).gpus(1)}, {waiting(1, gpus(1), 8), waiting(2, gpus(1), 1)}, kPolicy);
  for (const Stage off : kStages) {
    Recorder recorder;
    const Plan plan =
        plan_cycle(books, kPolicy, {.stages = Stages().without(off), .observer = &recorder});
    EXPECT_EQ(recorder.calls.size(), 2 * (kStages.size() - 1));
    EXPECT_EQ(started(plan), off == Stage::kOrder ? Ids{1} : off == Stage::kPlace ? Ids{} : Ids{2});
  }
}

class CacheTest : public ::testing::Test {
 protected:
  Plan plan() { return cache_.plan(books_, policy_); }

  model::Policy policy_;
  Books books_ = books_of({node(1).gpus(8).busy(0)}, {waiting(1, gpus(8))}, policy_);
  CycleCache cache_;
};

TEST_F(CacheTest, AnswersACycleInWhichNothingChanged) {
  const Plan first = plan();
  EXPECT_FALSE(first.unchanged);
  Plan second = plan();
  EXPECT_TRUE(second.unchanged);
  second.unchanged = false;
  EXPECT_EQ(second, first);
}

TEST_F(CacheTest, IsVoidWhenTheClusterChanged) {
  plan();
  books_.put(node(1).gpus(8));
  EXPECT_EQ(started(plan()), (Ids{1}));
}

TEST_F(CacheTest, IsVoidWhenTheQueueChanged) {
  plan();
  books_.rewrite([&](Books::Parts& parts) { parts.queue.put(waiting(2, gpus(1), 0), policy_); });
  EXPECT_EQ(started(plan()), (Ids{2}));
}

TEST_F(CacheTest, IsVoidWhenThePolicyChanged) {
  plan();
  policy_.max_queue_size += 1;
  EXPECT_FALSE(plan().unchanged);
}

TEST_F(CacheTest, NeverKeepsStarts) {
  books_.put(node(1).gpus(8));
  EXPECT_EQ(started(plan()), (Ids{1}));
  const Plan again = plan();
  EXPECT_EQ(started(again), (Ids{1}));
  EXPECT_FALSE(again.unchanged);
}

}  // namespace
}  // namespace gpu_platform::scheduling
