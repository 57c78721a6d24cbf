#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using model::GpuAction;
using model::GpuState;
using model::JobState;
using testing::attempt;
using testing::kNoon;

model::GpuSelector gpu(std::uint32_t index) {
  return {.node = "n1", .index = index};
}

class GpusTest : public ::testing::Test {
 protected:
  GpusTest() {
    core_.apply_policy(model::Policy(), "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
  }

  base::Result<model::CommandReply> change(model::GpuSelector which, GpuAction action,
                                           bool force = false, bool administrator = true) {
    return order({std::move(which), action, "a fan is loud", force},
                 administrator ? model::root_caller() : testing::kOwner);
  }
  bool is_changed(model::ChangeGpus command) {
    const auto reply = order(std::move(command), model::root_caller());
    EXPECT_TRUE(reply);
    return reply && reply->changed;
  }
  base::Result<model::CommandReply> order(model::ChangeGpus command, const model::Caller& by) {
    auto reply = core_.command({by, std::move(command)}, kNoon, store::Headroom::kAmple);
    core_.advance(kNoon);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  std::uint64_t submit(std::uint32_t gpus) {
    const auto reply =
        core_.command(testing::submission(testing::spec(gpus)), kNoon, store::Headroom::kAmple);
    EXPECT_TRUE(reply);
    core_.advance(kNoon);
    return reply->job.value;
  }
  void see(execution::Observation observation) {
    core_.observe(observation, kNoon);
    core_.advance(kNoon);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Gpu& at(std::uint32_t index) const {
    return core_.state().nodes.find(1)->gpus.at(index);
  }
  JobState state_of(std::uint64_t job) const { return core_.state().jobs.find(job)->state; }

  Core core_;
};

TEST_F(GpusTest, ADrainedGpuFinishesItsJobAndGetsNoOther) {
  submit(1);
  see(execution::Started{attempt(1), 5, kNoon});
  const auto reply = change(gpu(0), GpuAction::kDrain);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->gpus, (std::vector<model::GpuRef>{{model::NodeId(1), 0}}));
  EXPECT_EQ(state_of(1), JobState::kRunning);
  EXPECT_EQ(at(0).cause, "a fan is loud");
  EXPECT_EQ(at(0).changed_by, "root");
  see(testing::ended(attempt(1), 0, kNoon));
  see(execution::Cleaned{attempt(1)});
  EXPECT_EQ(at(0).state, GpuState::kDraining);
  submit(1);
  EXPECT_EQ(at(1).state, GpuState::kAllocated);
  EXPECT_EQ(state_of(submit(1)), JobState::kQueued);
}

TEST_F(GpusTest, AGpuThatAJobHoldsGoesOfflineByForceOnlyAndItsJobIsQueuedAgain) {
  submit(1);
  see(execution::Started{attempt(1), 5, kNoon});
  const auto refused = change(gpu(0), GpuAction::kTakeOffline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(at(0).state, GpuState::kInUse);
  ASSERT_TRUE(change(gpu(0), GpuAction::kTakeOffline, true));
  EXPECT_EQ(at(0).state, GpuState::kOffline);
  EXPECT_EQ(state_of(1), JobState::kStopping);
  execution::Ended killed;
  killed.attempt = attempt(1);
  killed.at = kNoon;
  killed.exit.signal = 15;
  killed.reason = model::EndReason::kGpuOffline;
  see(killed);
  see(execution::Cleaned{attempt(1)});
  EXPECT_EQ(core_.state().jobs.find(1)->attempts.size(), 2U);  // on the other one
  EXPECT_EQ(core_.state().jobs.find(1)->losses, 0U);
  EXPECT_EQ(core_.state().jobs.find(1)->failures, 0U);
}

TEST_F(GpusTest, AnEmptyGpuGoesOfflineAndComesBack) {
  ASSERT_TRUE(change(gpu(1), GpuAction::kTakeOffline));
  EXPECT_EQ(at(1).state, GpuState::kOffline);
  const auto again = change(gpu(1), GpuAction::kTakeOffline);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->changed);
  EXPECT_TRUE(again->gpus.empty());
  ASSERT_TRUE(change({.uuid = "n1-1"}, GpuAction::kBringOnline));
  EXPECT_EQ(at(1).state, GpuState::kAvailable);
  EXPECT_EQ(at(1).cause, "");
  EXPECT_EQ(at(1).changed_by, "");
}

TEST_F(GpusTest, AnotherReasonIsTakenOver) {
  submit(1);
  EXPECT_TRUE(is_changed({gpu(0), GpuAction::kDrain, "a fan is loud"}));
  EXPECT_TRUE(is_changed({gpu(0), GpuAction::kDrain, "its memory fails"}));
  EXPECT_EQ(at(0).cause, "its memory fails");
  EXPECT_FALSE(is_changed({gpu(0), GpuAction::kDrain, "its memory fails"}));
  EXPECT_FALSE(is_changed({gpu(0), GpuAction::kDrain, ""})) << "no reason is no other reason";
  EXPECT_TRUE(is_changed({gpu(1), GpuAction::kTakeOffline, "it burns"}));
  EXPECT_TRUE(is_changed({gpu(1), GpuAction::kTakeOffline, "it burnt"}));
  EXPECT_EQ(at(1).cause, "it burnt");
  EXPECT_FALSE(is_changed({gpu(1), GpuAction::kDrain, "a fan is loud"})) << "it is out";
  EXPECT_EQ(at(1).state, GpuState::kOffline);
}

TEST_F(GpusTest, AnotherReasonOfANodeIsTakenOver) {
  submit(1);
  const auto cause = [&] { return core_.state().nodes.find(1)->cause; };
  EXPECT_TRUE(is_changed({{.node = "n1"}, GpuAction::kDrain, "a disk is full"}));
  EXPECT_TRUE(is_changed({{.node = "n1"}, GpuAction::kDrain, "a disk is slow"}));
  EXPECT_EQ(cause(), "a disk is slow");
  EXPECT_FALSE(is_changed({{.node = "n1"}, GpuAction::kDrain, ""}));
  EXPECT_TRUE(is_changed({{.node = "n1"}, GpuAction::kTakeOffline, "it burns", true}));
  EXPECT_TRUE(is_changed({{.node = "n1"}, GpuAction::kTakeOffline, "it burnt"}))
      << "nothing is taken away any more";
  EXPECT_EQ(cause(), "it burnt");
  EXPECT_FALSE(is_changed({{.node = "n1"}, GpuAction::kDrain, "a fan is loud"})) << "it is out";
}

TEST_F(GpusTest, AGpuThatItsDriverDoesNotReportCannotBeBroughtOnline) {
  see(execution::NodeObserved{testing::node_info("n1", 1)});
  ASSERT_EQ(at(1).state, GpuState::kOffline);
  const auto refused = change(gpu(1), GpuAction::kBringOnline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(GpusTest, ADrainOutlivesAGpuThatVanishesAndComesBack) {
  ASSERT_TRUE(change(gpu(1), GpuAction::kDrain));
  see(execution::NodeObserved{testing::node_info("n1", 1)});
  EXPECT_EQ(at(1).state, GpuState::kOffline);
  EXPECT_EQ(at(1).cause, "not reported by the driver any more; a fan is loud");
  EXPECT_EQ(at(1).changed_by, "node");
  EXPECT_FALSE(change(gpu(1), GpuAction::kDrain)->changed) << "it is drained";
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(at(1).state, GpuState::kDraining);
  EXPECT_EQ(at(1).cause, "a fan is loud");
  EXPECT_EQ(at(1).changed_by, "root");
  const std::uint64_t job = submit(2);
  EXPECT_EQ(state_of(job), JobState::kQueued) << "it takes no new work";
  ASSERT_TRUE(change(gpu(1), GpuAction::kBringOnline));
  EXPECT_EQ(at(1).cause, "");
  EXPECT_EQ(state_of(job), JobState::kStarting);
}

TEST_F(GpusTest, AnOperatorDecidesOfAGpuThatHasVanished) {
  for (const auto& [action, state] : {std::pair(GpuAction::kDrain, GpuState::kDraining),
                                      std::pair(GpuAction::kTakeOffline, GpuState::kOffline)}) {
    see(execution::NodeObserved{testing::node_info("n1", 1)});
    const auto reply = change(gpu(1), action);
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->changed);
    EXPECT_EQ(at(1).state, GpuState::kOffline);
    see(execution::NodeObserved{testing::node_info("n1", 2)});
    EXPECT_EQ(at(1).state, state);
    EXPECT_EQ(at(1).cause, "a fan is loud");
    ASSERT_TRUE(change(gpu(1), GpuAction::kBringOnline));
    EXPECT_EQ(at(1).state, GpuState::kAvailable);
  }
}

TEST_F(GpusTest, WhatAnOperatorLiftsLeavesWhatItsDriverSays) {
  ASSERT_TRUE(change(gpu(1), GpuAction::kTakeOffline));
  see(execution::NodeObserved{testing::node_info("n1", 1)});
  EXPECT_EQ(at(1).cause, "a fan is loud; not reported by the driver any more");
  const auto lifted = change(gpu(1), GpuAction::kBringOnline);
  ASSERT_TRUE(lifted);
  EXPECT_TRUE(lifted->changed);
  EXPECT_EQ(at(1).state, GpuState::kOffline);
  EXPECT_EQ(at(1).cause, "not reported by the driver any more");
  EXPECT_FALSE(change(gpu(1), GpuAction::kBringOnline));
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(at(1).state, GpuState::kAvailable);
}

TEST_F(GpusTest, AGpuWithAJobComesBackDrainedWithItsJob) {
  const std::uint64_t job = submit(2);
  ASSERT_TRUE(change(gpu(1), GpuAction::kDrain));
  see(execution::NodeObserved{testing::node_info("n1", 1)});
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(at(1).state, GpuState::kDraining);
  EXPECT_EQ(at(1).holders.size(), 1U);
  ASSERT_TRUE(change(gpu(1), GpuAction::kBringOnline));
  EXPECT_EQ(at(1).state, GpuState::kAllocated);
  EXPECT_EQ(state_of(job), JobState::kStarting);
}

TEST_F(GpusTest, WhatAnOperatorMadeOfALostNodeOutlivesItsReturn) {
  see(execution::NodeUnreachable{"n1", "no answer"});
  ASSERT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kLost);
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kDrain)->changed);
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kDraining);
  EXPECT_EQ(core_.state().nodes.find(1)->cause, "a fan is loud");
}

