#include "controller/core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using base::minutes;
using base::seconds;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() {
    core_.apply_policy(model::Policy(), "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
  }

  std::uint64_t submit(model::JobSpec spec, base::Instant now = kNoon) {
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    core_.advance(now);
    return reply ? reply->job.value : 0;
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  bool is_gone(std::uint64_t id) const { return core_.state().jobs.find(id) == nullptr; }
  void see(execution::Observation observation, base::Instant now = kNoon) {
    core_.observe(observation, now);
    core_.advance(now);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }

  Core core_;
};

TEST_F(CoreTest, GivesEachEventItsNumberAndAppliesItAtOnce) {
  submit(testing::spec(1));
  const Batch batch = core_.take_batch();
  for (std::size_t i = 0; i < batch.events.size(); ++i) EXPECT_EQ(batch.events[i].seq.value, i + 1);
  EXPECT_EQ(core_.state().seq, batch.events.back().seq);
  EXPECT_EQ(job(1).state, JobState::kStarting);
  ASSERT_EQ(batch.effects.size(), 1U);
  EXPECT_EQ(std::get<execution::StartOrder>(batch.effects[0]).nodes[0].gpus.size(), 1U);
}

TEST_F(CoreTest, TimeNeverRunsBackwardsInTheJournal) {
  submit(testing::spec(1), kNoon + seconds(10));
  submit(testing::spec(1), kNoon);
  const Batch batch = core_.take_batch();
  for (std::size_t i = 1; i < batch.events.size(); ++i) {
    EXPECT_GE(batch.events[i].at, batch.events[i - 1].at);
  }
}

TEST_F(CoreTest, LateNewsOfAnOldAttemptChangeNothing) {
  model::JobSpec retried = testing::spec(1);
  retried.retries = 1;
  submit(retried);
  see(execution::Started{attempt(1), 5, kNoon});
  see(testing::ended(attempt(1), 1, kNoon));
  see(execution::Cleaned{attempt(1)});
  const base::Instant later = kNoon + minutes(1);
  core_.advance(later);
  see(execution::Started{attempt(1, 2), 6, later}, later);
  const std::uint64_t before = state_hash(core_.state());
  see(execution::Started{attempt(1), 5, kNoon}, later);
  see(testing::ended(attempt(1), 0, later), later);
  see(execution::Cleaned{attempt(1)}, later);
  EXPECT_EQ(state_hash(core_.state()), before);
  EXPECT_EQ(job(1).state, JobState::kRunning);
}

TEST_F(CoreTest, NewsOfWhatNeverWasChangeNothing) {
  submit(testing::spec(1));
  const std::uint64_t before = state_hash(core_.state());
  for (const model::AttemptId id : {attempt(1, 0), attempt(1, 2), attempt(9), attempt(0)}) {
    see(execution::Started{id, 5, kNoon});
    see(testing::ended(id, 0, kNoon));
    see(execution::Cleaned{id});
  }
  see(execution::NodeUnreachable{"nobody", "gone"});
  EXPECT_EQ(state_hash(core_.state()), before);
}

TEST_F(CoreTest, AnEndProvesTheStartWhoseNewsWereLost) {
  submit(testing::spec(1));
  see(testing::ended(attempt(1), 0, kNoon + seconds(1)));
  EXPECT_EQ(job(1).state, JobState::kCompleted);
  EXPECT_TRUE(job(1).attempts[0].started_at.is_set());
}

TEST_F(CoreTest, NothingLeftBeforeTheEndIsKnownWaitsForTheEnd) {
  submit(testing::spec(1));
  see(execution::Started{attempt(1), 5, kNoon});
  see(execution::Cleaned{attempt(1)});
  EXPECT_EQ(job(1).state, JobState::kRunning);
  see(testing::ended(attempt(1), 3, kNoon));
  EXPECT_EQ(job(1).state, JobState::kFailed);
  EXPECT_EQ(job(1).attempts[0].exit.code, 3);
  see(execution::Cleaned{attempt(1)});
  EXPECT_TRUE(is_gone(1));
}

TEST_F(CoreTest, NewsWithoutATimeAreOfNow) {
  submit(testing::spec(1));
  see(execution::Started{attempt(1), 5, {}});
  see(execution::Started{attempt(1), 5, {}});
  EXPECT_EQ(job(1).state, JobState::kRunning);
  EXPECT_EQ(job(1).attempts[0].started_at, kNoon);
}

// A job whose time has come but whose last attempt is still being cleaned up is woken by that, not
// by a timer that is due at once for ever.
TEST_F(CoreTest, AsksNeverToBeWokenInThePast) {
  model::JobSpec retried = testing::spec(1);
  retried.retries = 1;
  submit(retried);
  see(testing::ended(attempt(1), 1, kNoon));
  ASSERT_EQ(job(1).state, JobState::kPending);
  const base::Instant due = job(1).eligible_at;
  EXPECT_EQ(core_.next_wakeup(), due);
  core_.advance(due);
  EXPECT_EQ(job(1).state, JobState::kPending);
  EXPECT_EQ(core_.next_wakeup(), std::nullopt);
  see(execution::Cleaned{attempt(1)}, due + seconds(5));
  EXPECT_EQ(job(1).state, JobState::kStarting);
}

TEST_F(CoreTest, RepeatsWhatMayHaveBeenLostInACrash) {
  submit(testing::spec(1));
  submit(testing::spec(1));
  see(execution::Started{attempt(2), 5, kNoon});
  ASSERT_TRUE(core_.command(testing::stop(2), kNoon, store::Headroom::kAmple));
  const std::vector<execution::KnownAttempt> known = known_attempts(core_.state());
  ASSERT_EQ(known.size(), 2U);
  const std::vector<Effect> effects = pending_effects(core_.state());
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_EQ(std::get<execution::StartOrder>(effects[0]).attempt, attempt(1));
  EXPECT_EQ(std::get<execution::StopOrder>(effects[1]).attempt, attempt(2));
  EXPECT_FALSE(std::get<execution::StopOrder>(effects[1]).without_grace);
}

TEST_F(CoreTest, AnAttemptGivenUpWithItsNodeIsToldToStopForAsLongAsItHolds) {
  submit(testing::spec(1));
  see(execution::Started{attempt(1), 5, kNoon});
  see(execution::NodeUnreachable{"n1", "no answer"});
  EXPECT_EQ(job(1).state, JobState::kPending);
  const std::vector<Effect> effects = pending_effects(core_.state());
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_TRUE(std::get<execution::StopOrder>(effects[0]).without_grace);
}

TEST_F(CoreTest, RefusesNewWorkOnAFullDiskButAnswersRepeats) {
  model::JobSpec named = testing::spec(1);
  named.request_id = "r1";
  submit(named);
  const auto repeated =
      core_.command(testing::submission(named), kNoon, store::Headroom::kReserved);
  ASSERT_TRUE(repeated);
  EXPECT_EQ(repeated->job.value, 1U);
  EXPECT_FALSE(repeated->changed);
  const auto refused =
      core_.command(testing::submission(testing::spec(1)), kNoon, store::Headroom::kReserved);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
}

TEST_F(CoreTest, ARefusedCommandLeavesTheStateAsItWas) {
  submit(testing::spec(2));
  core_.take_batch();
  const std::uint64_t before = state_hash(core_.state());
  EXPECT_FALSE(
      core_.command(testing::submission(testing::spec(3)), kNoon, store::Headroom::kAmple));
  EXPECT_FALSE(core_.command(testing::stop(7), kNoon, store::Headroom::kAmple));
  model::Command others = testing::stop(1);
  others.caller = {"eve", 666, false};
  const auto refused = core_.command(others, kNoon, store::Headroom::kAmple);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  model::Command disguised = testing::submission(testing::spec(1));
  disguised.caller = {"eve", 666, false};
  EXPECT_FALSE(core_.command(disguised, kNoon, store::Headroom::kAmple));
  core_.advance(kNoon);
  EXPECT_FALSE(core_.has_open_batch());
  EXPECT_EQ(state_hash(core_.state()), before);
}

TEST_F(CoreTest, ValuesOfTheEnvironmentAreInNoEvent) {
  const auto reply =
      core_.command(testing::submission(testing::spec(1), std::string("KEY=s3cret\0", 11)), kNoon,
                    store::Headroom::kAmple);
  ASSERT_TRUE(reply);
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.new_environments.size(), 1U);
  EXPECT_EQ(batch.new_environments[0].ref, job(1).spec->environment_ref);
  EXPECT_EQ(encode_state(core_.state()).find("s3cret"), std::string::npos);
}

