// Preemption with preemption holds: from the decision to the start, and all that may come between.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using base::minutes;
using base::seconds;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class PreemptionTest : public ::testing::Test {
 protected:
  PreemptionTest() {
    policy_.preempt_min_runtime = minutes(10);
    policy_.highest_user_priority = model::PriorityClass::kCritical;
    core_.apply_policy(policy_, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
  }

  std::uint64_t submit(std::uint32_t gpus, std::uint8_t priority) {
    model::JobSpec spec = testing::spec(gpus);
    spec.priority = model::priority_of_number(priority);
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    advance();
    return reply ? reply->job.value : 0;
  }
  void run(std::uint64_t job, std::uint32_t number = 1) {
    see(execution::Started{attempt(job, number), 5, now_});
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    advance();
  }
  void command(const model::Command& command) {
    EXPECT_TRUE(core_.command(command, now_, store::Headroom::kAmple));
    advance();
  }
  void advance(base::Duration by = {}) {
    now_ = now_ + by;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  // The victim of `job` obeys.
  void obey(std::uint64_t job, std::uint32_t number = 1) {
    execution::Ended ended;
    ended.attempt = attempt(job, number);
    ended.at = now_;
    ended.exit.signal = std::uint8_t{15};
    ended.reason = model::EndReason::kPreempted;
    see(ended);
    see(execution::Cleaned{attempt(job, number)});
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  const model::PreemptionHold* hold_of(std::uint64_t id) const {
    return core_.state().books->holds.find(model::JobId(id));
  }
  // LOW job 1 has run for a while on both GPUs, HIGH job 2 needs one: decided, and no victim told
  // yet.
  void decide() {
    submit(2, 8);
    run(1);
    advance(minutes(11));
    submit(1, 3);
  }

  model::Policy policy_;
  Core core_;
  base::Instant now_ = kNoon;
};

TEST_F(PreemptionTest, VictimsAreToldOneStepAfterTheDecision) {
  decide();
  ASSERT_NE(hold_of(2), nullptr);
  EXPECT_EQ(hold_of(2)->victims, std::vector{attempt(1)});
  EXPECT_EQ(job(1).state, JobState::kRunning);
  EXPECT_EQ(core_.next_wakeup(), now_ + base::nanoseconds(1));
  core_.take_batch();
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kStopping);
  EXPECT_EQ(job(1).attempts[0].by, "job 2");
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.effects.size(), 1U);
  const auto& stop = std::get<execution::StopOrder>(batch.effects[0]);
  EXPECT_EQ(stop.reason, model::EndReason::kPreempted);
  EXPECT_FALSE(stop.without_grace);
  EXPECT_GE(core_.next_wakeup(), now_ + base::minutes(1));  // nothing more is to be done for it
}

TEST_F(PreemptionTest, TheBeneficiaryStartsAndTheVictimIsBackInTheQueue) {
  decide();
  advance(seconds(1));
  obey(1);
  EXPECT_EQ(job(2).state, JobState::kStarting);
  EXPECT_EQ(job(2).attempts[0].why, model::StartWhy::kPreempted);
  EXPECT_EQ(job(2).attempts[0].preempted_jobs, std::vector{model::JobId(1)});
  EXPECT_EQ(hold_of(2), nullptr);
  EXPECT_EQ(job(1).state, JobState::kQueued);
  EXPECT_EQ(job(1).preemptions, 1U);
  EXPECT_EQ(job(1).losses + job(1).failures, 0U);
  EXPECT_EQ(job(1).attempts[0].reason, model::EndReason::kPreempted);
}

TEST_F(PreemptionTest, AVictimNotToldYetIsSparedWhenTheBeneficiaryVanishes) {
  decide();
  command(testing::stop(2));
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kRunning);
  EXPECT_TRUE(core_.state().books->holds.empty());
  EXPECT_EQ(core_.state().books->victims.size(), 1U);
}

TEST_F(PreemptionTest, AVictimNotToldYetIsSparedWhenTheBeneficiaryIsHeldOrLosesItsRank) {
  decide();
  command({{"ann", 1001}, model::ActOnJob{model::JobId(2), model::JobAction::kHold}});
  EXPECT_TRUE(core_.state().books->holds.empty());
  command({{"ann", 1001}, model::ActOnJob{model::JobId(2), model::JobAction::kRelease}});
  ASSERT_NE(hold_of(2), nullptr);
  model::UpdateJob lower;
  lower.job = model::JobId(2);
  lower.to.set(&model::JobSpec::priority, model::priority_of_number(9));
  command({{"ann", 1001}, lower});
  EXPECT_TRUE(core_.state().books->holds.empty());
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kRunning);
}