class DrainUntil : public GpusTest {
 protected:
  // A drain of the node, or of one of its GPUs, with this end.
  base::Result<model::CommandReply> drain(base::Instant until, std::string reason = "a fan is loud",
                                          std::optional<std::uint32_t> index = {}) {
    return order({.which = {.node = "n1", .index = index},
                  .action = GpuAction::kDrain,
                  .reason = std::move(reason),
                  .until = until},
                 model::root_caller());
  }
  void advance(base::Instant now) {
    core_.advance(now);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Node& node() const { return *core_.state().nodes.find(1); }

  const base::Instant end_ = kNoon + base::hours(2);
};

TEST_F(DrainUntil, ItIsLiftedThenAndNotBefore) {
  ASSERT_TRUE(drain(end_));
  EXPECT_EQ(node().cause, "a fan is loud (until 2023-11-15T00:13:20Z)");
  EXPECT_EQ(core_.next_wakeup(), std::optional(end_));
  advance(base::Instant(end_.unix_ns() - 1));
  EXPECT_EQ(node().state, model::NodeState::kDraining);
  advance(end_);
  EXPECT_EQ(node().state, model::NodeState::kUp);
  EXPECT_EQ(node().cause, "");
  EXPECT_FALSE(core_.next_wakeup());
}

TEST_F(DrainUntil, TheEventOfItsEndSaysSo) {
  ASSERT_TRUE(drain(end_, "a fan is loud", 1));
  core_.take_batch();
  advance(end_);
  const Batch batch = core_.take_batch();
  const auto change = std::ranges::find_if(batch.events, [](const model::EventRecord& record) {
    return std::holds_alternative<model::TaintChanged>(record.event);
  });
  ASSERT_NE(change, batch.events.end());
  const auto& lifted = std::get<model::TaintChanged>(change->event);
  EXPECT_TRUE(lifted.is_lifted);
  EXPECT_EQ(lifted.gpu, std::optional(1U));
  EXPECT_EQ(lifted.taint.text,
            "its time is over, it was to end at 2023-11-15T00:13:20Z: a fan is loud");
  EXPECT_EQ(lifted.taint.by, "");
}

TEST_F(DrainUntil, OfANodeAndOfItsGpusEndEachAtItsOwnTime) {
  ASSERT_TRUE(drain(end_));
  ASSERT_TRUE(drain(kNoon + base::hours(1), "its memory fails", 0));
  ASSERT_TRUE(drain(end_ + base::hours(1), "its memory fails", 1));
  advance(kNoon + base::hours(1));
  EXPECT_EQ(at(0).state, GpuState::kAvailable);
  EXPECT_EQ(node().state, model::NodeState::kDraining);
  advance(end_);
  EXPECT_EQ(node().state, model::NodeState::kUp);
  EXPECT_EQ(at(1).state, GpuState::kDraining);
  advance(end_ + base::hours(5));
  EXPECT_EQ(at(1).state, GpuState::kAvailable);
}

TEST_F(DrainUntil, AnEndThatIsOverIsRefused) {
  for (const base::Instant past : {kNoon, base::Instant(1)}) {
    const auto refused = drain(past);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().field, "until");
    EXPECT_TRUE(refused.error().message.ends_with("has passed; give a future time"));
  }
  EXPECT_EQ(node().state, model::NodeState::kUp);
}

