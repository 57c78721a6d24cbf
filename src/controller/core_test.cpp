#include "controller/core.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

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
  const auto& gpus = std::get<execution::StartOrder>(batch.effects[0]).nodes[0].gpus;
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].grant.share, base::kWholeGpu) << "an engine is told how much of it is its own";
}

// The node's second GPU was replaced: the new one has its index, and another place on the bus.
TEST(StartOrders, NameGpusByTheirPlacesOnTheBusToo) {
  model::NodeInfo info = testing::node_info("n1", 3);
  info.gpus[0].pci_address = "00000000:9a:00.0";
  info.gpus[1].pci_address = "00000000:1b:00.0";
  info.gpus[2].pci_address = "00000000:5d:00.0";
  Core core;
  core.observe(execution::NodeObserved{info}, kNoon);
  (void)core.command(testing::submission(testing::spec(3)), kNoon, store::Headroom::kAmple);
  core.advance(kNoon);
  const Batch batch = core.take_batch();
  ASSERT_EQ(batch.effects.size(), 1U);
  std::map<std::uint32_t, std::uint32_t> places;
  for (const auto& gpu : std::get<execution::StartOrder>(batch.effects[0]).nodes[0].gpus) {
    places[gpu.grant.gpu_index] = gpu.driver_index;
  }
  EXPECT_EQ(places, (std::map<std::uint32_t, std::uint32_t>{{0, 2}, {1, 0}, {2, 1}}));
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
  see(execution::NodeUnreachable{"unknown", "gone"});
  EXPECT_EQ(state_hash(core_.state()), before);
}

TEST_F(CoreTest, AnEndProvesTheStartWhoseNewsWereLost) {
  submit(testing::spec(1));
  see(testing::ended(attempt(1), 0, kNoon + seconds(1)));
  EXPECT_EQ(job(1).state, JobState::kCompleted);
  EXPECT_TRUE(job(1).attempts[0].started_at.is_set());
}

TEST_F(CoreTest, AJobEndsWhenItsLastAttemptDidThoughTheNewsCameLater) {
  model::JobSpec retried = testing::spec(1);
  retried.retries = 1;
  submit(retried);
  const base::Instant restart = kNoon + base::hours(9);
  see(execution::Started{attempt(1), 5, kNoon});
  see(testing::ended(attempt(1), 1, kNoon + seconds(30)), restart);
  EXPECT_FALSE(job(1).ended_at.is_set()) << "it runs again";
  see(execution::Cleaned{attempt(1)}, restart);
  const base::Instant again = restart + minutes(1);
  core_.advance(again);
  see(execution::Started{attempt(1, 2), 6, again}, again);
  see(testing::ended(attempt(1, 2), 0, again + seconds(20)), again + base::hours(2));
  EXPECT_EQ(job(1).attempts[1].ended_at, again + seconds(20));
  EXPECT_EQ(job(1).ended_at, job(1).attempts[1].ended_at);
}

TEST_F(CoreTest, AJobThatIsCancelledBetweenAttemptsEndsThen) {
  model::JobSpec retried = testing::spec(1);
  retried.retries = 1;
  submit(retried);
  submit(testing::spec(2));
  see(execution::Started{attempt(1), 5, kNoon});
  see(testing::ended(attempt(1), 1, kNoon + seconds(1)), kNoon + seconds(1));
  const base::Instant later = kNoon + seconds(3);
  ASSERT_TRUE(core_.command(testing::stop(1), later, store::Headroom::kAmple));
  EXPECT_EQ(job(1).state, JobState::kCancelled);
  EXPECT_EQ(job(1).ended_at, later);
}

// After a repair of the store the state is older than the archive.
TEST_F(CoreTest, AJobThatTheArchiveHasAfterARepairLeavesTheCoreAndItsIdIsNotGivenAgain) {
  submit(testing::spec(2));
  see(execution::Started{attempt(1), 5, kNoon});
  model::JobSpec after = testing::spec(1);
  after.dependencies = {{model::DependencyKind::kAfterOk, {model::JobId(1), false}}};
  submit(after);
  submit(testing::spec(1));
  ASSERT_EQ(job(2).state, JobState::kPending);
  ASSERT_EQ(job(3).state, JobState::kQueued);
  const base::Instant then = kNoon + minutes(5);
  core_.take_batch();
  core_.replay({model::EventSeq(core_.state().seq.value + 1), kNoon + minutes(9),
                model::StoreRepaired{40,
                                     {{model::JobId(1), JobState::kCompleted, then},
                                      {model::JobId(3), JobState::kCancelled, then},
                                      {model::JobId(39), JobState::kFailed, then}}}});
  EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  EXPECT_TRUE(is_gone(1));
  EXPECT_TRUE(is_gone(3));
  core_.advance(kNoon + minutes(9));
  EXPECT_EQ(job(2).state, JobState::kStarting) << "what it waited for was well, and GPUs are free";
  EXPECT_EQ(submit(testing::spec(1), kNoon + minutes(9)), 41U);
  EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
}

