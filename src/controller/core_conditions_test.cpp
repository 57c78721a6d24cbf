#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/node_conditions.h"
#include "controller/test_support.h"

namespace gpu_platform::controller {
namespace {

using model::GpuState;
using testing::kNoon;

constexpr const char* kLinkDown = "NVLinkStatusInactive: LinkDown";

// Two nodes of two GPUs in a cluster whose health tools report conditions.
class ConditionsTest : public ::testing::Test {
 protected:
  ConditionsTest() {
    model::Policy policy;
    policy.health_max_out_percent = 100;
    core_.apply_policy(policy, "test", now_);
    boot("n1", "boot-1");
    boot("n2", "boot-1");
  }

  void boot(const std::string& node, const std::string& boot_id) {
    see(execution::NodeObserved{testing::node_info(node, 2, boot_id)});
  }
  void see(const execution::Observation& observation) {
    now_ = now_ + base::seconds(1);
    core_.observe(observation, now_);
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  void tell(const std::string& text, bool is_over, const std::string& gpu = "") {
    execution::EvidenceObserved seen{"n1", gpu, {}};
    seen.evidence.kind = model::EvidenceKind::kNodeCondition;
    seen.evidence.source = model::EvidenceSource::kCluster;
    seen.evidence.is_over = is_over;
    seen.evidence.text = text;
    see(seen);
  }
  std::size_t recorded() {
    std::size_t count = 0;
    for (const model::EventRecord& each : core_.take_batch().events) {
      count += std::holds_alternative<model::EvidenceRecorded>(each.event) ? 1 : 0;
    }
    return count;
  }
  GpuState state(std::uint64_t node, std::size_t gpu) const {
    return core_.state().nodes.find(node)->gpus.at(gpu).state;
  }
  std::vector<std::string> lasting() const {
    std::vector<std::string> texts;
    for (const auto& each : lasting_conditions(core_.state())) {
      texts.push_back(each.node_name + " " + each.gpu_uuid + " " + each.evidence.text);
    }
    return texts;
  }

  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(ConditionsTest, AConditionThatIsToldAgainIsNothingNew) {
  tell(kLinkDown, false);
  EXPECT_EQ(recorded(), 1U);
  EXPECT_EQ(state(1, 0), GpuState::kDraining);
  EXPECT_EQ(state(1, 1), GpuState::kDraining);
  EXPECT_EQ(state(2, 0), GpuState::kAvailable);
  for (int i = 0; i < 20; ++i) {
    now_ = now_ + base::hours(1);
    tell(kLinkDown, false);
  }
  EXPECT_EQ(recorded(), 0U) << "as after 20 starts of the daemon";
  tell(kLinkDown, true);
  EXPECT_EQ(recorded(), 1U);
  EXPECT_EQ(state(1, 0), GpuState::kAvailable);
}

TEST_F(ConditionsTest, TheEndOfWhatDidNotLastIsNothingNew) {
  tell(kLinkDown, true);
  tell(kLinkDown, true, "n1-0");
  EXPECT_EQ(recorded(), 0U);
}

TEST_F(ConditionsTest, OtherWordsOfTheSameConditionAreNew) {
  tell(kLinkDown, false);
  tell("NVLinkStatusInactive: TwoLinksDown", false);
  EXPECT_EQ(recorded(), 2U);
  EXPECT_EQ(lasting(), std::vector<std::string>{"n1  NVLinkStatusInactive: TwoLinksDown"});
  tell("NVLinkStatusInactive: TwoLinksDown", true);
  EXPECT_EQ(state(1, 0), GpuState::kAvailable) << "one condition, whatever its words were";
  EXPECT_EQ(lasting(), std::vector<std::string>{});
}

TEST_F(ConditionsTest, WhatLastsIsKnownByNodeAndGpu) {
  tell(kLinkDown, false);
  tell("DeviceHealth: the GPU is unhealthy", false, "n1-1");
  tell("FrequentKubeletRestart: Often", false);
  tell("FrequentKubeletRestart: Often", true);
  EXPECT_EQ(lasting(), (std::vector<std::string>{"n1  NVLinkStatusInactive: LinkDown",
                                                 "n1 n1-1 DeviceHealth: the GPU is unhealthy"}));
}

TEST_F(ConditionsTest, ANewMachineThatHasTheConditionHasItAnew) {
  tell(kLinkDown, false);
  boot("n1", "boot-2");
  EXPECT_EQ(state(1, 0), GpuState::kAvailable) << "a restart cures what is not told again";
  tell(kLinkDown, false);
  EXPECT_EQ(state(1, 0), GpuState::kDraining);
  EXPECT_EQ(lasting(), std::vector<std::string>{"n1  NVLinkStatusInactive: LinkDown"});
}

TEST_F(ConditionsTest, ACoreThatStartsAgainKnowsWhatLasts) {
  tell(kLinkDown, false);
  auto decoded = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(decoded);
  core_ = Core(*std::move(decoded));
  EXPECT_EQ(lasting(), std::vector<std::string>{"n1  NVLinkStatusInactive: LinkDown"});
  tell(kLinkDown, false);
  EXPECT_EQ(recorded(), 0U);
  tell(kLinkDown, true);
  EXPECT_EQ(state(1, 0), GpuState::kAvailable);
}

TEST_F(ConditionsTest, WhatAnOperatorBroughtOnlineStaysSoWhenItIsToldAgain) {
  tell(kLinkDown, false);
  model::ChangeGpus command;
  command.which = {.node = "n1"};
  command.action = model::GpuAction::kBringOnline;
  ASSERT_TRUE(core_.command({model::root_caller(), command}, now_, store::Headroom::kAmple));
  core_.advance(now_);
  EXPECT_EQ(state(1, 0), GpuState::kAvailable);
  tell(kLinkDown, false);
  EXPECT_EQ(state(1, 0), GpuState::kAvailable);
}

}  // namespace
}  // namespace gpu_platform::controller