TEST_F(DrainUntil, ALaterOrderReplacesItsEndAndWithoutAReasonKeepsTheText) {
  ASSERT_TRUE(drain(end_)->changed);
  EXPECT_FALSE(drain(end_)->changed);
  EXPECT_TRUE(drain(end_ + base::hours(1), "")->changed);
  EXPECT_EQ(node().cause, "a fan is loud (until 2023-11-15T01:13:20Z)");
  advance(end_);
  EXPECT_EQ(node().state, model::NodeState::kDraining);
  EXPECT_TRUE(drain({}, "")->changed);
  EXPECT_EQ(node().cause, "a fan is loud") << "it has no end any more";
  advance(end_ + base::hours(5));
  EXPECT_EQ(node().state, model::NodeState::kDraining);
}

TEST_F(DrainUntil, OnlineLiftsItBefore) {
  ASSERT_TRUE(drain(end_));
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kBringOnline));
  EXPECT_EQ(node().state, model::NodeState::kUp);
  EXPECT_FALSE(core_.next_wakeup());
}

TEST_F(DrainUntil, OnlyTheOperatorsOwnIsLifted) {
  ASSERT_TRUE(drain(end_, "a fan is loud", 1));
  see(execution::TaintObserved{.node_name = "n1",
                               .gpu_uuid = at(1).info.uuid,
                               .effect = model::TaintEffect::kAvoided,
                               .text = "a pod has it"});
  see(execution::NodeUnreachable{"n1", "it does not answer"});
  advance(end_);
  EXPECT_EQ(model::text_of_avoided(at(1).taints), "not available to the platform: a pod has it");
  EXPECT_EQ(node().state, model::NodeState::kLost) << "nothing is heard of it";
}

