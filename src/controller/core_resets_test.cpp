#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/health_fixture.h"
#include "controller/judge/gpu_resets.h"

namespace gpu_platform::controller::testing {
namespace {

class ResetTest : public HealthTest {};

TEST_F(ResetTest, AResetIsOrderedWhenNothingHoldsTheGpuAndBringsItBack) {
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

TEST_F(ResetTest, AResetThatFailsLeavesTheGpuOut) {
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

TEST_F(ResetTest, ThePlatformResetsByItselfWhereThePolicySaysSo) {
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

TEST_F(ResetTest, NobodyResetsWhereThePolicySaysSo) {
  policy_.health_reset = model::HealthReset::kNever;
  apply(policy_);
  const auto refused = order("n1", 0, GpuAction::kReset);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("health.reset"), std::string::npos);
}

TEST_F(ResetTest, ADegradedGpuThatPassesACheckIsBack) {
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

TEST_F(ResetTest, AGpuThatFailsItsCheckStaysOut) {
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

TEST_F(ResetTest, ACheckDoesNotStandForAReset) {
  xid("n1-0", 48);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  pass(base::seconds(3));
  see(checked("n1-0", ""));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
}

TEST_F(ResetTest, ACheckIsRefusedWhileAJobHoldsTheGpu) {
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

TEST_F(ResetTest, ThePlatformChecksADegradedGpuOnceByItself) {
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

// Four GPUs; NVLinks join those pairs.
model::Node linked_node(std::optional<std::uint32_t> compute_major,
                        const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  constexpr std::size_t kGpus = 4;
  const model::NodeInfo info = node_info("n3", kGpus);
  model::Node node;
  for (const model::GpuInfo& each : info.gpus) {
    model::Gpu gpu;
    gpu.info = each;
    gpu.info.compute_major = compute_major;
    node.gpus.push_back(std::move(gpu));
  }
  node.topology.links.assign(kGpus * (kGpus - 1) / 2, {model::LinkKind::kSystem, 0, 0});
  for (const auto& [a, b] : pairs) {
    node.topology.links.at(model::link_index(kGpus, a, b)) = {model::LinkKind::kNvLink, 4, 3};
  }
  return node;
}

TEST(ResetGroup, IsWhatTheDriverResetsTogether) {
  using Group = std::vector<std::uint32_t>;
  const std::vector<std::pair<std::size_t, std::size_t>> board{{0, 1}, {0, 2}, {0, 3},
                                                               {1, 2}, {1, 3}, {2, 3}};
  EXPECT_EQ(reset_group(linked_node(8, board), 2), (Group{0, 1, 2, 3})) << "A100 HGX";
  EXPECT_EQ(reset_group(linked_node(9, board), 2), (Group{2})) << "H100 HGX";
  EXPECT_EQ(reset_group(linked_node(10, board), 2), (Group{2})) << "B200 HGX";
  EXPECT_EQ(reset_group(linked_node(8, {{0, 1}, {2, 3}}), 2), (Group{2, 3})) << "A30 with bridges";
  EXPECT_EQ(reset_group(linked_node(8, {}), 2), (Group{2})) << "A100 PCIe";
  EXPECT_EQ(reset_group(linked_node(7, {{0, 1}, {1, 2}, {2, 3}}), 0), (Group{0, 1, 2, 3}))
      << "V100, some through others";
  EXPECT_EQ(reset_group(linked_node(std::nullopt, board), 0), (Group{0, 1, 2, 3}))
      << "not known: as an old one";
}

TEST_F(ResetTest, GpusThatAreResetTogetherLeaveWithOneOrder) {
  model::NodeInfo info = node_info("n3", 2);
  for (model::GpuInfo& each : info.gpus) each.compute_major = 8;
  info.topology.links = {{model::LinkKind::kNvLink, 12, 3}};
  see(execution::NodeObserved{info});
  ASSERT_TRUE(order("n3", 0, GpuAction::kReset));
  ASSERT_EQ(orders<execution::ResetOrder>().size(), 1U);
  EXPECT_EQ(orders<execution::ResetOrder>()[0].gpu_uuids,
            (std::vector<std::string>{"n3-0", "n3-1"}));
}

TEST_F(ResetTest, AResetIsOrderedAgainAfterARestart) {
  ASSERT_TRUE(order("n1", 0, GpuAction::kReset));
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  const std::vector<Effect> pending = pending_effects(*again);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(std::get<execution::ResetOrder>(pending[0]).gpu_uuids,
            std::vector<std::string>{"n1-0"});
}

TEST_F(ResetTest, ACheckThatIsNotAllowedChangesNothingAndIsTriedAgainAfterADay) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  see("n1-0", EvidenceKind::kPcieWidth);
  pass(base::minutes(6));
  ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
  execution::ResetEnded refused = checked("n1-0", "add the line \"allow check\"");
  refused.refused = execution::RefusedPart::kAll;
  see(refused);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
  EXPECT_TRUE(model::is_refused_trial(gpu("n1-0").evidence->back()));
  EXPECT_EQ(gpu("n1-0").evidence->back().text, "add the line \"allow check\"");
  pass(base::hours(23));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 1U);
  // An operator need not wait.
  ASSERT_TRUE(order("n1", 0, GpuAction::kCheck));
  see(refused);
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 2U);
  pass(base::hours(23));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 2U);
  pass(base::hours(2));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 3U);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
}

TEST_F(ResetTest, AResetThatIsNotAllowedLeavesTheVerdict) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  xid("n1-0", 48);
  ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
  pass(base::seconds(1));
  const execution::ResetEnded refused{"n1", "n1-0", "no rules",
                                      "",   false,  execution::RefusedPart::kAll};
  see(refused);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
  EXPECT_NE(gpu("n1-0").cause.find("XID 48"), std::string::npos) << gpu("n1-0").cause;
  pass(base::hours(23));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 1U);
  pass(base::hours(2));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 2U);
}

