// Parts of GPUs: what follows when a job uses more memory than its part has.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/judge/gpu_memory.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::AttemptState;
using model::EndReason;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class GpuMemoryTest : public ::testing::Test {
 protected:
  GpuMemoryTest() {
    model::Policy policy;
    policy.retry_backoff = {};
    core_.apply_policy(policy, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, now_);
  }

  std::uint64_t running(std::uint32_t retries = 0) {
    model::JobSpec spec = testing::spec(1);
    spec.retries = retries;
    const auto reply = core_.command(testing::submission(std::move(spec)), now_, kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    core_.advance(now_);
    const std::uint64_t id = reply ? reply->job.value : 0;
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  // Its attempt of that number ends, and the next one runs.
  void fail_by_neighbour(std::uint64_t id, std::uint32_t number) {
    execution::Ended ended = testing::ended(attempt(id, number), 1, now_);
    ended.neighbour_fault = "a fault of job 9 on the same GPU";
    see(ended);
    see(execution::Cleaned{attempt(id, number)});
    see(execution::Started{attempt(id, number + 1), 5, now_});
  }
  static execution::GpuMemoryExceeded excess(std::uint64_t job, const std::string& gpu = "n1-0") {
    return {attempt(job), "n1", gpu, base::kGiB * 23, base::kGiB * 20};
  }
  // The state as if the job had a part of its GPU.
  State with_part() const {
    State state = *decode_state(encode_state(core_.state()));
    model::Node node = *state.nodes.find(1);
    for (model::GpuHolder& holder : node.gpus[0].holders) holder.share = base::GpuShare(3500);
    state.nodes.put(1, node);
    return state;
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }

  static constexpr store::Headroom kAmple = store::Headroom::kAmple;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(GpuMemoryTest, AJobThatIsOverItsPartIsStopped) {
  const std::uint64_t id = running();
  const auto event = judge_gpu_memory(with_part(), excess(id));
  ASSERT_TRUE(event);
  const auto* stop = std::get_if<model::StopRequested>(&*event);
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->attempt, attempt(id));
  EXPECT_EQ(stop->reason, EndReason::kGpuMemory);
  EXPECT_FALSE(stop->without_grace);
}

TEST_F(GpuMemoryTest, OnlyAnAttemptThatRunsOnAPartOfThatGpuIsStopped) {
  const std::uint64_t id = running();
  see(excess(id));
  EXPECT_EQ(job(id).attempts.back().state, AttemptState::kRunning) << "it has the whole GPU";
  EXPECT_FALSE(judge_gpu_memory(with_part(), excess(id, "n1-1"))) << "another GPU";
  EXPECT_FALSE(judge_gpu_memory(with_part(), excess(id, "gone")));
  EXPECT_FALSE(judge_gpu_memory(with_part(), excess(id + 1)));
  execution::GpuMemoryExceeded before = excess(id);
  before.attempt.attempt = 2;
  EXPECT_FALSE(judge_gpu_memory(with_part(), before));
  EXPECT_TRUE(core_.command(testing::stop(id), now_, kAmple));
  EXPECT_FALSE(judge_gpu_memory(with_part(), excess(id))) << "it is being stopped";
}

TEST_F(GpuMemoryTest, ItHasFailedHoweverItObeysAndUsesItsRetries) {
  const std::uint64_t id = running(1);
  execution::Ended ended = testing::ended(attempt(id), 0, now_);
  ended.reason = EndReason::kGpuMemory;
  ended.detail = "it used 23 GiB of the 20 GiB of its part";
  see(ended);
  EXPECT_FALSE(model::is_ended(job(id).state)) << "it had one";
  EXPECT_EQ(job(id).failures, 1U);
  EXPECT_EQ(job(id).attempts[0].reason, EndReason::kGpuMemory);
  EXPECT_EQ(job(id).attempts[0].detail, "it used 23 GiB of the 20 GiB of its part");
  EXPECT_EQ(job(id).attempts[0].exit.code, 0) << "it is kept";
}

TEST_F(GpuMemoryTest, ANeighbourThatFailsForItIsQueuedAgainForFree) {
  const std::uint64_t id = running();
  execution::Ended ended = testing::ended(attempt(id), 1, now_);
  ended.neighbour_fault = "job 9 on the same GPU used 70 GiB of the 20 GiB of its part";
  see(ended);
  EXPECT_FALSE(model::is_ended(job(id).state));
  EXPECT_EQ(job(id).failures, 0U);
  EXPECT_EQ(job(id).losses, 0U);
  EXPECT_EQ(job(id).attempts[0].exit.code, 1);
  EXPECT_EQ(job(id).attempts[0].detail,
            "job 9 on the same GPU used 70 GiB of the 20 GiB of its part; it is queued again, and "
            "no retry is used");
}

TEST_F(GpuMemoryTest, NeighboursFaultsInARowAreFreeUpToABound) {
  const std::uint64_t id = running(1);
  for (std::uint32_t number = 1; number <= model::kMaxNeighbourFaults; ++number) {
    fail_by_neighbour(id, number);
    EXPECT_EQ(job(id).failures, 0U) << number;
    EXPECT_EQ(job(id).neighbour_faults, number);
  }
  fail_by_neighbour(id, model::kMaxNeighbourFaults + 1);
  EXPECT_EQ(job(id).failures, 1U) << "it used its retry";
  EXPECT_EQ(job(id).neighbour_faults, 0U) << "they are counted anew";
  EXPECT_EQ(job(id).attempts[model::kMaxNeighbourFaults].detail,
            "a fault of job 9 on the same GPU; it counts as a failure of the job itself, because "
            "its last 3 attempts ended so, too");
}

TEST_F(GpuMemoryTest, WithoutRetriesAJobFailsAtTheBoundOfNeighboursFaults) {
  const std::uint64_t id = running();
  for (std::uint32_t number = 1; number <= model::kMaxNeighbourFaults; ++number) {
    fail_by_neighbour(id, number);
  }
  ASSERT_FALSE(model::is_ended(job(id).state));
  execution::Ended ended = testing::ended(attempt(id, model::kMaxNeighbourFaults + 1), 1, now_);
  ended.neighbour_fault = "a fault of job 9 on the same GPU";
  see(ended);
  EXPECT_EQ(job(id).state, JobState::kFailed);
  EXPECT_EQ(job(id).failures, 1U);
}

TEST_F(GpuMemoryTest, AnotherEndBetweenThemBeginsTheCountOfNeighboursFaultsAnew) {
  const std::uint64_t id = running(1);
  fail_by_neighbour(id, 1);
  fail_by_neighbour(id, 2);
  see(testing::ended(attempt(id, 3), 1, now_));
  EXPECT_EQ(job(id).failures, 1U);
  EXPECT_EQ(job(id).neighbour_faults, 0U);
}

TEST_F(GpuMemoryTest, OneThatAPersonStopsIsNotQueuedAgain) {
  const std::uint64_t id = running();
  EXPECT_TRUE(core_.command(testing::stop(id), now_, kAmple));
  execution::Ended ended = testing::ended(attempt(id), 1, now_);
  ended.reason = EndReason::kCancelledBy;
  ended.neighbour_fault = "job 9 on the same GPU used 70 GiB of the 20 GiB of its part";
  see(ended);
  const model::Job* const left = core_.state().jobs.find(id);
  EXPECT_TRUE(left == nullptr || left->state == JobState::kCancelled);
}

}  // namespace
}  // namespace gpu_platform::controller
