// Checks of GPUs before their first work (Policy::health_check_at_start).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::GpuState;
using model::JobState;
using testing::attempt;
using testing::kNoon;

class FirstChecksTest : public ::testing::Test {
 protected:
  void begin(model::HealthCheckAtStart check) {
    policy_.health_check_at_start = check;
    policy_.health_max_out_percent = 100;
    core_.apply_policy(policy_, "test", now_);
    settle();
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    settle();
  }
  void settle() {
    now_ = now_ + base::milliseconds(10);
    core_.advance(now_);
    for (Effect& each : core_.take_batch().effects) effects_.push_back(std::move(each));
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  std::uint64_t submit(std::uint32_t gpus) {
    const auto reply =
        core_.command(testing::submission(testing::spec(gpus)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    settle();
    return reply ? reply->job.value : 0;
  }
  void checked(const std::string& uuid, const std::string& failure) {
    see(execution::ResetEnded{"n1", uuid, failure, "", true});
  }
  // The UUIDs of those that were to be checked since the last call.
  std::vector<std::string> take_checks() {
    std::vector<std::string> gpus;
    for (const Effect& effect : std::exchange(effects_, {})) {
      const auto* const order = std::get_if<execution::ResetOrder>(&effect);
      if (order == nullptr) continue;
      EXPECT_TRUE(order->without_reset);
      EXPECT_FALSE(order->is_deep);
      gpus.insert(gpus.end(), order->gpu_uuids.begin(), order->gpu_uuids.end());
    }
    std::ranges::sort(gpus);
    return gpus;
  }
  void node_is_seen() { see(execution::NodeObserved{testing::node_info("n1", 2)}); }

  const model::Gpu& gpu(std::uint32_t index) const {
    return core_.state().nodes.find(1)->gpus.at(index);
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }

  using Names = std::vector<std::string>;
  model::Policy policy_;
  base::Instant now_ = kNoon;
  Core core_;
  std::vector<Effect> effects_;
};

TEST_F(FirstChecksTest, NothingIsCheckedUnlessTheSiteSaysSo) {
  begin(model::HealthCheckAtStart::kNone);
  node_is_seen();
  EXPECT_EQ(take_checks(), Names());
  EXPECT_EQ(gpu(0).state, GpuState::kAvailable);
}

TEST_F(FirstChecksTest, GpusOfANewNodeGetNoWorkBeforeTheirCheck) {
  begin(model::HealthCheckAtStart::kQuick);
  // The job waits when the first cycle comes that sees the node.
  core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, now_);
  const std::uint64_t id = submit(1);
  EXPECT_EQ(take_checks(), (Names{"n1-0", "n1-1"}));
  EXPECT_EQ(gpu(0).state, GpuState::kResetting) << gpu(0).cause;
  EXPECT_EQ(job(id).state, JobState::kQueued);
  checked("n1-0", "its memory");
  EXPECT_EQ(gpu(0).state, GpuState::kDraining) << gpu(0).cause;
  EXPECT_EQ(job(id).state, JobState::kQueued);
  checked("n1-1", "");
  EXPECT_EQ(job(id).state, JobState::kStarting);
  EXPECT_EQ(take_checks(), Names()) << "once";
}

TEST_F(FirstChecksTest, AfterARestartEmptyGpusAreCheckedAndThoseOfJobsAreNot) {
  begin(model::HealthCheckAtStart::kNone);
  node_is_seen();
  const std::uint64_t id = submit(1);
  see(execution::Started{attempt(id), 5, now_});
  policy_.health_check_at_start = model::HealthCheckAtStart::kQuick;
  core_.apply_policy(policy_, "test", now_);
  settle();
  EXPECT_EQ(take_checks(), Names()) << "the next start is meant";
  auto kept = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(kept);
  core_ = Core(*std::move(kept));
  settle();
  const std::string held = job(id).attempts.back().granted->front().gpus.front().uuid;
  EXPECT_EQ(take_checks(), (Names{held == "n1-0" ? "n1-1" : "n1-0"}));
  EXPECT_EQ(job(id).state, JobState::kRunning);
}

TEST_F(FirstChecksTest, AGpuThatIsBackInServiceIsCheckedFirst) {
  begin(model::HealthCheckAtStart::kQuick);
  node_is_seen();
  take_checks();
  checked("n1-0", "");
  checked("n1-1", "");
  model::ChangeGpus command;
  command.which = {.node = "n1", .index = 0};
  for (const model::GpuAction action :
       {model::GpuAction::kTakeOffline, model::GpuAction::kBringOnline}) {
    command.action = action;
    const auto reply =
        core_.command({model::root_caller(), command}, now_, store::Headroom::kAmple);
    ASSERT_TRUE(reply) << reply.error().message;
    settle();
  }
  EXPECT_EQ(take_checks(), Names{"n1-0"});
  EXPECT_EQ(gpu(0).state, GpuState::kResetting) << gpu(0).cause;
  checked("n1-0", "");
  EXPECT_EQ(gpu(0).state, GpuState::kAvailable) << gpu(0).cause;
}

TEST_F(FirstChecksTest, ANodeThatComesBackIsCheckedAndADegradedGpuIsLeftAsItIs) {
  begin(model::HealthCheckAtStart::kQuick);
  node_is_seen();
  take_checks();
  checked("n1-0", "");
  checked("n1-1", "");
  execution::EvidenceObserved replays{"n1", "n1-0", {}};
  replays.evidence.kind = model::EvidenceKind::kPcieReplays;
  replays.evidence.value = 100'000;
  replays.evidence.at = now_;
  replays.evidence.last = now_;
  see(replays);
  ASSERT_EQ(gpu(0).state, GpuState::kDegraded) << gpu(0).cause;
  see(execution::NodeUnreachable{"n1", "no route"});
  node_is_seen();
  EXPECT_EQ(take_checks(), Names{"n1-1"});
  EXPECT_EQ(gpu(0).state, GpuState::kDegraded) << gpu(0).cause;
}

}  // namespace
}  // namespace gpu_platform::controller