TEST_F(DrainUntil, AfterARestartItIsLiftedAtOnce) {
  ASSERT_TRUE(drain(end_));
  auto restored = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->taint_ends, core_.state().taint_ends);
  EXPECT_EQ(restored->nodes.find(1)->taints, node().taints);
  Core again(*std::move(restored));
  again.advance(end_ + base::hours(24));
  EXPECT_EQ(again.state().nodes.find(1)->state, model::NodeState::kUp);
}

// As in snapshots of versions that kept one party for each GPU.
TEST(FormerTaints, FollowFromWhatWasKept) {
  model::Gpu gpu;
  gpu.state = GpuState::kOffline;
  gpu.is_reported = false;
  gpu.cause = "not reported by the driver any more";
  gpu.changed_by = "node";
  model::add_former_taints(gpu);
  EXPECT_EQ(model::worst_of(gpu.taints)->source, model::TaintSource::kDriver);
  gpu.taints.clear();
  gpu.cause = "a person of that name took it out";
  model::add_former_taints(gpu);
  EXPECT_EQ(model::worst_of(gpu.taints)->source, model::TaintSource::kOperator);
  gpu.taints.clear();
  gpu.state = GpuState::kDraining;
  gpu.is_reported = true;
  gpu.changed_by = "ann";
  model::add_former_taints(gpu);
  EXPECT_EQ(model::worst_of(gpu.taints)->source, model::TaintSource::kOperator);
  EXPECT_EQ(model::worst_of(gpu.taints)->effect, model::TaintEffect::kNoNewWork);
  gpu.taints.clear();
  gpu.state = GpuState::kInUse;
  model::add_former_taints(gpu);
  EXPECT_TRUE(gpu.taints.empty());
  gpu.unmanaged_processes = "pid 7";
  gpu.former_avoids_processes = true;
  gpu.former_unavailable = "a pod has it";
  model::add_former_taints(gpu);
  EXPECT_EQ(model::text_of_avoided(gpu.taints),
            "unmanaged processes: pid 7; not available to the platform: a pod has it");
  EXPECT_FALSE(gpu.former_avoids_processes);
  EXPECT_EQ(gpu.former_unavailable, "");
}