TEST_F(ResetTest, AResetThatCouldNotBeginIsTriedAgainSoonAndThenLessOften) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  xid("n1-0", 48);
  const execution::ResetEnded busy{
      "n1", "n1-0", "it is in use by process 7", "", false, execution::RefusedPart::kAll, true};
  std::size_t ordered = 1;
  for (const std::int64_t wait : {30, 60, 120, 240, 480, 600, 600}) {
    ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << wait << gpu("n1-0").cause;
    pass(base::seconds(1));
    see(busy);
    EXPECT_EQ(gpu("n1-0").state, GpuState::kDraining) << gpu("n1-0").cause;
    pass(base::seconds(wait - 1));
    EXPECT_EQ(orders<execution::ResetOrder>().size(), ordered) << wait;
    pass(base::seconds(1));
    EXPECT_EQ(orders<execution::ResetOrder>().size(), ++ordered) << wait;
  }
  EXPECT_EQ(std::ranges::count_if(*gpu("n1-0").evidence, model::is_untried_trial), 1)
      << "they are one piece, and push nothing else out";
  pass(base::seconds(3));
  see(execution::ResetEnded{"n1", "n1-0", ""});
  EXPECT_EQ(gpu("n1-0").state, GpuState::kAvailable) << gpu("n1-0").cause;
  // The waits of the next fault begin anew.
  pass(base::hours(2));
  xid("n1-0", 48);
  pass(base::seconds(1));
  see(busy);
  pass(base::seconds(30));
  EXPECT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
}

TEST_F(ResetTest, ACheckThatCouldNotBeginIsTriedAgainSoon) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  see("n1-0", EvidenceKind::kPcieWidth);
  pass(base::minutes(6));
  ASSERT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
  execution::ResetEnded busy = checked("n1-0", "the driver is busy with other requests");
  busy.refused = execution::RefusedPart::kAll;
  busy.is_untried = true;
  see(busy);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
  pass(base::seconds(29));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 1U);
  pass(base::seconds(1));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 2U);
  EXPECT_EQ(gpu("n1-0").state, GpuState::kResetting) << gpu("n1-0").cause;
}

TEST_F(ResetTest, RulesThatDoNotAllowAResetHoldItForADayAlsoIfTheGpuWasBusyAfterwards) {
  policy_.health_reset = model::HealthReset::kAuto;
  apply(policy_);
  xid("n1-0", 48);
  pass(base::seconds(1));
  execution::ResetEnded undone{"n1", "n1-0", "no rules", "", false, execution::RefusedPart::kAll};
  see(undone);
  ASSERT_TRUE(order("n1", 0, GpuAction::kReset));
  undone.is_untried = true;
  see(undone);
  pass(base::hours(23));
  EXPECT_EQ(orders<execution::ResetOrder>().size(), 2U);
}

TEST_F(ResetTest, AResetWhoseCheckIsNotAllowedLeavesTheGpuDegraded) {
  xid("n1-0", 48);
  pass(base::seconds(1));
  ASSERT_TRUE(order("n1", 0, GpuAction::kReset));
  pass(base::seconds(3));
  see(execution::ResetEnded{"n1", "n1-0", "no rules for checks", "", false,
                            execution::RefusedPart::kCheckAfterReset});
  EXPECT_EQ(gpu("n1-0").state, GpuState::kDegraded) << gpu("n1-0").cause;
  EXPECT_NE(gpu("n1-0").cause.find("no rules for checks"), std::string::npos) << gpu("n1-0").cause;
}

}  // namespace
}  // namespace gpu_platform::controller::testing
