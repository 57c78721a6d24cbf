#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "health/verdict.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using model::EvidenceKind;
using model::GpuAction;
using model::GpuState;
using model::JobState;
using testing::attempt;
using testing::kNoon;

// Two nodes of eight GPUs. Time passes by pass(); what follows from it has followed then.
class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    policy_.health_max_out_percent = 50;
    apply(policy_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 8)}, now_);
    core_.observe(execution::NodeObserved{testing::node_info("n2", 8)}, now_);
    settle();
  }

  void apply(const model::Policy& policy) {
    core_.apply_policy(policy, "test", now_);
    settle();
  }
  void settle() {
    core_.advance(now_);
    Batch batch = core_.take_batch();
    for (model::EventRecord& each : batch.events) events_.push_back(std::move(each));
    for (Effect& each : batch.effects) effects_.push_back(std::move(each));
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  // Wakes as often as the core asks for it.
  void pass(base::Duration time) {
    const base::Instant until = now_ + time;
    while (true) {
      const auto next = core_.next_wakeup();
      if (!next || *next > until) break;
      now_ = std::max(now_ + base::nanoseconds(1), *next);
      settle();
    }
    now_ = std::max(now_, until);
    settle();
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    settle();
  }
  void see(const std::string& uuid, EvidenceKind kind, std::uint32_t code = 0,
           bool is_over = false) {
    execution::EvidenceObserved seen{uuid.substr(0, 2), uuid, {}};
    seen.evidence.kind = kind;
    seen.evidence.code = code;
    seen.evidence.at = now_;
    seen.evidence.last = now_;
    seen.evidence.is_over = is_over;
    see(seen);
  }
  void xid(const std::string& uuid, std::uint32_t code) { see(uuid, EvidenceKind::kXid, code); }

  std::uint64_t submit(std::uint32_t gpus, const std::string& name = "job") {
    model::JobSpec spec = testing::spec(gpus);
    spec.name = name;
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply);
    settle();
    return reply->job.value;
  }
  std::uint64_t run(std::uint32_t gpus, const std::string& name = "job") {
    const std::uint64_t job = submit(gpus, name);
    started(job, 1);
    return job;
  }
  void started(std::uint64_t job, std::uint32_t number) {
    see(execution::Started{attempt(job, number), 5, now_});
  }
  void end(std::uint64_t job, std::uint32_t number, std::uint8_t code) {
    see(testing::ended(attempt(job, number), code, now_));
    see(execution::Cleaned{attempt(job, number)});
  }
  base::Result<model::CommandReply> order(const std::string& node, std::uint32_t index,
                                          GpuAction action, bool force = false,
                                          bool when_empty = false) {
    model::ChangeGpus command;
    command.which = {.node = node, .index = index};
    command.action = action;
    command.force = force;
    command.when_empty = when_empty;
    auto reply = core_.command({model::root_caller(), command}, now_, store::Headroom::kAmple);
    settle();
    return reply;
  }

  // Many PCIe replays in a day: it is suspected, and nothing else.
  void degrade(const std::string& uuid) {
    execution::EvidenceObserved seen{uuid.substr(0, 2), uuid, {}};
    seen.evidence.kind = EvidenceKind::kPcieReplays;
    seen.evidence.value = 100'000;
    seen.evidence.at = now_;
    seen.evidence.last = now_;
    see(seen);
    ASSERT_EQ(gpu(uuid).state, GpuState::kDegraded) << gpu(uuid).cause;
    pass(base::seconds(1));
  }
  static execution::ResetEnded checked(const std::string& uuid, const std::string& failure) {
    return {uuid.substr(0, 2), uuid, failure, "", true};
  }

  const model::Gpu& gpu(const std::string& uuid) const {
    const model::Node& node = *core_.state().nodes.find(uuid.substr(0, 2) == "n1" ? 1 : 2);
    return *std::ranges::find(node.gpus, uuid, [](const model::Gpu& g) { return g.info.uuid; });
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  std::string gpu_of(std::uint64_t id) const {
    return job(id).attempts.back().granted->front().gpus.front().uuid;
  }
  template <class Event>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        events_, [](const auto& each) { return std::holds_alternative<Event>(each.event); }));
  }
  template <class Order>
  std::vector<Order> orders() const {
    std::vector<Order> found;
    for (const Effect& effect : effects_) {
      if (const auto* each = std::get_if<Order>(&effect)) found.push_back(*each);
    }
    return found;
  }

  model::Policy policy_;
  base::Instant now_ = kNoon;
  Core core_;
  std::vector<model::EventRecord> events_;
  std::vector<Effect> effects_;
};