// n1 with GPUs of these UUIDs.
execution::NodeObserved with_gpus(const std::vector<std::string>& uuids) {
  model::NodeInfo info = testing::node_info("n1", static_cast<std::uint32_t>(uuids.size()));
  for (std::size_t i = 0; i < uuids.size(); ++i) info.gpus[i].uuid = uuids[i];
  return execution::NodeObserved{info};
}

TEST_F(GpusTest, OrderInWhichADriverListsThemIsNoNews) {
  see(with_gpus({"b", "a"}));
  const model::EventSeq before = core_.state().seq;
  execution::NodeObserved seen = with_gpus({"b", "a"});
  std::ranges::reverse(seen.info.gpus);
  see(seen);
  EXPECT_EQ(core_.state().seq, before);
}

TEST_F(GpusTest, PlaceOfOneThatIsGoneIsGivenToTheNext) {
  const std::string first = at(0).info.uuid;
  const std::string second = at(1).info.uuid;
  see(with_gpus({"a", "b"}));
  ASSERT_EQ(core_.state().nodes.find(1)->gpus.size(), 4U);
  see(with_gpus({"c", "a"}));
  EXPECT_EQ(at(0).info.uuid, "c");
  EXPECT_EQ(at(0).state, GpuState::kAvailable);
  EXPECT_EQ(at(1).info.uuid, second);
  EXPECT_EQ(at(1).state, GpuState::kOffline);
  EXPECT_EQ(at(2).info.uuid, "a") << "it is there, in its place";
  see(with_gpus({first, "c", "d"}));
  EXPECT_EQ(at(1).info.uuid, first) << "it was forgotten, and is new";
  EXPECT_EQ(at(3).info.uuid, "d");
  // However often they are cut anew, they take as many places as two cuts have.
  for (int i = 0; i < 40; ++i) see(with_gpus({"x" + std::to_string(i), "y" + std::to_string(i)}));
  EXPECT_LE(core_.state().nodes.find(1)->gpus.size(), 5U);
}

TEST_F(GpusTest, OneThatIsGoneIsKnownAsLongAsSomethingNamesIt) {
  const std::string held = at(0).info.uuid;
  const std::uint64_t job = submit(1);
  ASSERT_EQ(at(0).holders.size(), 1U);
  ASSERT_TRUE(change(gpu(1), GpuAction::kDrain));
  const std::string drained = at(1).info.uuid;
  see(with_gpus({"a"}));
  see(with_gpus({"b"}));
  see(with_gpus({"c"}));
  EXPECT_EQ(at(0).info.uuid, held);
  EXPECT_EQ(at(1).info.uuid, drained);
  EXPECT_EQ(at(2).info.uuid, "c");
  EXPECT_EQ(core_.state().jobs.find(job)->attempts[0].granted->at(0).gpus.at(0).uuid, held);
}

TEST_F(GpusTest, OneOfAReservationIsKnownUntilThatHasEnded) {
  model::MakeReservation reserve;
  reserve.name = "course";
  reserve.begin = kNoon + base::hours(1);
  reserve.end = kNoon + base::hours(2);
  reserve.users = {"ada"};
  reserve.gpus = 2;
  ASSERT_TRUE(core_.command({model::root_caller(), reserve}, kNoon, store::Headroom::kAmple));
  const std::string reserved = at(0).info.uuid;
  see(with_gpus({"a"}));
  see(with_gpus({"b"}));
  see(with_gpus({"c"}));
  EXPECT_EQ(at(0).info.uuid, reserved);
  EXPECT_EQ(at(2).info.uuid, "c");
}

TEST_F(GpusTest, AGpuThatAnOperatorTookOutStaysOutWhenItsNodeIsDescribedAgain) {
  ASSERT_TRUE(change(gpu(1), GpuAction::kTakeOffline));
  const model::EventSeq before = core_.state().seq;
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(at(1).state, GpuState::kOffline);
  EXPECT_EQ(core_.state().seq, before) << "nothing new was said";
}

