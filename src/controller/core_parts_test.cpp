// Parts of GPUs: several attempts on one GPU, from the start to the last release.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using base::minutes;
using model::GpuState;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() {
    policy_.preempt_min_runtime = minutes(10);
    policy_.highest_user_priority = model::PriorityClass::kCritical;
    policy_.sharing.is_on = true;
    apply();
    see_node({model::ShareMode::kTimeSlice, model::ShareMode::kMps});
  }

  void apply() {
    core_.apply_policy(policy_, "test", now_);
    advance();
  }
  void see_node(std::vector<model::ShareMode> modes) {
    model::NodeInfo info = testing::node_info("n1", 1);
    info.share_modes = std::move(modes);
    info.watches_gpu_memory = true;
    see(execution::NodeObserved{info});
  }
  static model::JobSpec part(std::int64_t thousandths, std::uint8_t priority = 5) {
    model::JobSpec spec = testing::spec(1);
    spec.request.share_per_gpu = base::GpuShare(thousandths * 7);
    spec.priority = model::priority_of_number(priority);
    return spec;
  }
  static model::JobSpec of_bob(model::JobSpec spec) {
    spec.user = "bob";
    spec.uid = 1002;
    return spec;
  }
  std::uint64_t submit(model::JobSpec spec) {
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    advance();
    return reply ? reply->job.value : 0;
  }
  std::string refusal(model::JobSpec spec) {
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    return reply ? std::string() : reply.error().message;
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    advance();
  }
  void run(std::uint64_t job) { see(execution::Started{attempt(job), 5, now_}); }
  void end(std::uint64_t job) {
    see(testing::ended(attempt(job), 0, now_));
    see(execution::Cleaned{attempt(job)});
  }
  void obey(std::uint64_t job) {
    execution::Ended ended = testing::ended(attempt(job), 0, now_);
    ended.exit = {};
    ended.exit.signal = std::uint8_t{15};
    ended.reason = model::EndReason::kPreempted;
    see(ended);
    see(execution::Cleaned{attempt(job)});
  }
  void advance(base::Duration by = {}) {
    now_ = now_ + by;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Gpu& gpu() const { return core_.state().nodes.find(1)->gpus.at(0); }
  const model::GpuGrant& grant_of(std::uint64_t id) const {
    return core_.state().jobs.find(id)->attempts.at(0).allocation.nodes.at(0).grants.at(0);
  }
  JobState state_of(std::uint64_t id) const { return core_.state().jobs.find(id)->state; }

  model::Policy policy_;
  Core core_;
  base::Instant now_ = kNoon;
};

TEST_F(PartsTest, JobsOfOneUserShareAGpuUntilTheLastIsReleased) {
  const std::uint64_t first = submit(part(500));
  const std::uint64_t second = submit(part(250));
  ASSERT_EQ(gpu().holders.size(), 2U);
  EXPECT_EQ(gpu().holders[0].share, base::GpuShare(3500));
  EXPECT_EQ(gpu().holders[0].memory, base::kGiB * 40);
  EXPECT_EQ(gpu().holders[0].mode, model::ShareMode::kMps);
  EXPECT_EQ(gpu().holders[1].share, base::GpuShare(1750));
  EXPECT_EQ(gpu().holders[1].uid, 1001U);
  EXPECT_EQ(gpu().state, GpuState::kAllocated);
  const std::uint64_t third = submit(part(500));
  const std::uint64_t whole = submit(testing::spec(1));
  EXPECT_EQ(state_of(third), JobState::kQueued);
  run(first);
  run(second);
  EXPECT_EQ(gpu().state, GpuState::kInUse);
  end(first);
  EXPECT_EQ(state_of(third), JobState::kStarting) << "in the place of the first";
  run(third);
  end(second);
  EXPECT_EQ(state_of(whole), JobState::kQueued);
  EXPECT_EQ(gpu().state, GpuState::kInUse);
  end(third);
  EXPECT_EQ(state_of(whole), JobState::kStarting);
  EXPECT_EQ(gpu().holders.front().mode, model::ShareMode::kNone);
}

TEST_F(PartsTest, AGpuIsInUseAsLongAsOneOfItsJobsRuns) {
  const std::uint64_t first = submit(part(500));
  const std::uint64_t second = submit(part(500));
  run(first);
  EXPECT_EQ(gpu().state, GpuState::kInUse) << "the other one starts";
  run(second);
  see(testing::ended(attempt(first), 0, now_));
  EXPECT_EQ(gpu().state, GpuState::kInUse);
  see(testing::ended(attempt(second), 0, now_));
  EXPECT_EQ(gpu().state, GpuState::kCleaning);
  see(execution::Cleaned{attempt(second)});
  EXPECT_EQ(gpu().state, GpuState::kCleaning) << "the first is not released";
  see(execution::Cleaned{attempt(first)});
  EXPECT_EQ(gpu().state, GpuState::kAvailable);
}

TEST_F(PartsTest, JobsOfOtherUsersShareItOnlyIfTheSiteSaysSo) {
  submit(part(500));
  const std::uint64_t other = submit(of_bob(part(250)));
  EXPECT_EQ(state_of(other), JobState::kQueued);
  policy_.sharing.between_users = model::SharedBetween::kAll;
  apply();
  EXPECT_EQ(state_of(other), JobState::kQueued) << "an MPS server is of one user";
}