TEST_F(HealthTest, ALostGpuIsOutAndItsJobRunsElsewhereForFree) {
  const std::uint64_t id = run(1);
  const std::string lost = gpu_of(id);
  pass(base::seconds(5));
  xid(lost, 79);
  EXPECT_EQ(gpu(lost).state, GpuState::kOffline);
  EXPECT_EQ(gpu(lost).changed_by, "health");
  EXPECT_NE(gpu(lost).cause.find("XID 79"), std::string::npos) << gpu(lost).cause;
  ASSERT_EQ(orders<execution::StopOrder>().size(), 1U);
  EXPECT_TRUE(orders<execution::StopOrder>()[0].without_grace);
  pass(base::milliseconds(100));
  end(id, 1, 137);
  ASSERT_EQ(job(id).attempts.size(), 2U);
  EXPECT_NE(gpu_of(id), lost);
  EXPECT_EQ(job(id).failures, 0U);
  EXPECT_EQ(job(id).losses, 0U);
  EXPECT_EQ(job(id).hardware_failures, 1U);
  EXPECT_EQ(job(id).avoid_gpus, std::vector<std::string>{lost});
  const model::Attempt& first = job(id).attempts[0];
  EXPECT_EQ(first.exit.code, 137);
  EXPECT_EQ(first.reason, model::EndReason::kGpuFault);
  EXPECT_NE(first.detail.find("no retry is used"), std::string::npos) << first.detail;
}

TEST_F(HealthTest, AJobThatFailsWithItsGpuIsInnocent) {
  const std::uint64_t id = run(1);
  const std::string sick = gpu_of(id);
  pass(base::seconds(5));
  xid(sick, 48);
  EXPECT_EQ(gpu(sick).state, GpuState::kDraining);
  EXPECT_EQ(job(id).state, JobState::kRunning);
  pass(base::milliseconds(100));
  end(id, 1, 1);
  ASSERT_EQ(job(id).attempts.size(), 2U);
  EXPECT_EQ(job(id).failures, 0U);
  EXPECT_EQ(job(id).attempts[0].exit.code, 1);
  EXPECT_NE(gpu_of(id), sick);
}

TEST_F(HealthTest, AJobThatFailsOnFitGpusHasFailed) {
  const std::uint64_t id = run(1);
  pass(base::seconds(5));
  see(testing::ended(attempt(id), 1, now_));
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).attempts[0].reason, model::EndReason::kNone);
}

TEST_F(HealthTest, AJobUnderWhichGpusFailEverywhereFailsAndSaysSo) {
  const std::uint64_t id = run(1);
  for (std::uint32_t number = 1; number <= model::kMaxHardwareFailures; ++number) {
    ASSERT_EQ(job(id).attempts.size(), number);
    if (number > 1) started(id, number);
    pass(base::seconds(5));
    xid(gpu_of(id), 79);
    see(testing::ended(attempt(id, number), 137, now_));
    if (number < model::kMaxHardwareFailures) see(execution::Cleaned{attempt(id, number)});
  }
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).reason, model::EndReason::kGpuFault);
  EXPECT_NE(job(id).detail.find("three times in two hours"), std::string::npos) << job(id).detail;
}

TEST_F(HealthTest, FailuresFarApartHaveNothingToDoWithEachOther) {
  const std::uint64_t id = run(1);
  for (std::uint32_t number = 1; number <= model::kMaxHardwareFailures + 1; ++number) {
    ASSERT_EQ(job(id).attempts.size(), number);
    if (number > 1) started(id, number);
    pass(base::minutes(70));
    xid(gpu_of(id), 48);
    see(testing::ended(attempt(id, number), 137, now_));
    see(execution::Cleaned{attempt(id, number)});
    EXPECT_FALSE(model::is_ended(job(id).state)) << number << ": " << job(id).detail;
  }
}

TEST_F(HealthTest, AStormOfSymptomsTakesNothingOutAndFillsNoJournal) {
  const std::uint64_t id = run(1);
  const std::string uuid = gpu_of(id);
  for (int i = 0; i < 3600; ++i) {
    xid(uuid, 45);
    pass(base::seconds(1));
  }
  EXPECT_EQ(gpu(uuid).state, GpuState::kInUse);
  EXPECT_LE(count<model::EvidenceRecorded>(), 44U);
  pass(base::hours(1));
  std::uint64_t seen = 0;
  for (const model::Evidence& piece : *gpu(uuid).evidence) seen += piece.count;
  EXPECT_EQ(seen, 3600U);
}

