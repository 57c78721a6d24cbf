#include "controller/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/invariants.h"
#include "controller/test_support.h"

// These tests check what failures of the site's prolog and epilog do to jobs and nodes.

namespace gpu_platform::controller {
namespace {

using base::seconds;
using model::JobState;
using model::NodeState;
using testing::attempt;
using testing::kNoon;

class HooksTest : public ::testing::Test {
 protected:
  HooksTest() {
    model::Policy policy;
    policy.retry_backoff = seconds(10);
    policy.max_loss_retries = 0;
    core_.apply_policy(policy, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
  }

  void submit(std::size_t jobs) {
    for (; jobs > 0; --jobs) {
      EXPECT_TRUE(
          core_.command(testing::submission(testing::spec(1)), now_, store::Headroom::kAmple));
    }
    core_.advance(now_);
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  void prolog_fails(model::AttemptId id) {
    execution::Ended ended;
    ended.attempt = id;
    ended.at = now_;
    ended.reason = model::EndReason::kPrologFailed;
    ended.detail = "the site's prolog: exit code 1";
    see(ended);
    see(execution::Cleaned{id, {}});
  }
  void run(model::AttemptId id, const std::string& epilog_failure = {}) {
    see(execution::Started{id, 5, now_});
    see(testing::ended(id, 0, now_));
    see(execution::Cleaned{id, epilog_failure});
  }
  void pass(base::Duration time) {
    now_ = now_ + time;
    core_.advance(now_);
  }
  void change_node(model::GpuAction action, const std::string& reason) {
    model::ChangeGpus command{.action = action};
    command.which.node = "n1";
    command.reason = reason;
    EXPECT_TRUE(core_.command({root_, std::move(command)}, now_, store::Headroom::kAmple));
    core_.advance(now_);
  }
  bool act(model::JobAction action, const model::Caller& caller) {
    const auto reply = core_.command({caller, model::ActOnJob{model::JobId(1), action}}, now_,
                                     store::Headroom::kAmple);
    core_.advance(now_);
    return reply && reply->changed;
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  const model::Node& node() const { return *core_.state().nodes.find(1); }

  const model::Caller owner_{"ann", 1001};
  const model::Caller root_ = model::root_caller();
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(HooksTest, AFailedPrologCountsNeitherAsFailureNorAsLoss) {
  submit(1);
  prolog_fails(attempt(1));
  EXPECT_EQ(job(1).state, JobState::kPending);
  EXPECT_EQ(job(1).eligible_at, now_ + seconds(10));
  EXPECT_EQ(job(1).losses, 0U);
  EXPECT_EQ(job(1).failures, 0U);
  pass(seconds(10));
  EXPECT_EQ(job(1).state, JobState::kStarting);
  see(execution::Started{attempt(1, 2), 5, now_});
  EXPECT_TRUE(job(1).prolog_failed_on.empty());
}

TEST_F(HooksTest, TheThirdInARowHoldsTheJobUntilItsOwnerLetsItGo) {
  submit(1);
  prolog_fails(attempt(1, 1));
  pass(seconds(10));
  prolog_fails(attempt(1, 2));
  EXPECT_EQ(job(1).eligible_at, now_ + seconds(20));
  pass(seconds(20));
  prolog_fails(attempt(1, 3));
  EXPECT_EQ(job(1).state, JobState::kHeld);
  EXPECT_EQ(job(1).hold, model::Hold::kByPlatform);
  EXPECT_FALSE(act(model::JobAction::kHold, owner_));  // it is held already
  EXPECT_TRUE(act(model::JobAction::kRelease, owner_));
  EXPECT_TRUE(job(1).prolog_failed_on.empty());
  pass(seconds(40));
  prolog_fails(attempt(1, 4));
  EXPECT_EQ(job(1).state, JobState::kPending);
}

TEST_F(HooksTest, AJobWhoseEnvironmentIsLostIsHeld) {
  submit(1);
  const auto lose = [&](std::uint32_t number) {
    execution::Ended ended;
    ended.attempt = attempt(1, number);
    ended.at = now_;
    ended.reason = model::EndReason::kEnvironmentLost;
    see(ended);
    see(execution::Cleaned{ended.attempt, {}});
  };
  lose(1);
  EXPECT_EQ(job(1).state, JobState::kHeld);
  EXPECT_EQ(job(1).hold, model::Hold::kByPlatform);
  EXPECT_EQ(job(1).losses, 0U);
  EXPECT_EQ(job(1).failures, 0U);
  EXPECT_EQ(job(1).attempts.back().reason, model::EndReason::kEnvironmentLost);
  pass(seconds(1'000));
  EXPECT_EQ(job(1).attempts.size(), 1U) << "it is not tried again and again";
  EXPECT_TRUE(act(model::JobAction::kRelease, owner_));
  lose(2);
  EXPECT_EQ(job(1).state, JobState::kHeld);
  EXPECT_TRUE(act(model::JobAction::kCancel, owner_));
}

TEST_F(HooksTest, AnAdministratorsHoldTakesThePlaceOfThePlatforms) {
  submit(1);
  for (std::uint32_t number = 1; number <= 3; ++number) {
    prolog_fails(attempt(1, number));
    pass(seconds(60));
  }
  EXPECT_TRUE(act(model::JobAction::kHold, root_));
  EXPECT_EQ(job(1).hold, model::Hold::kByAdministrator);
  EXPECT_FALSE(act(model::JobAction::kRelease, owner_));
  EXPECT_TRUE(act(model::JobAction::kRelease, root_));
}

TEST_F(HooksTest, ANodeIsDrainedAtTheSecondJobInARow) {
  submit(2);
  prolog_fails(attempt(1));
  EXPECT_EQ(node().state, NodeState::kUp);
  prolog_fails(attempt(2));
  EXPECT_EQ(node().state, NodeState::kDraining);
  EXPECT_EQ(node().cause,
            "the site's prolog failed for jobs 1 and 2 in a row: the site's prolog: exit code 1");
}

TEST_F(HooksTest, WhatHooksAndAnOperatorSayOfANodeIsKeptApart) {
  submit(2);
  change_node(model::GpuAction::kDrain, "a fan is loud");
  prolog_fails(attempt(1));
  prolog_fails(attempt(2));
  EXPECT_THAT(node().cause, ::testing::StartsWith("a fan is loud; the site's prolog failed for"));
  change_node(model::GpuAction::kBringOnline, "");
  EXPECT_EQ(node().state, NodeState::kUp)
      << "who brings it back takes it as good: " << node().cause;
  EXPECT_EQ(node().prolog_failed_for, model::JobId());
}

TEST_F(HooksTest, OneJobAloneDrainsNoNodeAndAStartInBetweenForgetsTheFormer) {
  submit(1);
  prolog_fails(attempt(1, 1));
  pass(seconds(10));
  prolog_fails(attempt(1, 2));
  EXPECT_EQ(node().state, NodeState::kUp);
  submit(2);
  run(attempt(2));
  prolog_fails(attempt(3));
  EXPECT_EQ(node().state, NodeState::kUp);
}

TEST_F(HooksTest, EpilogsDrainANodeByTheSameRule) {
  submit(2);
  run(attempt(1), "exit code 1");
  EXPECT_EQ(node().epilog_failed_for, model::JobId(1));
  EXPECT_EQ(node().state, NodeState::kUp);
  run(attempt(2), "exit code 2");
  EXPECT_EQ(node().state, NodeState::kDraining);
  EXPECT_EQ(node().cause, "the site's epilog failed for jobs 1 and 2 in a row: exit code 2");
}

TEST_F(HooksTest, AnEpilogThatDoesWellForgetsTheFormerAndALostAttemptDoesNot) {
  submit(2);
  run(attempt(1), "exit code 1");
  see(execution::Started{attempt(2), 5, now_});
  execution::Ended lost;
  lost.attempt = attempt(2);
  lost.at = now_;
  lost.exit.lost = model::Lost::kUnknown;
  lost.reason = model::EndReason::kSupervisorLost;
  see(lost);
  see(execution::Cleaned{attempt(2), {}});
  EXPECT_EQ(node().epilog_failed_for, model::JobId(1));
  submit(1);
  run(attempt(3));
  EXPECT_FALSE(node().epilog_failed_for.valid());
}

}  // namespace
}  // namespace gpu_platform::controller
