// A job's own end close to what people asked for: what was acknowledged before the end was seen is
// what happens.

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using base::minutes;
using base::seconds;
using model::EndReason;
using model::JobAction;
using model::JobState;
using testing::attempt;
using testing::kNoon;

const model::Caller kAnn{"ann", 1001};

// A way in which an attempt may end while a command is on its way to it.
struct Ending {
  std::string name;
  model::Exit exit;
  EndReason reason = EndReason::kNone;

  friend void PrintTo(const Ending& ending, std::ostream* out) { *out << ending.name; }
};

model::Exit code(std::uint8_t value) {
  return {.code = value, .signal = {}, .lost = model::Lost::kNo};
}
model::Exit signal(std::uint8_t value) {
  return {.code = {}, .signal = value, .lost = model::Lost::kNo};
}
model::Exit lost(model::Lost how) {
  return {.code = {}, .signal = {}, .lost = how};
}

std::vector<Ending> endings() {
  return {{"DoneWith0", code(0), EndReason::kNone},
          {"DoneWith3", code(3), EndReason::kNone},
          {"Crashed", signal(11), EndReason::kNone},
          {"OutOfMemory", signal(9), EndReason::kOutOfMemory},
          {"AtItsTimeLimit", signal(15), EndReason::kTimeLimit},
          {"AtItsTimeLimitWith0", code(0), EndReason::kTimeLimit},
          {"IdleForTooLong", signal(15), EndReason::kIdleTimeout},
          {"Hung", signal(15), EndReason::kHung},
          {"ObeyedWith0", code(0), EndReason::kRequeuedBy},
          {"Killed", signal(9), EndReason::kRequeuedBy},
          {"Lost", lost(model::Lost::kUnknown), EndReason::kSupervisorLost},
          {"LostWithItsNode", lost(model::Lost::kNodeLost), EndReason::kNodeLost},
          {"NeverStarted", {}, EndReason::kLaunchFailed}};
}