TEST_F(HealthTest, InAStormTheDecisivePieceIsRecordedAtOnce) {
  for (int i = 0; i < 100; ++i) xid("n1-0", 45);
  xid("n1-0", 79);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kOffline);
}

TEST_F(HealthTest, TwoJobsWithTheSameExceptionDegradeTheGpu) {
  for (const char* name : {"train", "infer"}) {
    const std::uint64_t id = run(1, name);
    ASSERT_EQ(gpu_of(id), "n1-0");
    pass(base::minutes(1));
    xid("n1-0", 31);
    pass(base::milliseconds(100));
    see(testing::ended(attempt(id), 1, now_));
    see(execution::Cleaned{attempt(id)});
    pass(base::minutes(10));
  }
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
}

TEST_F(HealthTest, OneExceptionIsTheProgramsOwn) {
  xid("n1-0", 31);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  ASSERT_EQ(gpu("n1-0").evidence->size(), 1U);
}

TEST_F(HealthTest, ARuleOfTheSiteHoldsAtOnceAndForWhatWasSeenBefore) {
  xid("n1-0", 31);
  ASSERT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  policy_.health_rules = {{"xid-31", "", "DEGRADE", ""}};
  apply(policy_);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
  xid("n1-1", 31);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kDegraded) << gpu("n1-1").cause;
  policy_.health_rules = {{"xid-31", "", "", "off"}};
  apply(policy_);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kAvailable) << gpu("n1-1").cause;
}

TEST_F(HealthTest, WhatWasBeforeAnOperatorBroughtItOnlineDoesNotCount) {
  xid("n1-0", 48);
  ASSERT_EQ(gpu("n1-0").state, GpuState::kDraining);
  pass(base::seconds(10));
  const auto reply = order("n1", 0, GpuAction::kBringOnline);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(reply->changed);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  pass(base::hours(24));
  xid("n1-0", 13);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
}

TEST_F(HealthTest, AGpuThatIsGoneCannotBeBroughtOnlineAndComesBackByARestartOfItsNode) {
  see("n1-0", EvidenceKind::kLost);
  ASSERT_EQ(gpu("n1-0").state, GpuState::kOffline);
  pass(base::seconds(10));
  EXPECT_FALSE(order("n1", 0, GpuAction::kBringOnline));
  see(execution::NodeObserved{testing::node_info("n1", 8, "boot-2")});
  pass(base::seconds(1));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
}

TEST_F(HealthTest, HeatKeepsNewWorkAwayWhileItLasts) {
  const std::uint64_t id = run(1);
  const std::string hot = gpu_of(id);
  see(hot, EvidenceKind::kHeat);
  EXPECT_EQ(gpu(hot).state, GpuState::kInUse);
  EXPECT_TRUE(model::is_kept_from_work(gpu(hot)));
  pass(base::minutes(2));
  see(hot, EvidenceKind::kHeat, 0, true);
  EXPECT_FALSE(model::is_kept_from_work(gpu(hot)));
}

TEST_F(HealthTest, AResetIsOrderedWhenNothingHoldsTheGpuAndBringsItBack) {
  const std::uint64_t id = run(1);
  const std::string sick = gpu_of(id);
  const std::uint32_t index = static_cast<std::uint32_t>(sick.back() - '0');
  xid(sick, 48);
  pass(base::seconds(1));
  const auto refused = order(sick.substr(0, 2), index, GpuAction::kReset);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--when-empty"), std::string::npos);
  ASSERT_TRUE(order(sick.substr(0, 2), index, GpuAction::kReset, false, true));
  EXPECT_EQ(gpu(sick).state, GpuState::kDraining);
  EXPECT_TRUE(orders<execution::ResetOrder>().empty());
  pass(base::seconds(1));
  end(id, 1, 0);
  EXPECT_EQ(gpu(sick).state, GpuState::kResetting);
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_EQ(orders<execution::ResetOrder>()[0].gpu_uuids, std::vector<std::string>{sick});
  EXPECT_FALSE(order(sick.substr(0, 2), index, GpuAction::kBringOnline));
  pass(base::seconds(3));
  see(execution::ResetEnded{sick.substr(0, 2), sick, ""});
  EXPECT_EQ(gpu(sick).state, GpuState::kAvailable) << gpu(sick).cause;
}

