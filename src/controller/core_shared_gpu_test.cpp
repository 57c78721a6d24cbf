// Several jobs on one GPU: what happens to the GPU, and what one of them does, is judged for each
// of them on its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::AttemptState;
using model::EndReason;
using model::JobState;
using testing::attempt;
using testing::kNoon;

// A node of two GPUs. Two jobs run on the first, which has a half for each.
class SharedGpuTest : public ::testing::Test {
 protected:
  SharedGpuTest() {
    model::Policy policy;
    policy.health_max_out_percent = 50;
    policy.retry_backoff = {};
    policy.sharing.is_on = true;
    core_.apply_policy(policy, "test", now_);
    model::NodeInfo info = testing::node_info("n1", 2);
    info.share_modes = {model::ShareMode::kTimeSlice};
    info.watches_gpu_memory = true;
    core_.observe(execution::NodeObserved{info}, now_);
    settle();
    first_ = run("first");
    second_ = run("second");
  }

  std::uint64_t run(const std::string& name) {
    model::JobSpec spec = testing::spec(1);
    spec.name = name;
    spec.request.share_per_gpu = base::GpuShare(3500);
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    settle();
    const std::uint64_t id = reply ? reply->job.value : 0;
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  void settle() {
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    settle();
  }
  void xid(std::uint32_t code, std::uint64_t of_job = 0) {
    execution::EvidenceObserved seen{"n1", "n1-0", {}};
    seen.evidence.kind = model::EvidenceKind::kXid;
    seen.evidence.code = code;
    seen.evidence.at = seen.evidence.last = now_;
    if (of_job != 0) seen.evidence.job = model::JobId(of_job);
    see(seen);
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  const model::Attempt& first_attempt(std::uint64_t id) const { return job(id).attempts.front(); }
  const model::Gpu& gpu() const { return core_.state().nodes.find(1)->gpus[0]; }

  base::Instant now_ = kNoon;
  Core core_;
  std::uint64_t first_ = 0;
  std::uint64_t second_ = 0;
};

TEST_F(SharedGpuTest, AGpuThatIsLostIsLostToEachOfThem) {
  ASSERT_EQ(gpu().holders.size(), 2U);
  xid(79);
  for (const std::uint64_t id : {first_, second_}) {
    EXPECT_EQ(first_attempt(id).state, AttemptState::kStopping) << id;
    EXPECT_EQ(first_attempt(id).stop_reason, EndReason::kGpuFault) << id;
  }
  for (const std::uint64_t id : {first_, second_}) {
    see(testing::ended(attempt(id), 1, now_));
    EXPECT_FALSE(model::is_ended(job(id).state)) << id;
    EXPECT_EQ(job(id).failures, 0U) << id;
    EXPECT_EQ(job(id).losses, 0U) << id;
    EXPECT_EQ(std::ranges::count(job(id).avoid_gpus, "n1-0"), 1) << id;
  }
}

TEST_F(SharedGpuTest, AFailureOfOneIsItsOwn) {
  ASSERT_EQ(gpu().holders.size(), 2U);
  see(testing::ended(attempt(first_), 1, now_));
  EXPECT_EQ(job(first_).state, JobState::kFailed);
  EXPECT_EQ(first_attempt(second_).state, AttemptState::kRunning);
  EXPECT_TRUE(gpu().taints.empty());
  see(execution::Cleaned{attempt(first_)});
  ASSERT_EQ(gpu().holders.size(), 1U);
  EXPECT_EQ(gpu().holders[0].attempt, attempt(second_));
}

// An error of a program names no neighbour.
TEST_F(SharedGpuTest, EvidenceThatNamesNoJobIsLaidToNone) {
  ASSERT_EQ(gpu().holders.size(), 2U);
  xid(31);
  ASSERT_EQ(gpu().evidence->size(), 1U);
  EXPECT_FALSE(gpu().evidence->front().job.valid());
  xid(13, second_);
  ASSERT_EQ(gpu().evidence->size(), 2U);
  EXPECT_EQ(gpu().evidence->back().job, model::JobId(second_));
  EXPECT_EQ(gpu().evidence->back().program, "second");
}

TEST_F(SharedGpuTest, OneThatIsOverItsMemoryIsStoppedAlone) {
  see(execution::GpuMemoryExceeded{attempt(first_), "n1", "n1-0", base::kGiB * 50,
                                   base::kGiB * 40});
  EXPECT_EQ(first_attempt(first_).stop_reason, EndReason::kGpuMemory);
  EXPECT_EQ(first_attempt(second_).state, AttemptState::kRunning);
}

}  // namespace
}  // namespace gpu_platform::controller
