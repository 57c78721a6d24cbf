#include "telemetry/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/prng.h"

namespace gpu_platform::telemetry {
namespace {

constexpr model::AttemptId kFirst{model::JobId(7), 1};
constexpr model::AttemptId kSecond{model::JobId(8), 2};
constexpr model::AttemptId kNoHolder{model::JobId(99), 1};

SharedGpu shared(model::ShareMode mode, std::vector<SharedGpu::Process> processes) {
  SharedGpu gpu;
  gpu.holders = {{kFirst, base::GpuShare(1750), mode}, {kSecond, base::GpuShare(5250), mode}};
  gpu.utilization_percent = 90;
  gpu.power = base::Milliwatts(300'001);
  gpu.idle_power = base::Milliwatts(100'000);
  gpu.processes = std::move(processes);
  return gpu;
}

TEST(Attribution, GoesByTheTimeOfEachProcessWhereTheDriverCountsIt) {
  const auto uses = attribute(
      shared(model::ShareMode::kMps,
             {{kFirst, base::kGiB, 20}, {kSecond, base::kGiB * 9, 30}, {kSecond, base::kGiB, 10}}));

  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].attempt, kFirst);
  EXPECT_EQ(uses[0].attributed_by, AttributedBy::kProcesses);
  EXPECT_EQ(uses[0].utilization_percent, 30U);
  EXPECT_EQ(uses[1].utilization_percent, 60U);
  EXPECT_EQ(uses[0].memory, base::kGiB);
  EXPECT_EQ(uses[1].memory, base::kGiB * 10);
  // A quarter and three quarters of the idle power; a third and two thirds of what is beyond it.
  EXPECT_EQ(uses[0].power, base::Milliwatts(25'000 + 66'667));
  EXPECT_EQ(uses[1].power, base::Milliwatts(75'000 + 133'334));
}

TEST(Attribution, LeavesThePartOfUnmanagedProcessesToThem) {
  const auto uses = attribute(shared(
      model::ShareMode::kMps,
      {{kFirst, base::kGiB, 10}, {kNoHolder, base::kGiB, 20}, {std::nullopt, base::kGiB, 60}}));

  EXPECT_EQ(uses[0].utilization_percent, 10U);
  EXPECT_EQ(uses[1].utilization_percent, 0U);
  EXPECT_EQ(uses[1].memory, base::Bytes(0)) << "it has no process, which is known";
}

TEST(Attribution, GoesByTurnsWhereJobsTakeThem) {
  const auto gpu =
      shared(model::ShareMode::kTimeSlice, {{kFirst, base::kGiB, {}}, {kSecond, base::kGiB, {}}});

  const auto uses = attribute(gpu);

  EXPECT_EQ(uses[0].attributed_by, AttributedBy::kTurns);
  EXPECT_EQ(uses[0].utilization_percent, 23U) << "22.5, as is the rest of the other: the first";
  EXPECT_EQ(uses[1].utilization_percent, 67U);
}

TEST(Attribution, GivesTheTurnsOfAJobWithoutProcessesToTheOthers) {
  const auto uses =
      attribute(shared(model::ShareMode::kTimeSlice, {{kFirst, base::kGiB, std::nullopt}}));

  EXPECT_EQ(uses[0].utilization_percent, 90U);
  EXPECT_EQ(uses[1].utilization_percent, 0U);
}

TEST(Attribution, GoesByMemoryWhereNothingElseTells) {
  const auto uses = attribute(
      shared(model::ShareMode::kMps, {{kFirst, base::kGiB * 2, 0}, {kSecond, base::kGiB, {}}}));

  EXPECT_EQ(uses[0].attributed_by, AttributedBy::kMemory);
  EXPECT_EQ(uses[0].utilization_percent, 60U);
  EXPECT_EQ(uses[1].utilization_percent, 30U);
}

TEST(Attribution, DoesNotGoByMemoryWhereThatOfAProcessOfNoJobIsWithheld) {
  const auto uses =
      attribute(shared(model::ShareMode::kMps,
                       {{kFirst, base::kGiB, {}}, {kSecond, base::kGiB, {}}, {kNoHolder, {}, {}}}));

  EXPECT_EQ(uses[0].utilization_percent, std::nullopt) << "the process may have done all of it";
  EXPECT_EQ(uses[0].memory, base::kGiB);
}

TEST(Attribution, SaysNothingOfWhatIsNotKnown) {
  auto gpu = shared(model::ShareMode::kMps, {});
  gpu.processes.reset();
  EXPECT_EQ(attribute(gpu), (std::vector<Use>{{kFirst}, {kSecond}}));

  gpu = shared(model::ShareMode::kMps, {{kFirst, std::nullopt, {}}, {kSecond, base::kGiB, {}}});
  auto uses = attribute(gpu);
  EXPECT_EQ(uses[0], Use{kFirst}) << "the memory of its process is withheld";
  EXPECT_EQ(uses[1].memory, base::kGiB);
  EXPECT_EQ(uses[1].utilization_percent, std::nullopt);
  EXPECT_EQ(uses[1].power, std::nullopt);

  gpu.utilization_percent.reset();
  gpu.processes->at(0).sm_percent = 50;
  EXPECT_EQ(attribute(gpu)[0].utilization_percent, std::nullopt);
}

TEST(Attribution, OfAnIdleGpuIsZeroAndItsPowerGoesByShare) {
  auto gpu = shared(model::ShareMode::kMps, {});
  gpu.utilization_percent = 0;
  gpu.idle_power.reset();
  gpu.power = base::Milliwatts(70'002);

  const auto uses = attribute(gpu);

  EXPECT_EQ(uses[0].attributed_by, AttributedBy::kIdle);
  EXPECT_EQ(uses[0].utilization_percent, 0U);
  EXPECT_EQ(uses[0].power, base::Milliwatts(17'501)) << "17,500.5";
  EXPECT_EQ(uses[1].power, base::Milliwatts(52'501));
}

TEST(Attribution, GivesNoIdlePowerBeyondAllThatTheGpuDraws) {
  auto gpu = shared(model::ShareMode::kMps, {{kFirst, base::kGiB, 50}});
  gpu.idle_power = base::Milliwatts(400'000);

  const auto uses = attribute(gpu);

  EXPECT_EQ(*uses[0].power + *uses[1].power, *gpu.power);
}

TEST(Attribution, PartsAddUpToTheWholeAndNoneIsNegative) {
  base::Prng random(7);
  for (int round = 0; round < 2000; ++round) {
    SharedGpu gpu;
    const auto holders = 2 + random.below(6);
    const auto mode = random.below(2) == 0 ? model::ShareMode::kMps : model::ShareMode::kTimeSlice;
    for (std::uint64_t i = 0; i < holders; ++i) {
      gpu.holders.push_back({{model::JobId(i + 1), 1},
                             base::GpuShare(static_cast<std::int64_t>(1 + random.below(3500))),
                             mode});
    }
    gpu.utilization_percent = static_cast<std::uint32_t>(random.below(101));
    gpu.power = base::Milliwatts(static_cast<std::int64_t>(random.below(700'000)));
    gpu.idle_power = base::Milliwatts(static_cast<std::int64_t>(random.below(200'000)));
    gpu.processes.emplace();
    const bool tells_time = random.below(2) == 0;
    for (std::uint64_t i = random.below(20); i > 0; --i) {
      SharedGpu::Process process;
      // All are of holders, so that nothing is left to others.
      process.attempt = model::AttemptId{model::JobId(1 + random.below(holders)), 1};
      process.memory = base::Bytes(static_cast<std::int64_t>(random.below(1ull << 37)));
      if (tells_time) process.sm_percent = static_cast<std::uint32_t>(random.below(101));
      gpu.processes->push_back(process);
    }

    const auto uses = attribute(gpu);

    ASSERT_EQ(uses.size(), holders);
    if (!uses[0].utilization_percent) continue;
    std::uint64_t utilization = 0;
    std::int64_t power = 0;
    for (const Use& use : uses) {
      utilization += *use.utilization_percent;
      ASSERT_GE(use.power->value(), 0);
      power += use.power->value();
    }
    ASSERT_EQ(utilization, *gpu.utilization_percent) << round;
    ASSERT_EQ(power, gpu.power->value()) << round;
  }
}

TEST(Attribution, TakesTenThousandProcessesAndFiguresThatCannotBe) {
  SharedGpu gpu = shared(model::ShareMode::kMps, {});
  const base::Bytes huge(std::numeric_limits<std::int64_t>::max());
  for (int i = 0; i < 10'000; ++i) {
    gpu.processes->push_back({i % 2 == 0 ? kFirst : kSecond, base::kGiB, 4'000'000'000U});
  }
  gpu.processes->push_back({kSecond, huge, {}});
  gpu.processes->push_back({kSecond, huge, {}});

  const auto uses = attribute(gpu);

  EXPECT_EQ(uses[0].utilization_percent, 45U);
  EXPECT_EQ(uses[0].memory, base::kGiB * 5000);
  EXPECT_EQ(uses[1].memory, std::nullopt) << "more than there can be";
}

TEST(Attribution, IsToldAsValuesInTheOrderOfTheMetrics) {
  const auto values =
      values_of(Use{kFirst, 45, base::kGiB, base::Milliwatts(5), AttributedBy::kTurns});

  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[0], (Value{*metric_named(Of::kUse, kUseUtilization), 45}));
  EXPECT_EQ(values[3], (Value{*metric_named(Of::kUse, kUseAttributedBy), 2}));
  EXPECT_TRUE(std::ranges::is_sorted(values, {}, &Value::metric));
  EXPECT_TRUE(values_of(Use{kFirst}).empty());
}

}  // namespace
}  // namespace gpu_platform::telemetry
