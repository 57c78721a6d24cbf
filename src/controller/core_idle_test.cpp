// Jobs that do not use their GPUs: what follows when the site stops them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/judge/idle.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::AttemptState;
using model::EndReason;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class IdleTest : public ::testing::Test {
 protected:
  IdleTest() {
    core_.apply_policy({}, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, now_);
  }
  std::uint64_t running() {
    model::JobSpec spec = testing::spec(1);
    spec.retries = 3;
    const auto reply = core_.command(testing::submission(std::move(spec)), now_, kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    core_.advance(now_);
    const std::uint64_t id = reply ? reply->job.value : 0;
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Attempt& latest(std::uint64_t id) const {
    return core_.state().jobs.find(id)->attempts.back();
  }

  static constexpr auto kAmple = store::Headroom::kAmple;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(IdleTest, ARunningJobIsStoppedOnceWithAnEntryInTheTrail) {
  const std::uint64_t id = running();
  const Events events = judge_idle(core_.state(), {attempt(id), "idle for 40 min"});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<model::StopRequested>(events[0]).reason, EndReason::kIdle);
  const model::AuditedCall& call = std::get<model::CallAudited>(events[1]).call;
  EXPECT_EQ(call.action, model::AuditAction::kStopIdle);
  EXPECT_EQ(call.jobs, std::vector{model::JobId(id)});
  EXPECT_EQ(call.target, "idle for 40 min");
  see(execution::AllocationIdle{attempt(id), "idle for 40 min"});
  EXPECT_EQ(latest(id).state, AttemptState::kStopping);
  EXPECT_EQ(latest(id).stop_reason, EndReason::kIdle);
  EXPECT_TRUE(judge_idle(core_.state(), {attempt(id), "again"}).empty());
}

TEST_F(IdleTest, ItEndsTimedOutAndIsNotRunAgain) {
  const std::uint64_t id = running();
  see(execution::AllocationIdle{attempt(id), "idle for 40 min"});
  execution::Ended ended = testing::ended(attempt(id), 0, now_);
  ended.reason = EndReason::kIdle;
  see(ended);
  const model::Job* const job = core_.state().jobs.find(id);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->state, JobState::kTimedOut);
  EXPECT_EQ(job->attempts.back().reason, EndReason::kIdle);
  EXPECT_EQ(job->attempts.size(), 1U);
}

TEST_F(IdleTest, AnAttemptThatIsUnknownIsLeftAlone) {
  const std::uint64_t id = running();
  EXPECT_TRUE(judge_idle(core_.state(), {attempt(id + 1), ""}).empty());
  EXPECT_TRUE(judge_idle(core_.state(), {attempt(id, 2), ""}).empty());
}

}  // namespace
}  // namespace gpu_platform::controller
