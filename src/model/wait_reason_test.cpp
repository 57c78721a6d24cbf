#include "model/wait_reason.h"

#include <set>

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

std::string no_capacity(std::vector<WaitCount> counts) {
  return describe(WaitReason{.code = WaitCode::kNoCapacity, .counts = std::move(counts)});
}

TEST(DescribeWaitReason, NamesTheExactAmountForOneNode) {
  EXPECT_EQ(no_capacity({{Shortage::kGpus, 1, 4}}), "1 node is 4 GPUs short");
  EXPECT_EQ(no_capacity({{Shortage::kGpus, 1, 1}}), "1 node is 1 GPU short");
  EXPECT_EQ(no_capacity({{Shortage::kCpus, 1, 1}}), "1 node is 1 CPU short");
  EXPECT_EQ(no_capacity({{Shortage::kMemory, 1, 512}}), "1 node is 512 MiB of memory short");
  EXPECT_EQ(no_capacity({{Shortage::kMemory, 1, 2048}}), "1 node is 2 GiB of memory short");
}

TEST(DescribeWaitReason, SaysAtLeastWhereSeveralNodesMayLackMore) {
  EXPECT_EQ(no_capacity({{Shortage::kGpus, 3, 2}}), "all 3 nodes are at least 2 GPUs short");
}

TEST(DescribeWaitReason, SaysHowMuchOfAGpuIsMissing) {
  EXPECT_EQ(no_capacity({{Shortage::kGpuShare, 1, 250}}), "1 node is 0.25 of a GPU short");
  EXPECT_EQ(no_capacity({{Shortage::kGpuPartMemory, 3, 2048}}),
            "all 3 nodes are at least 2 GiB of a GPU's memory short");
  EXPECT_EQ(no_capacity({{Shortage::kGpus, 1, 1}, {Shortage::kSharedByOthers, 1, 0}}),
            "1 of 2 nodes is 1 GPU short, 1 has room only on GPUs that other users share, or jobs "
            "in another mode");
  EXPECT_EQ(no_capacity({{Shortage::kKeptFromRoot, 1, 0}}),
            "1 node has GPUs to share, but not with jobs of root, which can undo the walls of "
            "their parts (sharing.weakest_rung: advisory allows it)");
}

TEST(DescribeWaitReason, CountsEachConstraintOutOfAllNodes) {
  EXPECT_EQ(no_capacity({{Shortage::kNodeState, 1, 0}, {Shortage::kGpus, 2, 4}}),
            "1 of 3 nodes is draining or down, 2 are at least 4 GPUs short");
  EXPECT_EQ(no_capacity({{Shortage::kNodeState, 2, 0}, {Shortage::kGpus, 1, 4}}),
            "2 of 3 nodes are draining or down, 1 is 4 GPUs short");
  EXPECT_EQ(
      no_capacity({{Shortage::kGpuType, 1, 0}, {Shortage::kGpuMemory, 2, 0}}),
      "2 of 3 nodes have only GPUs with less memory than requested, 1 has no GPU of a requested "
      "type");
}

TEST(DescribeWaitReason, SaysWhoIsAhead) {
  WaitReason reason{.code = WaitCode::kPriority, .jobs_ahead = 3, .blocked_by = JobId(12)};
  EXPECT_EQ(describe(reason), "3 jobs ahead, the first is 12");
  reason.jobs_ahead = 1;
  EXPECT_EQ(describe(reason), "1 job ahead, which is 12");
  reason.code = WaitCode::kNoCapacity;
  reason.counts = {{Shortage::kGpus, 1, 8}};
  EXPECT_EQ(describe(reason), "1 node is 8 GPUs short; 1 job ahead, which is 12");
}