TEST_F(CoreTest, ARepairThatDoesNotKnowTheTimeSetsNothingBack) {
  core_.advance(kNoon);
  const base::Instant before = core_.state().at;
  core_.replay({model::EventSeq(core_.state().seq.value + 1), {}, model::StoreRepaired{}});
  EXPECT_EQ(core_.state().at, before);
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

TEST_F(CoreTest, ANodeOfAnotherBootGetsNothingBeforeItIsObserved) {
  submit(testing::spec(1));
  see(execution::Started{attempt(1), 5, kNoon});
  see(execution::MachineBooted{"boot-2"});
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kLost);
  EXPECT_EQ(job(1).state, JobState::kRunning) << "the engine has the records and tells its end";
  execution::Ended ended;
  ended.attempt = attempt(1);
  ended.exit.lost = model::Lost::kNodeLost;
  ended.reason = model::EndReason::kNodeLost;
  see(ended);
  const base::Instant later = kNoon + minutes(2);  // past the delay before the second attempt
  submit(testing::spec(1), later);
  EXPECT_EQ(job(1).state, JobState::kQueued);
  EXPECT_EQ(job(2).state, JobState::kQueued);

  see(execution::NodeObserved{testing::node_info("n1", 2, "boot-2")}, later);

  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kUp);
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_EQ(job(id).state, JobState::kStarting) << id;
  }
  EXPECT_EQ(job(1).attempts.size(), 2U);
  EXPECT_EQ(job(2).attempts.size(), 1U);
}

TEST_F(CoreTest, NodesOfThisBootAndOfClustersAreLeftAlone) {
  see(execution::MachineBooted{"boot-1"});
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kUp);
  model::NodeInfo pods = testing::node_info("k1", 2, "boot-9");
  pods.engine = model::EngineKind::kKubernetes;
  see(execution::NodeObserved{pods});
  see(execution::MachineBooted{"boot-2"});
  EXPECT_EQ(core_.state().nodes.find(2)->state, model::NodeState::kUp);
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
  others.caller = {"eve", 666};
  const auto refused = core_.command(others, kNoon, store::Headroom::kAmple);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  model::Command disguised = testing::submission(testing::spec(1));
  disguised.caller = {"eve", 666};
  EXPECT_FALSE(core_.command(disguised, kNoon, store::Headroom::kAmple));
  core_.advance(kNoon);
  EXPECT_TRUE(core_.take_batch().empty());
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
  EXPECT_TRUE(core_.take_batch().empty());
}

TEST_F(CoreTest, ANodeThatSaysTheSameAgainIsNoEvent) {
  core_.take_batch();
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_TRUE(core_.take_batch().empty());
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
                                                  "NodeSeen", "TaintChanged"}));
}

TEST_F(CoreTest, SnapshotsShareTheIndexOfNodesUntilOneComes) {
  see(execution::NodeObserved{testing::node_info("b1", 1)});
  const auto before = core_.snapshot();
  submit(testing::spec(1));
  const auto after = core_.snapshot();
  EXPECT_EQ(&*before->nodes_by_name, &*after->nodes_by_name);
  see(execution::NodeObserved{testing::node_info("a1", 1)});
  const auto snapshot = core_.snapshot();
  EXPECT_EQ(*snapshot->nodes_by_name, model::nodes_by_name(snapshot->nodes));
  EXPECT_EQ(model::node_named(snapshot->nodes, *snapshot->nodes_by_name, "a1")->name, "a1");
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
  // As older programs wrote it.
  const std::size_t without_money = bytes.size() - testing::money_bytes(core_.state());
  const std::size_t without_errors = without_money - scheduling::kDepths * scheduling::kStartBounds;
  const std::size_t without_tokens = without_errors - 3;
  const std::size_t without_teams = without_errors - 1;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const bool is_older = size == without_tokens || size == without_teams ||
                          size == without_errors || size == without_money;
    if (is_older) continue;
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

TEST_F(CoreTest, ASnapshotFromBeforeTypesOfGpuTimeWereKeptIsRead) {
  model::Policy policy;
  policy.order = model::QueueOrder::kFairShare;
  model::TypeQuota h100{.type = "H100", .max_gpus = {}, .gpu_hours = 9};
  policy.organisation = model::Organisation{.of_each_user = {.gpu_hours = 10, .gpu_types = {h100}}};
  core_.apply_policy(policy, "test", kNoon);
  model::JobSpec two = testing::spec(2);
  two.time_limit = base::hours(2);
  submit(two);
  see(execution::Started{attempt(1), 5, kNoon});
  const base::Instant later = kNoon + base::hours(1);
  see(testing::ended(attempt(1), 0, later), later);
  see(execution::Cleaned{attempt(1)}, later);
  const std::string bytes = encode_state(core_.state());
  const scheduling::QuotaSubject ann{model::QuotaHolder::kUser, "ann"};
  const auto uses_of_ann = [&](const State& state) { return state.books->quotas.uses().at(ann); };
  const auto two_hours = scheduling::gpu_time(base::kWholeGpu * 2, base::hours(1));
  const auto same = decode_state(bytes);
  ASSERT_TRUE(same);
  EXPECT_EQ(encode_state(*same), bytes);
  EXPECT_EQ(uses_of_ann(*same).used, two_hours);
  EXPECT_EQ(uses_of_ann(*same).of_types.at("H100-80GB").used, two_hours);
  std::vector<State> older;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto cut = decode_state(std::string_view(bytes).substr(0, size));
    if (cut) older.push_back(*std::move(cut));
  }
  ASSERT_EQ(older.size(), 5U) << "from before that, before tokens, before teams, before errors of "
                                 "predictions and before money were kept";
  EXPECT_FALSE(uses_of_ann(older.back()).of_types.empty());
  EXPECT_EQ(check_invariants(older.front()), std::vector<std::string>());
  EXPECT_EQ(uses_of_ann(older.front()).used, two_hours);
  EXPECT_TRUE(uses_of_ann(older.front()).of_types.empty()) << "of an unknown type";
}

}  // namespace
}  // namespace gpu_platform::controller
