#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/health_fixture.h"
#include "health/verdict.h"
#include "model/job_spec.h"

namespace gpu_platform::controller::testing {
namespace {

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

// Sixteen GPUs of a type: ten percent are one, and at least two may be out.
TEST_F(HealthTest, TheBreakerHoldsTheRestBackUntilOneIsBack) {
  policy_.health_max_out_percent = 10;
  apply(policy_);
  for (const char* uuid : {"n1-0", "n1-1", "n1-2"}) xid(uuid, 48);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kDraining);
  EXPECT_EQ(gpu("n1-2").state, GpuState::kAvailable);
  EXPECT_NE(gpu("n1-2").withheld_verdict.find("XID 48"), std::string::npos);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kBringOnline));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable);
  EXPECT_EQ(gpu("n1-2").state, GpuState::kDraining);
  EXPECT_EQ(gpu("n1-2").withheld_verdict, "");
}

TEST_F(HealthTest, DegradedGpusHoldOnlyDegradedOnesBack) {
  policy_.health_max_out_percent = 10;
  apply(policy_);
  degrade("n1-0");
  degrade("n1-1");
  suspect("n1-2");
  EXPECT_EQ(gpu("n1-2").state, GpuState::kAvailable);
  EXPECT_NE(gpu("n1-2").withheld_verdict, "");
  xid("n1-3", 48);
  EXPECT_EQ(gpu("n1-3").state, GpuState::kDraining) << gpu("n1-3").withheld_verdict;
  // One that gets worse asks again.
  xid("n1-0", 48);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").withheld_verdict;
  xid("n1-1", 48);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kDegraded);
  EXPECT_NE(gpu("n1-1").withheld_verdict.find("XID 48"), std::string::npos);
  // And two that are worse leave no room for a further degraded one.
  suspect("n2-0");
  EXPECT_EQ(gpu("n2-0").state, GpuState::kAvailable);
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
  xid("n1-4", 48);
  level(model::EvidenceKind::kLost, "n1-1", 0);
  EXPECT_EQ(gpu("n1-1").state, GpuState::kOffline) << gpu("n1-1").withheld_verdict;
  level(model::EvidenceKind::kReset, "n1-2", 1);
  EXPECT_EQ(gpu("n1-2").state, GpuState::kOffline) << gpu("n1-2").withheld_verdict;
  xid("n1-3", 48);
  EXPECT_EQ(gpu("n1-3").state, GpuState::kAvailable) << "the first two still count";
}

TEST_F(HealthTest, AnXidSoonAfterAGpuWasBroughtOnlineIsNews) {
  xid("n1-0", 48);
  ASSERT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
  pass(base::seconds(10));
  ASSERT_TRUE(order("n1", 0, GpuAction::kBringOnline));
  ASSERT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
  pass(base::seconds(10));
  xid("n1-0", 48);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
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
}  // namespace gpu_platform::controller::testing