class RequeueTest : public ::testing::Test {
 protected:
  RequeueTest() {
    policy_.max_loss_retries = 0;
    policy_.preempt_min_runtime = {};
    core_.apply_policy(policy_, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 1)}, now_);
  }

  std::uint64_t submit(model::JobSpec spec) {
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    advance();
    return reply ? reply->job.value : 0;
  }
  std::uint64_t running(model::JobSpec spec) {
    const std::uint64_t id = submit(std::move(spec));
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  base::Result<model::CommandReply> act(std::uint64_t job, JobAction action,
                                        const model::Caller& caller = kAnn) {
    auto reply = core_.command({caller, model::ActOnJob{model::JobId(job), action}}, now_, kAmple);
    advance();
    return reply;
  }
  void change_gpu(model::GpuAction action) {
    model::ChangeGpus command;
    command.which.node = "n1";
    command.which.index = 0;
    command.action = action;
    command.force = true;
    ASSERT_TRUE(core_.command({testing::kRoot, command}, now_, kAmple));
    advance();
  }
  void end(model::AttemptId id, const Ending& how) {
    execution::Ended ended;
    ended.attempt = id;
    ended.at = now_;
    ended.exit = how.exit;
    ended.reason = how.reason;
    see(ended);
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    advance();
  }
  void advance(base::Duration by = {}) {
    now_ = now_ + by;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  // With nothing left of the first attempt it gets another.
  void expect_to_run_again(std::uint64_t id) {
    ASSERT_FALSE(model::is_ended(job(id).state)) << to_string(job(id).state);
    see(execution::Cleaned{attempt(id)});
    EXPECT_EQ(job(id).state, JobState::kStarting);
    EXPECT_EQ(job(id).attempts.size(), 2U);
    EXPECT_EQ(job(id).failures + job(id).losses, 0U);
  }
  // A LOW job on the only GPU, which one of class HIGH has been decided to get.
  std::uint64_t victim() {
    model::JobSpec low = testing::spec(1);
    low.priority = model::priority_of_number(8);
    low.complete_on_exit_zero = complete_on_exit_zero_;
    const std::uint64_t id = running(low);
    advance(seconds(1));
    model::JobSpec high = testing::spec(1);
    high.priority = model::priority_of_number(2);
    submit(high);
    EXPECT_NE(core_.state().books->holds.find(model::JobId(id + 1)), nullptr);
    EXPECT_EQ(job(id).state, JobState::kRunning);
    return id;
  }

  static constexpr store::Headroom kAmple = store::Headroom::kAmple;
  bool complete_on_exit_zero_ = false;  // of the victim
  model::Policy policy_;
  Core core_;
  base::Instant now_ = kNoon;
};

class HoweverItEnds : public RequeueTest, public ::testing::WithParamInterface<Ending> {};

TEST_P(HoweverItEnds, AnAcknowledgedRequeueIsKept) {
  const std::uint64_t id = running(testing::spec(1));
  ASSERT_TRUE(act(id, JobAction::kRequeue));
  end(attempt(id), GetParam());
  expect_to_run_again(id);
}

TEST_P(HoweverItEnds, WhatIsPutBackAndHeldIsHeld) {
  const std::uint64_t id = running(testing::spec(1));
  ASSERT_TRUE(act(id, JobAction::kRequeueAndHold));
  end(attempt(id), GetParam());
  EXPECT_EQ(job(id).state, JobState::kHeld);
  see(execution::Cleaned{attempt(id)});
  advance(minutes(1));
  ASSERT_TRUE(act(id, JobAction::kRelease));
  EXPECT_EQ(job(id).attempts.size(), 2U);
}

TEST_P(HoweverItEnds, ADecidedPreemptionIsKept) {
  const std::uint64_t id = victim();
  advance(seconds(1));
  ASSERT_EQ(job(id).state, JobState::kStopping);
  end(attempt(id), GetParam());
  ASSERT_FALSE(model::is_ended(job(id).state)) << to_string(job(id).state);
  EXPECT_EQ(job(id).preemptions, 1U);
  see(execution::Cleaned{attempt(id)});
  EXPECT_EQ(job(id).state, JobState::kQueued);
  EXPECT_EQ(job(id).failures + job(id).losses, 0U);
  EXPECT_EQ(job(id + 1).state, JobState::kStarting);
}

TEST_P(HoweverItEnds, WhatAnOperatorStoppedByForceIsQueuedAgain) {
  const std::uint64_t id = running(testing::spec(1));
  change_gpu(model::GpuAction::kTakeOffline);
  ASSERT_EQ(job(id).state, JobState::kStopping);
  end(attempt(id), GetParam());
  change_gpu(model::GpuAction::kBringOnline);
  expect_to_run_again(id);
}

TEST_P(HoweverItEnds, AnAcknowledgedCancelIsKept) {
  const std::uint64_t id = running(testing::spec(1));
  ASSERT_TRUE(act(id, JobAction::kRequeue));
  ASSERT_TRUE(act(id, JobAction::kCancel));
  end(attempt(id), GetParam());
  EXPECT_EQ(job(id).state, JobState::kCancelled);
  EXPECT_EQ(job(id).reason, EndReason::kCancelledBy);
  EXPECT_EQ(job(id).by, "ann");
}

// A submission may say that it knows when it is done.
TEST_P(HoweverItEnds, ExitCode0CompletesWhatAskedForThat) {
  model::JobSpec spec = testing::spec(1);
  spec.complete_on_exit_zero = true;
  const std::uint64_t id = running(spec);
  ASSERT_TRUE(act(id, JobAction::kRequeueAndHold));
  end(attempt(id), GetParam());
  const bool did_well = GetParam().exit.code == 0;
  EXPECT_EQ(job(id).state, did_well ? JobState::kCompleted : JobState::kHeld);
  EXPECT_EQ(job(id).reason, EndReason::kNone);
}

INSTANTIATE_TEST_SUITE_P(All, HoweverItEnds, ::testing::ValuesIn(endings()),
                         [](const auto& instance) { return instance.param.name; });

// Decided is what the victim was told: what ended before has ended.
TEST_F(RequeueTest, AVictimThatEndsBeforeItIsToldHasEnded) {
  const std::uint64_t id = victim();
  end(attempt(id), {"", code(0), EndReason::kNone});
  EXPECT_EQ(job(id).state, JobState::kCompleted);
}

// Input that was sent through a pipe is gone, so the operator's order ends the job; its user's does
// not.
TEST_F(RequeueTest, ARequeueOfWhatWouldEndForItsGpuIsKept) {
  model::JobSpec piped = testing::spec(1);
  piped.takes_input = true;
  const std::uint64_t id = running(piped);
  change_gpu(model::GpuAction::kTakeOffline);
  ASSERT_EQ(job(id).state, JobState::kStopping);
  const auto reply = act(id, JobAction::kRequeue);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->changed);
  end(attempt(id), {"", signal(15), EndReason::kGpuOffline});
  change_gpu(model::GpuAction::kBringOnline);
  expect_to_run_again(id);
}