TEST(DescribeWaitReason, SaysForWhomFreeGpusAreKeptAndUntilWhen) {
  WaitReason reason{.code = WaitCode::kPriority, .jobs_ahead = 1, .blocked_by = JobId(12)};
  reason.kept_for = JobId(12);
  EXPECT_EQ(
      describe(reason),
      "enough is free, but it is kept for job 12, which starts there at any moment; 1 job ahead, "
      "which is 12");
  reason.kept_until = base::Instant(1'700'000'000'000'000'000);
  EXPECT_EQ(
      describe(reason),
      "enough is free, but it is kept for job 12, which starts there by 2023-11-14T22:13:20Z; 1 "
      "job ahead, which is 12");
}

TEST(DescribeWaitReason, SaysOfflineAndNotShort) {
  EXPECT_EQ(no_capacity({{Shortage::kGpusOffline, 1, 1}, {Shortage::kGpus, 1, 4}}),
            "1 of 2 nodes needs 1 GPU that is offline, draining, degraded or used by unmanaged "
            "processes, 1 "
            "is 4 GPUs short");
  EXPECT_EQ(
      no_capacity({{Shortage::kGpusOffline, 1, 3}}),
      "1 node needs 3 GPUs that are offline, draining, degraded or used by unmanaged processes");
  EXPECT_EQ(no_capacity({{Shortage::kGpusOffline, 2, 1}}),
            "all 2 nodes need at least 1 GPU that is offline, draining, degraded or used by "
            "unmanaged processes");
}

TEST(DescribeWaitReason, IsNeverEmpty) {
  for (const WaitCode code :
       {WaitCode::kNotEvaluated, WaitCode::kNoCapacity, WaitCode::kPriority, WaitCode::kBackoff,
        WaitCode::kHeldByUser, WaitCode::kHeldByAdministrator, WaitCode::kNoNode}) {
    EXPECT_FALSE(describe(WaitReason{.code = code}).empty()) << to_string(code);
  }
}

TEST(DescribeWaitReason, NamesTheOptionThatWouldLetAJobCrossSockets) {
  EXPECT_EQ(
      no_capacity({{Shortage::kSockets, 2, 1}, {Shortage::kGpus, 1, 4}}),
      "2 of 3 nodes have the GPUs free only on different sockets (--allow-cross-numa), 1 is 4 GPUs "
      "short");
}

TEST(WaitReasonNames, AreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kShortages; ++i) {
    names.insert(to_string(static_cast<Shortage>(i)));
  }
  EXPECT_EQ(names.size(), kShortages);
}

TEST(WaitReason, ATimeIsToldInTheCalendarsWords) {
  WaitReason reason;
  reason.code = WaitCode::kBeginTime;
  const std::pair<std::int64_t, const char*> days[] = {{1, "1970-01-01T00:00:01Z"},
                                                       {951'782'400, "2000-02-29T00:00:00Z"},
                                                       {1'709'251'199, "2024-02-29T23:59:59Z"},
                                                       {1'798'761'599, "2026-12-31T23:59:59Z"},
                                                       {4'107'542'400, "2100-03-01T00:00:00Z"}};
  for (const auto& [seconds, text] : days) {
    reason.not_before = base::Instant() + base::seconds(seconds);
    EXPECT_EQ(describe(reason), std::string("starts no earlier than ") + text);
  }
}

TEST(WaitReason, ADependencySaysWhatItWaitsForAndHowThatIs) {
  WaitReason reason;
  reason.code = WaitCode::kDependency;
  reason.waits_for = {DependencyKind::kAfterNotOk, {JobId(12), false}};
  reason.target_state = JobState::kRunning;
  EXPECT_EQ(describe(reason),
            "waits for job 12 to end in a state other than COMPLETED; it is RUNNING");
  reason.waits_for = {DependencyKind::kAfterAny, {JobId(40), true}};
  reason.target.open = 1;
  EXPECT_EQ(describe(reason), "waits for array 40 to end; 1 job of it has not ended yet");
}

}  // namespace
}  // namespace gpu_platform::model
