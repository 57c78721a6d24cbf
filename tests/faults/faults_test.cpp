#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "simulation/faults/run_faults.h"

namespace gpu_platform::simulation {
namespace {

// GPU_PLATFORM_FAULT_SEEDS=10000 asks for more seeds.
std::uint64_t seeds_asked_for() {
  const char* text = std::getenv("GPU_PLATFORM_FAULT_SEEDS");
  const std::uint64_t asked = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return asked == 0 ? kSeedsThatTryEverything : asked;
}

std::string told(const FaultReport& report, Plant plant) {
  std::string text;
  for (const Violation& violation : report.violations) {
    text += fmt::format("seed {} step {}: {}: {}\n  repeat: {}\n", violation.seed, violation.step,
                        violation.invariant, violation.text, repeat_command(violation, plant));
  }
  return text;
}

TEST(Faults, NothingIsViolatedAndEveryFaultOccurs) {
  FaultOptions options;
  options.seeds = seeds_asked_for();
  const FaultReport report = run_faults(options);
  EXPECT_TRUE(report.violations.empty()) << told(report, Plant::kNone);
  EXPECT_EQ(report.seeds, options.seeds);
  if (options.seeds < kSeedsThatTryEverything) return;
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    EXPECT_GT(report.faults[i], 0U) << to_string(static_cast<FaultKind>(i));
  }
}

TEST(Faults, TwoRunsOfTheSameSeedsAreTheSame) {
  FaultOptions options;
  options.seeds = 30;
  options.first_seed = 7'000;
  const FaultReport first = run_faults(options);
  const FaultReport second = run_faults(options);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.faults, second.faults);
  options.first_seed = 8'000;
  EXPECT_NE(run_faults(options).hash, first.hash);
}

class Planted : public testing::TestWithParam<Plant> {};

TEST_P(Planted, DefectIsFoundWithinABoundedNumberOfSeeds) {
  FaultOptions options;
  options.plant = GetParam();
  options.seeds = 200;
  options.max_violations = 1;
  const FaultReport report = run_faults(options);
  ASSERT_EQ(report.violations.size(), 1U) << "not found in 200 seeds";
  // The command that the report names finds it again.
  FaultOptions again;
  again.plant = GetParam();
  again.seeds = 1;
  again.first_seed = report.violations.front().seed;
  const FaultReport repeated = run_faults(again);
  ASSERT_EQ(repeated.violations.size(), 1U);
  EXPECT_EQ(repeated.violations.front().invariant, report.violations.front().invariant);
  EXPECT_EQ(repeated.violations.front().step, report.violations.front().step);
  RecordProperty("seed", static_cast<int>(report.violations.front().seed));
  RecordProperty("invariant", report.violations.front().invariant);
}

// By the check that is meant for it, not by one that happens to see its consequences.
TEST(Plants, AreFoundByName) {
  const std::pair<Plant, std::string> kFoundBy[] = {
      {Plant::kLostRequeue, "queued-again"}, {Plant::kForgottenRequeue, "requeued"},
      {Plant::kUnsaidLimit, "given-time"},   {Plant::kEarlyClaim, "claimed"},
      {Plant::kLateList, "end-known"},       {Plant::kUnreleasedPod, "left"},
      {Plant::kUnsaidUnfit, "for-free"}};
  for (const auto& [plant, invariant] : kFoundBy) {
    FaultOptions options;
    options.plant = plant;
    options.seeds = 200;
    options.max_violations = 1;
    const FaultReport report = run_faults(options);
    ASSERT_EQ(report.violations.size(), 1U) << to_string(plant);
    EXPECT_EQ(report.violations.front().invariant, invariant) << to_string(plant);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Planted,
                         testing::Values(Plant::kDoubleStart, Plant::kLeakedGpu, Plant::kLostJob,
                                         Plant::kEffectBeforeSync, Plant::kHalfGang,
                                         Plant::kLateNews, Plant::kForgottenCancel,
                                         Plant::kEarlyAnswer, Plant::kEarlyFree,
                                         Plant::kLostRequeue, Plant::kForgottenRequeue,
                                         Plant::kUnsaidLimit, Plant::kForgottenCaller,
                                         Plant::kEarlyFinalizer, Plant::kEarlyClaim,
                                         Plant::kRenamedStart, Plant::kLateList,
                                         Plant::kUnreleasedPod, Plant::kUnsaidUnfit),
                         [](const auto& instance) {
                           std::string name(to_string(instance.param));
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Plants, NamesAreReadBack) {
  for (std::size_t i = 0; i < kPlants; ++i) {
    const auto plant = static_cast<Plant>(i);
    EXPECT_EQ(parse_plant(to_string(plant)), plant);
  }
  EXPECT_EQ(parse_plant("double_start"), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::simulation