TEST_F(GpusTest, ADrainedNodeTakesNoWorkAndComesBack) {
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kDrain));
  EXPECT_EQ(state_of(submit(0)), JobState::kQueued) << "jobs without GPUs too";
  const auto reply = change({.node = "n1"}, GpuAction::kBringOnline);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->gpus.size(), 2U);
  EXPECT_EQ(state_of(1), JobState::kStarting);
}

TEST_F(GpusTest, WhatAnOperatorMadeOfANodeOutlivesABrokenConnection) {
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kDrain));
  see(execution::NodeUnreachable{"n1", "no answer"});
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kLost);
  EXPECT_EQ(core_.state().nodes.find(1)->cause, "no answer; a fan is loud");
  EXPECT_FALSE(change({.node = "n1"}, GpuAction::kBringOnline)) << "it is not there";
  see(execution::NodeObserved{testing::node_info("n1", 2)});
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kDraining);
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kBringOnline));
  EXPECT_EQ(core_.state().nodes.find(1)->state, model::NodeState::kUp);
}

TEST_F(GpusTest, ANodeWithJobsGoesOfflineByForceOnly) {
  submit(0);
  see(execution::Started{attempt(1), 5, kNoon});
  EXPECT_FALSE(change({.node = "n1"}, GpuAction::kTakeOffline));
  ASSERT_TRUE(change({.node = "n1"}, GpuAction::kTakeOffline, true));
  EXPECT_EQ(state_of(1), JobState::kStopping);
}

