#include "model/dependency.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

constexpr TargetOutcome kOpen{1, {}, JobState::kCompleted, 0};
constexpr TargetOutcome kDone{};
const TargetOutcome kFailedOne{0, JobId(12), JobState::kFailed, 0};
const TargetOutcome kFailedAndOpen{2, JobId(12), JobState::kFailed, 0};

TEST(Dependency, EachKindIsJudgedByWhatBecameOfItsTarget) {
  using enum DependencyKind;
  using enum DependencyVerdict;
  EXPECT_EQ(judge(kAfterOk, kOpen), kWaits);
  EXPECT_EQ(judge(kAfterOk, kDone), kMet);
  EXPECT_EQ(judge(kAfterOk, kFailedOne), kNever);
  EXPECT_EQ(judge(kAfterOk, kFailedAndOpen), kNever);
  EXPECT_EQ(judge(kAfterAny, kOpen), kWaits);
  EXPECT_EQ(judge(kAfterAny, kFailedAndOpen), kWaits);
  EXPECT_EQ(judge(kAfterAny, kDone), kMet);
  EXPECT_EQ(judge(kAfterAny, kFailedOne), kMet);
  EXPECT_EQ(judge(kAfterNotOk, kOpen), kWaits);
  EXPECT_EQ(judge(kAfterNotOk, kFailedAndOpen), kWaits);
  EXPECT_EQ(judge(kAfterNotOk, kFailedOne), kMet);
  EXPECT_EQ(judge(kAfterNotOk, kDone), kNever);
}

TEST(Dependency, AfterIsMetByAStartOrAnEnd) {
  using enum DependencyVerdict;
  const TargetOutcome unstarted{2, {}, JobState::kCompleted, 1};
  EXPECT_EQ(judge(DependencyKind::kAfter, unstarted), kWaits);
  EXPECT_EQ(judge(DependencyKind::kAfter, kOpen), kMet);
  EXPECT_EQ(judge(DependencyKind::kAfter, kFailedOne), kMet);
  EXPECT_EQ(judge(DependencyKind::kAfterCorr, kOpen), kWaits);
  EXPECT_EQ(judge(DependencyKind::kAfterCorr, kFailedAndOpen), kNever);
  EXPECT_EQ(to_string({DependencyKind::kSingleton, {}}), "singleton");
}

TEST(Dependency, ItsFailureNamesTheJob) {
  EXPECT_EQ(describe_failure({DependencyKind::kAfterOk, {JobId(12), false}}, kFailedOne),
            "afterok:12 can never be met: job 12 ended FAILED");
  EXPECT_EQ(describe_failure({DependencyKind::kAfterNotOk, {JobId(40), true}}, kDone),
            "afternotok:40 can never be met: all of array 40 ended COMPLETED");
}

}  // namespace
}  // namespace gpu_platform::model
