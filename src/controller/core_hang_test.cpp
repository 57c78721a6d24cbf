// A job's watchdog: what follows when its GPUs are idle and it prints nothing.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using base::minutes;
using model::AttemptState;
using model::EndReason;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class HangTest : public ::testing::Test {
 protected:
  HangTest() {
    model::Policy policy;
    policy.retry_backoff = {};
    core_.apply_policy(policy, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, now_);
  }

  std::uint64_t running(model::JobSpec spec) {
    const auto reply = core_.command(testing::submission(std::move(spec)), now_, kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    advance({});
    const std::uint64_t id = reply ? reply->job.value : 0;
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  static model::JobSpec watched(std::uint32_t retries = 0) {
    model::JobSpec spec = testing::spec(1);
    spec.hang_timeout = minutes(10);
    spec.retries = retries;
    return spec;
  }
  void hangs(std::uint64_t job, const std::string& gpu = "n1-0") {
    model::Evidence evidence{.kind = model::EvidenceKind::kJobHung,
                             .source = model::EvidenceSource::kJob,
                             .at = now_,
                             .last = now_};
    evidence.job = model::JobId(job);
    see(execution::EvidenceObserved{"n1", gpu, evidence});
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    advance({});
  }
  void advance(base::Duration by) {
    now_ = now_ + by;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  void end(std::uint64_t id, std::uint8_t code, EndReason reason) {
    execution::Ended ended = testing::ended(attempt(id), code, now_);
    ended.reason = reason;
    see(ended);
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  AttemptState state_of(std::uint64_t id) const { return job(id).attempts.back().state; }

  static constexpr store::Headroom kAmple = store::Headroom::kAmple;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(HangTest, AJobThatHangsIsStoppedAndHasFailedHoweverItObeys) {
  const std::uint64_t id = running(watched());
  advance(minutes(10));
  hangs(id);
  EXPECT_EQ(state_of(id), AttemptState::kStopping);
  EXPECT_EQ(job(id).attempts.back().stop_reason, EndReason::kHung);
  hangs(id);
  end(id, 0, EndReason::kHung);
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).reason, EndReason::kHung);
}

TEST_F(HangTest, ItRunsAgainIfItHasRetries) {
  const std::uint64_t id = running(watched(1));
  advance(minutes(11));
  hangs(id);
  end(id, 0, EndReason::kHung);
  EXPECT_FALSE(model::is_ended(job(id).state));
  EXPECT_EQ(job(id).failures, 1U);
}

TEST_F(HangTest, OneThatEndsByItselfMeanwhileHasItsOwnEnd) {
  const std::uint64_t id = running(watched());
  advance(minutes(10));
  hangs(id);
  end(id, 0, EndReason::kNone);
  EXPECT_EQ(job(id).state, JobState::kCompleted);
}

TEST_F(HangTest, OnlyAnAttemptThatRanForTheTimeOnThatGpuIsStopped) {
  const std::uint64_t id = running(watched());
  advance(minutes(9));
  hangs(id);
  EXPECT_EQ(state_of(id), AttemptState::kRunning) << "it did not run for as long";
  advance(minutes(2));
  hangs(id, "n1-1");
  EXPECT_EQ(state_of(id), AttemptState::kRunning) << "a GPU of no job";
  hangs(id + 1);
  const std::uint64_t other = running(testing::spec(1));
  advance(minutes(20));
  hangs(other, "n1-1");
  EXPECT_EQ(state_of(other), AttemptState::kRunning) << "it has no watchdog";
}

}  // namespace
}  // namespace gpu_platform::controller
