// Starts that are given up because GPUs failed the check before them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::EndReason;
using model::GpuState;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    policy_.health_max_out_percent = 100;
    core_.apply_policy(policy_, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 4)}, now_);
    core_.observe(execution::NodeObserved{testing::node_info("n2", 4)}, now_);
    settle();
  }

  std::uint64_t submit(std::uint32_t gpus) {
    model::JobSpec spec = testing::spec(gpus);
    spec.preflight = model::Preflight::kQuick;
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    settle();
    return reply ? reply->job.value : 0;
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    settle();
  }
  void settle() {
    now_ = now_ + base::milliseconds(10);
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  // The engine gives the start up.
  void is_unfit(std::uint64_t id, std::uint32_t number, const std::vector<std::string>& uuids) {
    execution::Ended ended;
    ended.attempt = attempt(id, number);
    ended.at = now_;
    ended.reason = EndReason::kLaunchFailed;
    for (const std::string& uuid : uuids) {
      ended.unfit_gpus.push_back({uuid.substr(0, 2), uuid, "a row of its memory"});
    }
    see(ended);
    see(ended);  // what is repeated says nothing
  }
  void is_cleaned(std::uint64_t id, std::uint32_t number) {
    see(execution::Cleaned{attempt(id, number)});
  }

  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  std::string gpu_of(std::uint64_t id) const {
    return job(id).attempts.back().granted->front().gpus.front().uuid;
  }
  const model::Gpu& gpu(const std::string& uuid) const {
    const model::Node& node = *core_.state().nodes.find(uuid.starts_with("n1") ? 1 : 2);
    return *std::ranges::find(node.gpus, uuid, [](const model::Gpu& g) { return g.info.uuid; });
  }

  model::Policy policy_;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(PreflightTest, AnUnfitGpuGoesOutAndTheJobStartsElsewhereForFree) {
  const std::uint64_t id = submit(1);
  const std::string sick = gpu_of(id);
  is_unfit(id, 1, {sick});
  is_cleaned(id, 1);
  EXPECT_EQ(gpu(sick).state, GpuState::kDraining) << gpu(sick).cause;
  ASSERT_EQ(gpu(sick).evidence->size(), 1U);
  EXPECT_EQ(gpu(sick).evidence->front().kind, model::EvidenceKind::kCheck);
  EXPECT_EQ(gpu(sick).evidence->front().code, 1U);
  ASSERT_EQ(job(id).attempts.size(), 2U);
  EXPECT_EQ(job(id).state, JobState::kStarting);
  EXPECT_NE(gpu_of(id), sick);
  EXPECT_EQ(job(id).failures, 0U);
  EXPECT_EQ(job(id).losses, 0U);
  EXPECT_EQ(job(id).avoid_gpus, std::vector<std::string>{sick});
  const model::Attempt& first = job(id).attempts[0];
  EXPECT_EQ(first.reason, EndReason::kGpuFault);
  EXPECT_FALSE(first.started_at.is_set());
  EXPECT_NE(first.detail.find("failed its check before the start: a row of its memory"),
            std::string::npos)
      << first.detail;
}

TEST_F(PreflightTest, OfAGangOnlyTheUnfitGpuGoesOut) {
  const std::uint64_t id = submit(3);
  const std::string sick = gpu_of(id);
  is_unfit(id, 1, {sick});
  is_cleaned(id, 1);
  EXPECT_EQ(gpu(sick).state, GpuState::kDraining) << gpu(sick).cause;
  std::size_t out = 0;
  for (const char* node : {"n1", "n2"}) {
    for (int i = 0; i < 4; ++i) {
      const model::Gpu& each = gpu(std::string(node) + "-" + std::to_string(i));
      out += model::is_kept_from_work(each) ? 1 : 0;
      EXPECT_EQ(each.evidence->size(), each.info.uuid == sick ? 1U : 0U) << each.info.uuid;
    }
  }
  EXPECT_EQ(out, 1U);
}

TEST_F(PreflightTest, WhereHealthDoesNothingTheJobKeepsOffAllTheSame) {
  for (const model::HealthMode mode : {model::HealthMode::kShadow, model::HealthMode::kOff}) {
    policy_.health_mode = mode;
    core_.apply_policy(policy_, "test", now_);
    settle();
    const std::uint64_t id = submit(1);
    const std::string sick = gpu_of(id);
    is_unfit(id, 1, {sick});
    is_cleaned(id, 1);
    EXPECT_FALSE(model::is_kept_from_work(gpu(sick))) << gpu(sick).cause;
    ASSERT_EQ(job(id).attempts.size(), 2U);
    EXPECT_NE(gpu_of(id), sick);
    EXPECT_EQ(job(id).attempts[0].reason, EndReason::kGpuFault);
  }
}

TEST_F(PreflightTest, ThreeUnfitGpusInARowEndTheJobAndTakeOutNoMore) {
  const std::uint64_t id = submit(1);
  for (std::uint32_t number = 1; number <= model::kMaxHardwareFailures; ++number) {
    ASSERT_EQ(job(id).attempts.size(), number);
    is_unfit(id, number, {gpu_of(id)});
    if (number < model::kMaxHardwareFailures) is_cleaned(id, number);
  }
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).reason, EndReason::kGpuFault);
}

TEST_F(PreflightTest, AJobThatIsCancelledMeanwhileIsNotStartedAgain) {
  const std::uint64_t id = submit(1);
  const std::string sick = gpu_of(id);
  ASSERT_TRUE(core_.command(testing::stop(id), now_, store::Headroom::kAmple));
  settle();
  is_unfit(id, 1, {sick});
  EXPECT_EQ(job(id).state, JobState::kCancelled);
  EXPECT_EQ(job(id).attempts.size(), 1U);
  EXPECT_EQ(job(id).attempts[0].detail.find("queued again"), std::string::npos)
      << job(id).attempts[0].detail;
}

// The order was acknowledged before the third check failed.
TEST_F(PreflightTest, AJobThatIsToBeQueuedAgainIsAlsoAfterThreeUnfitGpus) {
  const std::uint64_t id = submit(1);
  for (std::uint32_t number = 1; number < model::kMaxHardwareFailures; ++number) {
    is_unfit(id, number, {gpu_of(id)});
    is_cleaned(id, number);
  }
  const model::Command requeue{testing::kOwner,
                               model::ActOnJob{model::JobId(id), model::JobAction::kRequeue}};
  ASSERT_TRUE(core_.command(requeue, now_, store::Headroom::kAmple));
  is_unfit(id, model::kMaxHardwareFailures, {gpu_of(id)});
  EXPECT_FALSE(model::is_ended(job(id).state));
  EXPECT_EQ(job(id).failures, 0U);
  const model::Attempt& third = job(id).attempts[model::kMaxHardwareFailures - 1];
  EXPECT_NE(third.detail.find("it is queued again"), std::string::npos) << third.detail;
}

TEST_F(PreflightTest, WhatTheCheckDidIsKeptWithTheAttempt) {
  const std::uint64_t id = submit(1);
  see(execution::Started{attempt(id), 5, now_, "quick: passed in 0.4 s"});
  EXPECT_EQ(job(id).attempts.back().preflight, "quick: passed in 0.4 s");
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->jobs.find(id)->attempts.back().preflight, "quick: passed in 0.4 s");
}

}  // namespace
}  // namespace gpu_platform::controller