TEST_F(GpusTest, WhatIsNotThereIsSaidAndOnlyAdministratorsMay) {
  EXPECT_EQ(change({.uuid = "GPU-0"}, GpuAction::kDrain).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(change({.node = "n7"}, GpuAction::kDrain).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(change(gpu(2), GpuAction::kDrain).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(change(gpu(0), GpuAction::kDrain, false, false).error().code,
            ErrorCode::kPermissionDenied);
  EXPECT_EQ(at(0).state, GpuState::kAvailable);
}

execution::TaintObserved by_health(std::optional<model::TaintEffect> effect, std::string text) {
  return {"n1", "n1-0", model::TaintSource::kHealth, effect, std::move(text)};
}

TEST_F(GpusTest, AGpuThatDoesNotAnswerIsOutUntilHealthTakesItBackAndKeepsItsJob) {
  submit(1);
  see(execution::Started{attempt(1), 5, kNoon});
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  EXPECT_EQ(at(0).state, GpuState::kOffline);
  EXPECT_EQ(at(0).changed_by, "health");
  EXPECT_EQ(state_of(1), JobState::kRunning);
  const auto refused = change(gpu(0), GpuAction::kBringOnline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "GPU 0 of node n1 cannot be brought online: it does not answer; it comes back by "
            "itself when it has answered for a while");
  see(by_health(std::nullopt, ""));
  EXPECT_EQ(at(0).state, GpuState::kInUse);
}

TEST_F(GpusTest, AFaultStaysUntilAnOperatorBringsTheGpuOnline) {
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  see(by_health(model::TaintEffect::kNoNewWork, "XID 79"));
  EXPECT_EQ(at(0).state, GpuState::kDraining);
  const model::EventSeq before = core_.state().seq;
  see(by_health(model::TaintEffect::kNoNewWork, "XID 48"));
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  see(by_health(std::nullopt, ""));
  EXPECT_EQ(core_.state().seq, before) << "the first fault is kept";
  EXPECT_EQ(at(0).cause, "XID 79");
  EXPECT_EQ(state_of(submit(2)), JobState::kQueued);
  ASSERT_TRUE(change(gpu(0), GpuAction::kBringOnline));
  EXPECT_EQ(state_of(1), JobState::kStarting);
}

TEST_F(GpusTest, HealthAndAnOperatorDecideApart) {
  ASSERT_TRUE(change(gpu(0), GpuAction::kDrain));
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  EXPECT_EQ(at(0).cause, "does not answer; a fan is loud");
  see(by_health(std::nullopt, ""));
  EXPECT_EQ(at(0).cause, "a fan is loud");
  see(by_health(model::TaintEffect::kNoNewWork, "XID 48"));
  EXPECT_EQ(at(0).cause, "a fan is loud; XID 48");
  ASSERT_TRUE(change(gpu(0), GpuAction::kBringOnline));
  EXPECT_TRUE(at(0).taints.empty()) << "an operator lifts both";
}

TEST_F(GpusTest, HealthThatIsSwitchedOffKeepsNoWorkAway) {
  see(by_health(model::TaintEffect::kNoNewWork, "XID 48"));
  ASSERT_TRUE(change(gpu(1), GpuAction::kDrain));
  model::Policy policy;
  policy.sick_gpus = model::SickGpuPolicy::kOff;
  core_.apply_policy(policy, "test", kNoon);
  EXPECT_EQ(at(0).state, GpuState::kAvailable);
  EXPECT_EQ(at(1).state, GpuState::kDraining) << "an operator's stays";
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  EXPECT_TRUE(at(0).taints.empty());
  core_.apply_policy(model::Policy(), "test", kNoon);
  see(by_health(model::TaintEffect::kOut, "does not answer"));
  EXPECT_EQ(at(0).state, GpuState::kOffline);
}

TEST_F(GpusTest, UnmanagedProcessesKeepNewWorkAwayUntilTheyAreGone) {
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 77 of bob"});
  EXPECT_NE(model::find_taint(at(0).taints, model::TaintSource::kProcesses), nullptr);
  EXPECT_EQ(state_of(submit(2)), JobState::kQueued);
  const model::EventSeq before = core_.state().seq;
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 77 of bob"});
  EXPECT_EQ(core_.state().seq, before) << "told twice, written once";
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", ""});
  EXPECT_EQ(state_of(1), JobState::kStarting);
}

TEST_F(GpusTest, ThePolicySaysWhatUnmanagedProcessesMean) {
  model::Policy policy;
  policy.unmanaged_processes = model::UnmanagedProcessPolicy::kAlert;
  core_.apply_policy(policy, "test", kNoon);
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 77 of bob"});
  EXPECT_EQ(at(0).unmanaged_processes, "pid 77 of bob");
  EXPECT_EQ(state_of(submit(2)), JobState::kStarting);
  policy.unmanaged_processes = model::UnmanagedProcessPolicy::kIgnore;
  core_.apply_policy(policy, "test", kNoon);
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 78 of bob"});
  EXPECT_EQ(at(0).unmanaged_processes, "");
}

TEST_F(GpusTest, PlacedByLoadAGpuWithOthersOnItGetsJobsWhileItPassesTheLimits) {
  model::Policy policy;
  policy.load_rules.is_on = true;
  core_.apply_policy(policy, "test", kNoon);
  const auto told = [&](std::optional<model::GpuLoad> load) {
    see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 77 of bob", load});
  };
  told(std::nullopt);
  EXPECT_FALSE(at(0).taints.empty()) << "nothing is known of its load";
  told(model::GpuLoad{60, base::kGiB * 60});
  ASSERT_NE(model::find_taint(at(0).taints, model::TaintSource::kProcesses), nullptr);
  EXPECT_EQ(at(0).taints.front().text,
            "pid 77 of bob: others use it for 60 % of the time, and gpu_selection allows 50 %");
  EXPECT_EQ(state_of(submit(2)), JobState::kQueued);
  told(model::GpuLoad{20, base::kGiB * 60});
  EXPECT_TRUE(at(0).taints.empty());
  EXPECT_EQ(state_of(1), JobState::kStarting);
  const model::Attempt& attempt = core_.state().jobs.find(1)->attempts.back();
  ASSERT_EQ(attempt.choices.size(), 2U);
  EXPECT_EQ(attempt.choices[0].load, (model::GpuLoad{20, base::kGiB * 60}));
  EXPECT_LT(attempt.choices[0].availability, 1000U);
  EXPECT_EQ(attempt.choices[1].availability, 1000U);
}

TEST_F(GpusTest, ANewPolicyIsMeantForUnmanagedProcessesThatAreThereAlready) {
  see(execution::UnmanagedProcessesObserved{"n1", "n1-0", "pid 77 of bob"});
  model::Policy policy;
  policy.unmanaged_processes = model::UnmanagedProcessPolicy::kAlert;
  core_.apply_policy(policy, "test", kNoon);
  EXPECT_TRUE(at(0).taints.empty());
  EXPECT_EQ(at(0).unmanaged_processes, "pid 77 of bob");
}

}  // namespace
}  // namespace gpu_platform::controller