TEST_F(PreemptionTest, AVictimNotToldYetThatRisesToTheSameClassIsSpared) {
  decide();
  model::UpdateJob higher;
  higher.job = model::JobId(1);
  higher.to.set(&model::JobSpec::priority, model::priority_of_number(3));
  command({{"ann", 1001}, higher});
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kRunning);
  EXPECT_EQ(job(2).state, JobState::kQueued);
}

TEST_F(PreemptionTest, AVictimNotToldYetIsSparedWhereRoomCameElsewhere) {
  decide();
  core_.observe(execution::NodeObserved{testing::node_info("n2", 1)}, now_);
  advance(seconds(1));
  EXPECT_EQ(job(2).state, JobState::kStarting);
  EXPECT_EQ(job(2).attempts[0].why, model::StartWhy::kImmediate);
  EXPECT_EQ(job(1).state, JobState::kRunning);
}

TEST_F(PreemptionTest, HeldResourcesAreGivenToNoOtherJob) {
  decide();
  advance(seconds(1));
  const std::uint64_t critical = submit(1, 0);
  obey(1);
  EXPECT_EQ(job(2).state, JobState::kStarting);
  EXPECT_EQ(job(critical).state, JobState::kStarting) << "on the GPU that is left over";
  EXPECT_EQ(job(critical).attempts[0].why, model::StartWhy::kImmediate);
}

TEST_F(PreemptionTest, TheBeneficiaryStartsWhenAVictimEndsByItself) {
  decide();
  advance(seconds(1));
  see(testing::ended(attempt(1), 0, now_));
  EXPECT_EQ(job(1).state, JobState::kPreempted);
  see(execution::Cleaned{attempt(1)});
  EXPECT_EQ(job(2).state, JobState::kStarting);
}

TEST_F(PreemptionTest, AVictimThatAPersonCancelsIsCancelled) {
  decide();
  advance(seconds(1));
  command(testing::stop(1));
  obey(1);
  EXPECT_EQ(core_.state().jobs.find(1), nullptr);
  EXPECT_EQ(job(2).state, JobState::kStarting);
}

TEST_F(PreemptionTest, ThePreemptionHoldEndsWhenWhatIsHeldLeavesService) {
  decide();
  const model::Command drain{model::root_caller(),
                             model::ChangeGpus{{.node = "n1"}, model::GpuAction::kDrain, ""}};
  command(drain);
  EXPECT_TRUE(core_.state().books->holds.empty());
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kRunning);
}

TEST_F(PreemptionTest, AJobIsStoppedForOthersNoOftenerThanTheSiteAllows) {
  policy_.max_preemptions_per_job = 1;
  core_.apply_policy(policy_, "test", now_);
  decide();
  advance(seconds(1));
  obey(1);
  run(2);
  see(testing::ended(attempt(2), 0, now_));
  see(execution::Cleaned{attempt(2)});
  run(1, 2);
  advance(minutes(11));
  submit(1, 0);
  EXPECT_TRUE(core_.state().books->holds.empty());
}

TEST_F(PreemptionTest, AskedForItDoesNotCountByItsClass) {
  model::JobSpec spec = testing::spec(2);
  spec.priority = model::priority_of_number(8);
  spec.preemptible = false;
  command(testing::submission(spec));
  run(1);
  advance(minutes(11));
  submit(1, 0);
  EXPECT_TRUE(core_.state().books->holds.empty());
  command(testing::stop(1, true));
  see(testing::ended(attempt(1), 0, now_));
  see(execution::Cleaned{attempt(1)});
  run(2);
  see(testing::ended(attempt(2), 0, now_));
  see(execution::Cleaned{attempt(2)});
  spec.priority = model::priority_of_number(3);
  spec.preemptible = true;
  command(testing::submission(spec));
  run(3);
  advance(minutes(11));
  submit(1, 0);
  EXPECT_NE(hold_of(4), nullptr) << "a HIGH job that says so gives way to a CRITICAL one";
}

TEST_F(PreemptionTest, ItLooksAgainWhenAJobHasRunLongEnough) {
  submit(2, 8);
  run(1);
  advance(minutes(3));
  submit(1, 3);
  EXPECT_TRUE(core_.state().books->holds.empty());
  EXPECT_EQ(core_.next_wakeup(), now_ + minutes(7));
  advance(minutes(7));
  EXPECT_NE(hold_of(2), nullptr);
}

TEST_F(PreemptionTest, ADecisionIsCarriedOutAfterARestart) {
  decide();
  auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  core_ = Core(*std::move(again));
  advance(seconds(1));
  EXPECT_EQ(job(1).state, JobState::kStopping);
  obey(1);
  EXPECT_EQ(job(2).attempts[0].why, model::StartWhy::kPreempted);
}

}  // namespace
}  // namespace gpu_platform::controller
