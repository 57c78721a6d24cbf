// Preemption with preemption holds, by examples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using model::PriorityClass;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Preempting : public ::testing::Test {
 protected:
  struct Part {
    std::uint64_t node;
    std::vector<std::uint32_t> gpus;
  };

  // A job that has run for so many minutes and may run for a day.
  model::AttemptId running(std::uint64_t job, const std::vector<Part>& parts, std::int64_t minutes,
                           PriorityClass priority = PriorityClass::kLow,
                           bool is_preemptible = true) {
    model::Allocation allocation;
    for (const Part& each : parts) {
      model::NodeAllocation part{
          .node = model::NodeId(each.node), .grants = {}, .cpus = 1, .memory = {}};
      for (const std::uint32_t index : each.gpus) {
        part.grants.push_back({index, base::kWholeGpu, base::kGiB * 80});
      }
      allocation.nodes.push_back(part);
    }
    occupy(nodes_, allocation, model::JobId(job));
    const model::AttemptId id{model::JobId(job), 1};
    const base::Instant started_at = kNow + base::minutes(-minutes);
    ends_.put(id, started_at + base::hours(24), allocation);
    Victim victim{id, priority, started_at, allocation};
    victim.preempt_min_runtime = policy_.preempt_min_runtime;
    if (is_preemptible) victims_.put(std::move(victim));
    return id;
  }
  void wait(std::uint64_t job, std::uint32_t gpu_count, std::uint8_t priority = 3,
            std::int64_t minutes = 60) {
    model::JobSpec spec;
    spec.request = gpus(gpu_count);
    spec.request.cpus = 1;
    spec.request.memory = base::Bytes();
    spec.priority = model::priority_of_number(priority);
    spec.time_limit = base::minutes(minutes);
    jobs_.push_back({model::JobId(job), std::make_shared<model::JobSpec>(spec),
                     base::Instant() + base::seconds(static_cast<std::int64_t>(job))});
  }
  void hold(std::uint64_t job, std::uint64_t on, const std::vector<std::uint32_t>& gpu_indices,
            base::Bytes memory = {}) {
    model::NodeAllocation part{
        .node = model::NodeId(on), .grants = {}, .cpus = 1, .memory = memory};
    for (const std::uint32_t index : gpu_indices) {
      part.grants.push_back({index, base::kWholeGpu, base::kGiB * 80});
    }
    holds_.put({model::JobId(job), {{part}}, {}, kNow + base::seconds(-10)});
  }
  Plan plan(Stages stages = {}) {
    Books books({.holds = holds_,
                 .cluster = cluster_of(nodes_),
                 .queue = queue_of(jobs_, policy_),
                 .running = ends_,
                 .victims = victims_});
    const std::uint64_t before = books->cluster.hash();
    Plan result = plan_cycle(books, policy_, {.now = kNow, .stages = stages});
    EXPECT_EQ(books->cluster.hash(), before);
    return result;
  }
  static std::vector<std::uint64_t> victims(const Plan& plan) {
    std::vector<std::uint64_t> jobs;
    for (const Preemption& each : plan.preemptions) {
      for (const model::AttemptId id : each.victims) jobs.push_back(id.job.value);
    }
    return jobs;
  }
  static std::vector<std::uint64_t> started(const Plan& plan) {
    std::vector<std::uint64_t> jobs;
    for (const Start& start : plan.starts) jobs.push_back(start.job.value);
    return jobs;
  }

  std::vector<model::Node> nodes_;
  std::vector<WaitingJob> jobs_;
  RunningEnds ends_;
  VictimIndex victims_;
  PreemptionHolds holds_;
  model::Policy policy_;
};

TEST_F(Preempting, MakesRoomForTheFirstThatDoesNotFit) {
  nodes_ = {node(1).gpus(4)};
  running(90, {{1, {0, 1}}}, 20);
  wait(1, 4);
  const Plan made = plan();
  ASSERT_THAT(made.preemptions, SizeIs(1));
  EXPECT_EQ(made.preemptions[0].job, model::JobId(1));
  EXPECT_THAT(indices(made.preemptions[0].held), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(victims(made), ElementsAre(90));
  ASSERT_THAT(made.planned_starts, SizeIs(1));
  EXPECT_EQ(made.planned_starts[0].slot.start, kNow + policy_.stop_grace);
  EXPECT_THAT(plan(Stages().without(Stage::kPreempt)).preemptions, IsEmpty());
}

TEST_F(Preempting, StopsNobodyOfTheSameClassOrAHigherOne) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1)};
  running(90, {{1, {0}}}, 20, PriorityClass::kHigh);
  running(91, {{2, {0}}}, 20, PriorityClass::kCritical);
  wait(1, 1, 3);
  EXPECT_THAT(victims(plan()), IsEmpty());
  jobs_.clear();
  wait(2, 1, 1);
  EXPECT_THAT(victims(plan()), ElementsAre(90));
}