TEST_F(HealthTest, AResetThatFailsLeavesTheGpuOut) {
  xid("n1-0", 48);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kReset));
  ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting);
  // A second answer, and one for a GPU that is not being reset, say nothing.
  pass(base::seconds(3));
  see(execution::ResetEnded{"n1", "n1-1", ""});
  see(execution::ResetEnded{"n1", "n1-0", "it did not come back"});
  see(execution::ResetEnded{"n1", "n1-0", ""});
  EXPECT_EQ(gpu("n1-0").state, GpuState::kOffline);
  EXPECT_NE(gpu("n1-0").cause.find("it did not come back"), std::string::npos) << gpu("n1-0").cause;
  EXPECT_TRUE(gpu("n1-1").evidence->empty());
}

TEST_F(HealthTest, ThePlatformResetsByItselfWhereThePolicySaysSo) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  for (int i = 0; i < 5; ++i) {
    pass(base::hours(1));
    xid("n1-0", 48);
    ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << i << gpu("n1-0").cause;
    pass(base::seconds(3));
    see(execution::ResetEnded{"n1", "n1-0", ""});
  }
  // One that returns sick again and again is a person's.
  pass(base::hours(1));
  xid("n1-0", 48);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 5U);
}

TEST_F(HealthTest, NobodyResetsWhereThePolicySaysSo) {
  policy_.health_reset = model::HealthReset::kNever;
  apply(policy_);
  const auto refused = order("n1", 0, GpuAction::kReset);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("health.reset"), std::string::npos);
}

TEST_F(HealthTest, ADegradedGpuThatPassesACheckIsBack) {
  degrade("n1-0");
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kResetting);
  EXPECT_NE(gpu("n1-0").cause.find("is being checked"), std::string::npos) << gpu("n1-0").cause;
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_TRUE(orders<execution::ResetOrder>()[0].without_reset);
  EXPECT_FALSE(orders<execution::ResetOrder>()[0].is_deep);
  EXPECT_FALSE(order("n1", 0, GpuAction::kBringOnline));
  EXPECT_FALSE(order("n1", 0, GpuAction::kReset)) << "the check ends first";
  // The order after a restart is of the same kind.
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  const std::vector<Effect> pending = pending_effects(*again);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_TRUE(std::get<execution::ResetOrder>(pending[0]).without_reset);
  pass(base::seconds(3));
  see(execution::ResetEnded{"n1", "n1-0", "a late answer to a reset"});
  EXPECT_EQ(gpu("n1-0").state, GpuState::kResetting);
  see(checked("n1-0", ""));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
  EXPECT_EQ(gpu("n1-0").evidence->back().kind, EvidenceKind::kCheck);
  EXPECT_TRUE(std::ranges::none_of(*gpu("n1-0").evidence, [](const model::Evidence& piece) {
    return piece.kind == EvidenceKind::kReset;
  }));
}

TEST_F(HealthTest, AGpuThatFailsItsCheckStaysOut) {
  degrade("n1-0");
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  pass(base::seconds(3));
  see(checked("n1-0", "its memory"));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
  EXPECT_NE(gpu("n1-0").cause.find("its memory"), std::string::npos) << gpu("n1-0").cause;
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  pass(base::seconds(3));
  see(checked("n1-0", ""));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
}

TEST_F(HealthTest, ACheckDoesNotStandForAReset) {
  xid("n1-0", 48);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  pass(base::seconds(3));
  see(checked("n1-0", ""));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
}

TEST_F(HealthTest, ACheckIsRefusedWhileAJobHoldsTheGpu) {
  const std::uint64_t id = run(1);
  const std::string held = gpu_of(id);
  const std::uint32_t index = static_cast<std::uint32_t>(held.back() - '0');
  const auto refused = order(held.substr(0, 2), index, GpuAction::kCheck);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("a check would end job"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(order(held.substr(0, 2), index, GpuAction::kCheck, false, true));
  EXPECT_EQ(gpu(held).state, GpuState::kDraining);
  // A reset takes the place of a check that waits.
  ASSERT_TRUE(order(held.substr(0, 2), index, GpuAction::kReset, false, true));
  pass(base::seconds(1));
  end(id, 1, 0);
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_FALSE(orders<execution::ResetOrder>()[0].without_reset);
}

TEST_F(HealthTest, ThePlatformChecksADegradedGpuOnceByItself) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  see("n1-0", EvidenceKind::kPcieWidth);
  pass(base::minutes(6));
  ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_TRUE(orders<execution::ResetOrder>()[0].without_reset);
  EXPECT_TRUE(orders<execution::ResetOrder>()[0].is_deep);
  // It still has too few lanes, which a check does not cure.
  see(checked("n1-0", ""));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
  pass(base::hours(1));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 1U);
}