TEST_F(RequeueTest, ExitCode0CompletesAVictimThatAskedForThat) {
  complete_on_exit_zero_ = true;
  const std::uint64_t id = victim();
  advance(seconds(1));
  ASSERT_EQ(job(id).state, JobState::kStopping);
  end(attempt(id), {"", code(0), EndReason::kPreempted});
  EXPECT_EQ(job(id).state, JobState::kCompleted);
  EXPECT_EQ(job(id).preemptions, 0U);
  see(execution::Cleaned{attempt(id)});
  EXPECT_EQ(job(id + 1).state, JobState::kStarting);
}

// Root has given the job more time, and the order was on its way when its first limit was over.
class MoreTimeTest : public RequeueTest {
 protected:
  std::uint64_t limited(bool takes_input = false) {
    model::JobSpec spec = testing::spec(1);
    spec.time_limit = minutes(10);
    spec.takes_input = takes_input;
    return running(spec);
  }
  void give(std::uint64_t id, base::Duration limit) {
    model::UpdateJob update;
    update.job = model::JobId(id);
    update.to.set(&model::JobSpec::time_limit, limit);
    ASSERT_TRUE(core_.command({testing::kRoot, update}, now_, kAmple));
    advance();
  }
  void end_at_limit(std::uint64_t id, std::optional<base::Duration> limit) {
    execution::Ended ended;
    ended.attempt = attempt(id);
    ended.at = now_;
    ended.exit = signal(15);
    ended.reason = EndReason::kTimeLimit;
    ended.time_limit = limit;
    see(ended);
  }
};

TEST_F(MoreTimeTest, WhatWasStoppedAtALimitThatItNoLongerHadRunsAgain) {
  const std::uint64_t id = limited();
  give(id, minutes(20));
  end_at_limit(id, minutes(10));
  expect_to_run_again(id);
}

TEST_F(MoreTimeTest, WhatWasStoppedAtItsNewLimitHasTimedOut) {
  const std::uint64_t id = limited();
  give(id, minutes(20));
  end_at_limit(id, minutes(20));
  EXPECT_EQ(job(id).state, JobState::kTimedOut);
}

TEST_F(MoreTimeTest, WhatWasGivenLessHasTimedOutAtEitherLimit) {
  const std::uint64_t id = limited();
  give(id, minutes(5));
  end_at_limit(id, minutes(10));
  EXPECT_EQ(job(id).state, JobState::kTimedOut);
}

TEST_F(MoreTimeTest, AnEngineThatDoesNotSayWhichLimitItWasIsBelieved) {
  const std::uint64_t id = limited();
  give(id, minutes(20));
  end_at_limit(id, std::nullopt);
  EXPECT_EQ(job(id).state, JobState::kTimedOut);
}

TEST_F(MoreTimeTest, WhatCannotBeginAnewHasTimedOut) {
  const std::uint64_t id = limited(true);
  give(id, minutes(20));
  end_at_limit(id, minutes(10));
  EXPECT_EQ(job(id).state, JobState::kTimedOut);
}

// The order that takes it back may have got lost, and the one before it not.
TEST_F(MoreTimeTest, ALimitThatIsAsItWasAtTheStartIsToldAgainAfterACrash) {
  const std::uint64_t id = limited();
  give(id, minutes(20));
  give(id, minutes(10));
  const auto limits = [](const Core& core) {
    std::vector<base::Duration> told;
    for (const Effect& effect : pending_effects(core.state())) {
      const auto* order = std::get_if<execution::LimitOrder>(&effect);
      if (order != nullptr) told.push_back(order->time_limit);
    }
    return told;
  };
  EXPECT_EQ(limits(core_), std::vector{minutes(10)});
  const auto restored = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->relimited, std::set{attempt(id)});
  end_at_limit(id, minutes(10));
  EXPECT_TRUE(limits(core_).empty());
  EXPECT_TRUE(core_.state().relimited.empty());
}

TEST_F(RequeueTest, WhatIsAskedForAfterTheEndWasSeenIsRefused) {
  const std::uint64_t id = running(testing::spec(1));
  end(attempt(id), {"", code(0), EndReason::kNone});
  ASSERT_EQ(job(id).state, JobState::kCompleted);
  EXPECT_EQ(act(id, JobAction::kRequeue).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(act(id, JobAction::kHold).error().code, ErrorCode::kFailedPrecondition);
  const auto cancelled = act(id, JobAction::kCancel);
  ASSERT_TRUE(cancelled);
  EXPECT_FALSE(cancelled->changed);
  EXPECT_EQ(job(id).state, JobState::kCompleted);
}

}  // namespace
}  // namespace gpu_platform::controller