TEST_F(Preempting, StopsThoseThatLoseTheLeastWork) {
  nodes_ = {node(1).gpus(2), node(2).gpus(2)};
  running(90, {{1, {0, 1}}}, 30);  // 60 GPU-minutes
  running(91, {{2, {0}}}, 40);     // 40 and 15
  running(92, {{2, {1}}}, 15);
  wait(1, 2);
  EXPECT_THAT(victims(plan()), ElementsAre(91, 92));
}

TEST_F(Preempting, WhatAVictimHoldsOnOtherNodesIsLostToo) {
  nodes_ = {node(1).gpus(1), node(2).gpus(4), node(3).gpus(1)};
  running(90, {{1, {0}}, {2, {0, 1, 2, 3}}}, 11);
  running(91, {{3, {0}}}, 50);
  wait(1, 1);
  EXPECT_THAT(victims(plan()), ElementsAre(91)) << "50 GPU-minutes against 55";
}

TEST_F(Preempting, OfEqualLossTheLowerClassGoesThenTheFewest) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1)};
  running(90, {{1, {0}}}, 20, PriorityClass::kMedium);
  running(91, {{2, {0}}}, 20, PriorityClass::kLow);
  wait(1, 1);
  EXPECT_THAT(victims(plan()), ElementsAre(91));
  nodes_ = {node(1).gpus(2), node(2).gpus(2)};
  ends_ = {};
  victims_ = {};
  jobs_.clear();
  running(90, {{1, {0}}}, 20);
  running(91, {{1, {1}}}, 20);
  running(92, {{2, {0, 1}}}, 20);
  wait(1, 2);
  EXPECT_THAT(victims(plan()), ElementsAre(92));
}

TEST_F(Preempting, NobodyIsStoppedWhoIsNotNeeded) {
  nodes_ = {node(1).gpus(4)};
  running(90, {{1, {0}}}, 11);
  running(91, {{1, {1, 2}}}, 13);
  running(92, {{1, {3}}}, 13);
  wait(1, 2);
  EXPECT_THAT(victims(plan()), ElementsAre(90, 92)) << "24 GPU-minutes, and not 91 with 26";
  jobs_.clear();
  wait(2, 3);
  EXPECT_THAT(victims(plan()), ElementsAre(90, 91));
}

TEST_F(Preempting, WhoHasNotRunLongEnoughIsSparedUntilThen) {
  nodes_ = {node(1).gpus(1)};
  running(90, {{1, {0}}}, 4);
  wait(1, 1);
  const Plan early = plan();
  EXPECT_THAT(victims(early), IsEmpty());
  EXPECT_EQ(early.look_again_at, kNow + base::minutes(6));
  Books books({.cluster = cluster_of(nodes_),
               .queue = queue_of(jobs_, policy_),
               .running = ends_,
               .victims = victims_});
  CycleCache cache;
  EXPECT_FALSE(cache.plan(books, policy_, {.now = kNow}).unchanged);
  EXPECT_TRUE(cache.plan(books, policy_, {.now = kNow}).unchanged);
  EXPECT_THAT(victims(cache.plan(books, policy_, {.now = kNow + base::minutes(6)})),
              ElementsAre(90));
  policy_.preempt_min_runtime = base::minutes(4);
  running(90, {{1, {0}}}, 4);
  EXPECT_THAT(victims(plan()), ElementsAre(90));
}

TEST_F(Preempting, RoomThatComesWithinTheGraceAnyhowIsWaitedFor) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1)};
  running(90, {{1, {0}}}, 20);
  const model::AttemptId leaving = running(91, {{2, {0}}}, 20, PriorityClass::kHigh, false);
  ends_.put(leaving, RunningEnds::kAnyTime, ends_.ends().rbegin()->second);
  wait(1, 1);
  EXPECT_THAT(victims(plan()), IsEmpty());
}

TEST_F(Preempting, ASiteMayForbidIt) {
  nodes_ = {node(1).gpus(1)};
  running(90, {{1, {0}}}, 20);
  wait(1, 1);
  policy_.allow_preemption = false;
  EXPECT_THAT(victims(plan()), IsEmpty());
}

TEST_F(Preempting, TheFirstInLineHasItAlsoWhereNoPlacesAreKept) {
  nodes_ = {node(1).gpus(1)};
  running(90, {{1, {0}}}, 20);
  wait(1, 1);
  wait(2, 1);
  policy_.backfill_depth = 0;
  EXPECT_THAT(victims(plan()), ElementsAre(90));
}