TEST_F(HealthTest, A100sThatAreLinkedAreResetTogether) {
  model::NodeInfo info = testing::node_info("n3", 2);
  for (model::GpuInfo& each : info.gpus) each.type = "A100-80GB";
  info.topology.links = {{model::LinkKind::kNvLink, 12, 3}};
  see(execution::NodeObserved{info});
  ASSERT_TRUE(order("n3", 0, GpuAction::kReset));
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_EQ(orders<execution::ResetOrder>()[0].gpu_uuids,
            (std::vector<std::string>{"n3-0", "n3-1"}));
}

TEST_F(HealthTest, AResetIsOrderedAgainAfterARestart) {
  ASSERT_TRUE(order("n1", 0, GpuAction::kReset));
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  const std::vector<Effect> pending = pending_effects(*again);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(std::get<execution::ResetOrder>(pending[0]).gpu_uuids,
            std::vector<std::string>{"n1-0"});
}

TEST_F(HealthTest, TheBreakerHoldsTheRestBackUntilOneIsBack) {
  policy_.health_max_out_percent = 10;
  apply(policy_);
  xid("n1-0", 48);
  xid("n1-1", 48);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kAvailable);
  EXPECT_NE(gpu("n1-1").withheld_verdict.find("XID 48"), std::string::npos);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kBringOnline));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kDraining);
  EXPECT_EQ(gpu("n1-1").withheld_verdict, "");
}

TEST_F(HealthTest, TheBreakerHoldsNoDeadGpuAndNoFailedCheckBack) {
  policy_.health_max_out_percent = 10;
  apply(policy_);
  const auto level = [&](model::EvidenceKind kind, const std::string& uuid, std::uint32_t code) {
    execution::EvidenceObserved seen{"n1", uuid, {}};
    seen.evidence.kind = kind;
    seen.evidence.code = code;
    seen.evidence.source = model::EvidenceSource::kPlatform;
    seen.evidence.at = seen.evidence.last = now_;
    see(seen);
  };
  xid("n1-0", 48);
  level(model::EvidenceKind::kLost, "n1-1", 0);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kOffline) << gpu("n1-1").withheld_verdict;
  level(model::EvidenceKind::kReset, "n1-2", 1);
  EXPECT_EQ(gpu("n1-2").state, GpuState::kOffline) << gpu("n1-2").withheld_verdict;
  xid("n1-3", 48);
  EXPECT_EQ(gpu("n1-3").state, GpuState::kAvailable) << "the first still counts";
}

TEST_F(HealthTest, InShadowNothingIsDone) {
  policy_.health_mode = model::HealthMode::kShadow;
  apply(policy_);
  xid("n1-0", 79);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  EXPECT_NE(gpu("n1-0").withheld_verdict.find("shadow"), std::string::npos);
  policy_.health_mode = model::HealthMode::kExecute;
  apply(policy_);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kOffline);
  policy_.sick_gpus = model::SickGpuPolicy::kOff;
  apply(policy_);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  const std::size_t before = count<model::EvidenceRecorded>();
  xid("n1-0", 48);
  EXPECT_EQ(count<model::EvidenceRecorded>(), before);
}

TEST_F(HealthTest, WhatAFormerVersionSaidStaysUntilAnOperatorLiftsIt) {
  see(execution::TaintObserved{"n1", "n1-0", model::TaintSource::kHealth,
                               model::TaintEffect::kNoNewWork, "XID 79"});
  pass(base::seconds(1));
  xid("n1-0", 13);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kBringOnline));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
}

TEST_F(HealthTest, ADaemonThatStartsAgainJudgesTheSame) {
  const std::uint64_t id = run(1, "train");
  xid(gpu_of(id), 31);
  see("n1-5", EvidenceKind::kHeat);
  xid("n2-3", 48);
  auto decoded = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(state_hash(*decoded), state_hash(core_.state()));
  Core again(*std::move(decoded));
  pass(base::seconds(10));
  again.advance(now_);
  EXPECT_TRUE(again.take_batch().events.empty());
  execution::EvidenceObserved over{"n1", "n1-5", {}};
  over.evidence.kind = EvidenceKind::kHeat;
  over.evidence.at = now_;
  over.evidence.last = now_;
  over.evidence.is_over = true;
  for (Core* core : {&core_, &again}) {
    core->observe(over, now_);
    core->advance(now_);
  }
  EXPECT_EQ(state_hash(again.state()), state_hash(core_.state()));
}

}  // namespace
}  // namespace gpu_platform::controller