TEST_F(PartsTest, TakeTurnsAcrossUsersWhereTheSiteSaysSo) {
  policy_.sharing.between_users = model::SharedBetween::kAll;
  policy_.sharing.modes = {model::ShareMode::kTimeSlice};
  apply();
  const std::uint64_t first = submit(part(500));
  const std::uint64_t other = submit(of_bob(part(500)));
  EXPECT_EQ(state_of(other), JobState::kStarting);
  EXPECT_EQ(gpu().holders.size(), 2U);
  policy_.sharing.between_users = model::SharedBetween::kNever;
  apply();
  EXPECT_EQ(gpu().holders.size(), 2U) << "new rules are for new parts";
  run(first);
  end(first);
  const std::uint64_t again = submit(part(250));
  EXPECT_EQ(state_of(again), JobState::kQueued);
}

TEST_F(PartsTest, WhatNoGpuCouldGiveIsRefusedWithTheReason) {
  model::JobSpec strict = part(500);
  strict.request.require_isolation = model::Isolation::kMemory;
  EXPECT_EQ(refusal(strict),
            "require_isolation memory: no GPU has so strong a wall between its parts; ask for a "
            "whole GPU instead");
  see_node({});
  EXPECT_EQ(refusal(part(500)),
            "gpu_share 0.5: no GPU may be shared ('sharing:' in the site's configuration); ask for "
            "a whole GPU instead");
  policy_.sharing.is_on = false;
  apply();
  EXPECT_EQ(refusal(part(500)),
            "gpu_share 0.5: this site shares no GPUs ('sharing:' in its configuration); ask for a "
            "whole GPU instead");
}

TEST_F(PartsTest, APartOfRootIsForSitesThatAcceptAdvisoryWalls) {
  policy_.sharing.modes = {model::ShareMode::kTimeSlice};
  apply();
  const auto of_root = [](model::JobSpec spec) {
    spec.user = "root";
    spec.uid = 0;
    return spec;
  };
  const std::string refused =
      "gpu_share 0.5: a job of root can undo the walls of its part, and this site accepts none "
      "weaker than watchdog; set sharing.weakest_rung: advisory, submit the job as another user, "
      "or ask for a whole GPU";
  EXPECT_EQ(refusal(of_root(part(500))), refused);
  policy_.sharing.weakest_rung = model::Rung::kAdvisory;
  apply();
  const std::uint64_t first = submit(of_root(part(500)));
  const std::uint64_t second = submit(of_root(part(750)));
  EXPECT_EQ(state_of(first), JobState::kStarting);
  EXPECT_EQ(grant_of(first).wall, (model::Wall{model::Rung::kAdvisory, model::Rung::kAdvisory}));
  EXPECT_EQ(state_of(second), JobState::kQueued);
  policy_.sharing.weakest_rung = model::Rung::kWatchdog;
  apply();
  run(first);
  end(first);
  EXPECT_EQ(state_of(second), JobState::kQueued) << "the rules are those of the day";
  const std::uint64_t of_ann = submit(part(500));
  EXPECT_EQ(grant_of(of_ann).wall, (model::Wall{model::Rung::kWatchdog, model::Rung::kFrozen}));
}

TEST_F(PartsTest, NoJobStartsBesideOthersOnceTheSiteSharesNoMore) {
  submit(part(500));
  const std::uint64_t waits = submit(part(750));
  policy_.sharing.is_on = false;
  apply();
  end(1);
  EXPECT_EQ(state_of(waits), JobState::kQueued);
  policy_.sharing.is_on = true;
  apply();
  EXPECT_EQ(state_of(waits), JobState::kStarting);
}

TEST_F(PartsTest, APartIsMadeRoomForByStoppingNoMoreThanItNeeds) {
  const std::uint64_t large = submit(part(750, 8));
  const std::uint64_t small = submit(part(250, 8));
  run(large);
  run(small);
  advance(minutes(11));
  const std::uint64_t urgent = submit(part(250, 3));
  const auto* hold = core_.state().books->holds.find(model::JobId(urgent));
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(hold->victims, std::vector{attempt(small)}) << "a quarter of the GPU time is lost";
  obey(small);
  EXPECT_EQ(state_of(urgent), JobState::kStarting);
  EXPECT_EQ(state_of(large), JobState::kRunning);
}

TEST_F(PartsTest, AWholeGpuIsMadeRoomForByStoppingAllThatShareIt) {
  const std::uint64_t first = submit(part(500, 8));
  const std::uint64_t second = submit(part(250, 8));
  run(first);
  run(second);
  advance(minutes(11));
  model::JobSpec urgent = testing::spec(1);
  urgent.priority = model::priority_of_number(3);
  const std::uint64_t whole = submit(urgent);
  const auto* hold = core_.state().books->holds.find(model::JobId(whole));
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(hold->victims, (std::vector{attempt(first), attempt(second)}));
  obey(first);
  EXPECT_EQ(state_of(whole), JobState::kQueued);
  const std::uint64_t small = submit(part(100, 8));
  EXPECT_EQ(state_of(small), JobState::kQueued) << "what is free there is kept";
  obey(second);
  EXPECT_EQ(state_of(whole), JobState::kStarting);
}

TEST_F(PartsTest, AHoldOfAPartEndsWithTheRulesThatItWasMadeBy) {
  const std::uint64_t first = submit(part(500, 8));
  run(first);
  advance(minutes(11));
  const std::uint64_t urgent = submit(part(750, 3));
  ASSERT_NE(core_.state().books->holds.find(model::JobId(urgent)), nullptr);
  policy_.sharing.is_on = false;
  apply();
  EXPECT_EQ(core_.state().books->holds.find(model::JobId(urgent)), nullptr);
  EXPECT_EQ(state_of(urgent), JobState::kQueued);
}

}  // namespace
}  // namespace gpu_platform::controller