TEST_F(Preempting, EachOfThoseInLineGetsVictimsOfItsOwn) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1), node(3).gpus(1)};
  running(90, {{1, {0}}}, 30);
  running(91, {{2, {0}}}, 20);
  running(92, {{3, {0}}}, 20, PriorityClass::kHigh);
  wait(1, 1);
  wait(2, 1);
  wait(3, 1);
  const Plan made = plan();
  EXPECT_THAT(victims(made), ElementsAre(91, 90));
  EXPECT_EQ(made.preemptions[0].job, model::JobId(1));
}

TEST_F(Preempting, NobodyElseGetsWhatIsHeld) {
  nodes_ = {node(1).gpus(2), node(2).gpus(1)};
  running(90, {{1, {1}}}, 20, PriorityClass::kLow, false);  // being stopped
  hold(5, 1, {0, 1});
  wait(5, 2);
  wait(1, 1, 1, 1);  // of the highest class, and short
  wait(2, 1, 8, 1);
  const Plan made = plan();
  EXPECT_THAT(started(made), ElementsAre(1));
  EXPECT_EQ(made.starts[0].allocation.nodes[0].node, model::NodeId(2));
  EXPECT_THAT(victims(made), IsEmpty());
  EXPECT_EQ(made.planned_starts.at(0).slot.start, kNow + base::seconds(20));
}

TEST_F(Preempting, TheBeneficiaryStartsWhereItsPreemptionHoldIsAsSoonAsThatIsFree) {
  nodes_ = {node(1).gpus(2), node(2).gpus(2)};
  hold(5, 2, {0, 1});
  wait(5, 2);
  wait(1, 2, 1);
  const Plan made = plan();
  ASSERT_THAT(started(made), ElementsAre(5, 1));
  EXPECT_EQ(made.starts[0].why, model::StartWhy::kPreempted);
  EXPECT_EQ(made.starts[0].allocation.nodes[0].node, model::NodeId(2));
}

TEST_F(Preempting, NoBeneficiaryTakesTheMemoryThatAnotherOneHolds) {
  nodes_ = {node(1).gpus(2).memory(base::kGiB * 8)};
  hold(5, 1, {0}, base::kGiB * 6);
  hold(6, 1, {1}, base::kGiB * 3);  // its victims are not gone
  wait(5, 1);
  wait(6, 1);
  EXPECT_THAT(started(plan()), IsEmpty());
  nodes_ = {node(1).gpus(2).memory(base::kGiB * 9)};
  EXPECT_THAT(started(plan()), ElementsAre(5, 6));
}

TEST_F(Preempting, TheBeneficiaryStartsElsewhereWhereItFitsSooner) {
  nodes_ = {node(1).gpus(1), node(2).gpus(1)};
  running(90, {{1, {0}}}, 20);
  hold(5, 1, {0});
  wait(5, 1);
  const Plan made = plan();
  ASSERT_THAT(started(made), ElementsAre(5));
  EXPECT_EQ(made.starts[0].why, model::StartWhy::kImmediate);
  EXPECT_EQ(made.starts[0].allocation.nodes[0].node, model::NodeId(2));
}

TEST_F(Preempting, OfManyOnANodeTheCheapestThatSufficeGo) {
  nodes_ = {node(1).gpus(20)};
  for (std::uint32_t gpu = 0; gpu < 20; ++gpu) {
    running(100 + gpu, {{1, {gpu}}}, 20 + static_cast<std::int64_t>(gpu));
  }
  wait(1, 3);
  jobs_.back() = waiting(
      1,
      [] {
        model::ResourceRequest request = gpus(3);
        request.cpus = 1;
        request.memory = base::Bytes();
        request.numa = model::NumaPolicy::kAllowCross;
        return request;
      }(),
      3);
  EXPECT_THAT(victims(plan()), ElementsAre(100, 101, 102));
}

// The job was let in elsewhere, and the victims are only about to be told: the next cycle, when
// they have gone, sees what the job stands in the way of.
TEST_F(Preempting, NobodyElseYieldsToWhomRoomIsMadeFor) {
  nodes_ = {node(1).gpus(8), node(2).gpus(8)};
  running(1, {{2, {0, 1, 2, 3, 4, 5, 6, 7}}}, 60);
  running(6, {{1, {4, 5, 6, 7}}}, 60, PriorityClass::kMedium, false);
  const model::AttemptId let_in = running(5, {{1, {0, 1, 2, 3}}}, 60, PriorityClass::kLow, false);
  ends_.put(let_in, kNow, {}, true);
  wait(9, 8, 0);
  const Plan found = plan();
  EXPECT_EQ(victims(found), std::vector<std::uint64_t>{1});
  EXPECT_EQ(found.yields, std::vector<Yield>());
}

}  // namespace
}  // namespace gpu_platform::scheduling