TEST_F(CoreTest, TheEnvironmentGoesWithTheJob) {
  ASSERT_TRUE(core_.command(testing::submission(testing::spec(1), std::string("A=1\0", 4)), kNoon,
                            store::Headroom::kAmple));
  core_.advance(kNoon);
  see(testing::ended(attempt(1), 0, kNoon));
  EXPECT_TRUE(core_.take_batch().dropped_environments.empty());
  see(execution::Cleaned{attempt(1)});
  const Batch batch = core_.take_batch();
  EXPECT_EQ(batch.dropped_environments, std::vector<std::string>{"job-1"});
  ASSERT_EQ(batch.ended_jobs.size(), 1U);
  EXPECT_EQ(batch.ended_jobs[0].state, JobState::kCompleted);
}

TEST_F(CoreTest, TheSamePolicyAgainIsNoEvent) {
  core_.take_batch();
  core_.apply_policy(model::Policy(), "reload", kNoon);
  EXPECT_FALSE(core_.has_open_batch());
}

TEST_F(CoreTest, ANodeThatSaysTheSameAgainIsNoEvent) {
  core_.take_batch();
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_FALSE(core_.has_open_batch());
}

TEST_F(CoreTest, ANodeThatSaysItHasLessThanIsInUseShrinksToThat) {
  submit(testing::spec(2));
  const std::uint32_t in_use = core_.state().nodes.find(1)->cpus_used;
  model::NodeInfo smaller = testing::node_info("n1", 2);
  smaller.cpus = 1;
  smaller.memory = base::kMiB;
  smaller.gpus[0].memory = base::kMiB;
  see(execution::NodeObserved{smaller});
  EXPECT_EQ(core_.state().nodes.find(1)->cpus, in_use);
  see(testing::ended(attempt(1), 0, kNoon));
  see(execution::Cleaned{attempt(1)});
  see(execution::NodeObserved{smaller});
  EXPECT_EQ(core_.state().nodes.find(1)->cpus, 1U);
}

TEST_F(CoreTest, ANewBootFreesWhatWasThereBeforeTheNodeIsDescribedAnew) {
  submit(testing::spec(2));
  core_.take_batch();
  model::NodeInfo smaller = testing::node_info("n1", 1, "boot-2");
  smaller.cpus = 1;
  see(execution::NodeObserved{smaller});
  std::vector<std::string_view> names;
  for (const model::EventRecord& record : core_.take_batch().events) {
    names.push_back(model::name_of(record.event));
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"AttemptEnded", "JobRequeued", "AttemptReleased",
                                                  "NodeSeen", "GpuStateChanged"}));
}

TEST_F(CoreTest, BackOffDoublesUpToItsLimit) {
  model::Policy policy;
  policy.retry_backoff = seconds(10);
  policy.max_retry_backoff = seconds(25);
  core_.apply_policy(policy, "test", kNoon);
  model::JobSpec retried = testing::spec(1);
  retried.retries = 4;
  submit(retried);
  base::Instant now = kNoon;
  for (const std::int64_t expected : {10, 20, 25, 25}) {
    const model::AttemptId id = attempt(1, static_cast<std::uint32_t>(job(1).attempts.size()));
    see(testing::ended(id, 1, now), now);
    see(execution::Cleaned{id}, now);
    ASSERT_EQ(job(1).state, JobState::kPending);
    EXPECT_EQ(job(1).eligible_at - now, seconds(expected));
    now = job(1).eligible_at;
    core_.advance(now);
  }
}

TEST_F(CoreTest, ATerminalThatNamesNoIdleTimeoutHasTheSites) {
  model::Policy policy;
  policy.idle_timeout = seconds(60);
  core_.apply_policy(policy, "test", kNoon);
  model::JobSpec spec = testing::spec(1);
  EXPECT_EQ(job(submit(spec)).spec->idle_timeout, std::nullopt) << "it has no terminal";
  spec.takes_input = true;
  spec.terminal.emplace();
  EXPECT_EQ(job(submit(spec)).spec->idle_timeout, seconds(60));
  spec.idle_timeout = base::Duration();
  EXPECT_EQ(job(submit(spec)).spec->idle_timeout, base::Duration());
}

TEST_F(CoreTest, AJobWhoseInputIsGoneIsNotRunAgain) {
  model::JobSpec spec = testing::spec(1);
  spec.takes_input = true;
  submit(spec);
  execution::Ended lost = testing::ended(attempt(1), 0, kNoon);
  lost.exit = {.code = {}, .signal = {}, .lost = model::Lost::kUnknown};
  lost.reason = model::EndReason::kSupervisorLost;
  see(lost);
  EXPECT_EQ(job(1).state, JobState::kFailed);
}

// ---- snapshots

TEST_F(CoreTest, ASnapshotGivesTheSameState) {
  submit(testing::spec(1));
  submit(testing::spec(2));
  const std::string bytes = encode_state(core_.state());
  const auto again = decode_state(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(encode_state(*again), bytes);
  EXPECT_EQ(check_invariants(*again), std::vector<std::string>());
}

TEST_F(CoreTest, ASnapshotThatIsCutOrOfAnotherVersionIsRefused) {
  submit(testing::spec(1));
  const std::string bytes = encode_state(core_.state());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_state(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code, ErrorCode::kDataLoss);
  }
  std::string newer = bytes;
  newer[0] = 99;
  const auto refused = decode_state(newer);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("version 99"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::controller
