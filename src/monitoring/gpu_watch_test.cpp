#include "monitoring/gpu_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace gpu_platform::monitoring {
namespace {

using hardware::GpuCondition;
using hardware::GpuEvent;
using hardware::GpuEventKind;
using hardware::GpuReading;
using model::Evidence;
using model::EvidenceKind;
using model::EvidenceSource;

constexpr std::int64_t kSecond = 1'000'000'000;

class GpuWatchTest : public ::testing::Test {
 protected:
  // A reading at the next interval, which began right now.
  std::vector<Evidence> read(const GpuReading& gpu, bool is_partial = false) {
    pass(5);
    return watch_.take({gpu, now_.boot_ns, is_partial}, build_, limits_, now_);
  }
  std::vector<Evidence> tell(GpuEventKind kind, std::uint64_t value = 0, std::uint32_t count = 1) {
    return watch_.take(GpuEvent{0, "a", kind, 0, value, std::nullopt, count}, now_);
  }
  void pass(std::int64_t seconds) {
    now_.boot_ns += seconds * kSecond;
    now_.at = now_.at + base::seconds(seconds);
  }
  static GpuReading with_slow(const model::GpuSlowMetrics& slow) {
    GpuReading gpu;
    gpu.slow = slow;
    return gpu;
  }
  static GpuReading at(std::int32_t degrees) {
    GpuReading gpu;
    gpu.temperature_c = degrees;
    return gpu;
  }
  static GpuReading refusing(GpuCondition condition) {
    GpuReading gpu;
    gpu.condition = condition;
    gpu.problem = "GPU is lost";
    return gpu;
  }
  static Evidence kept(EvidenceKind kind, bool is_over = false) {
    Evidence piece;
    piece.kind = kind;
    piece.is_over = is_over;
    return piece;
  }
  // The only piece is of that kind.
  static void expect_one(const std::vector<Evidence>& told, EvidenceKind kind,
                         std::int64_t value = 0, bool is_over = false) {
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, kind) << to_string(told[0].kind);
    EXPECT_EQ(told[0].value, value);
    EXPECT_EQ(told[0].is_over, is_over);
  }

  Moment now_{base::Instant(1'790'000'000'000'000'000), 1000 * kSecond};
  GpuBuild build_{5, 16, std::nullopt};
  HealthLimits limits_;
  GpuWatch watch_;
};

// ---- counters

TEST_F(GpuWatchTest, CountersTellWhatWasAdded) {
  GpuReading gpu;
  gpu.ecc_uncorrected = 7;
  EXPECT_TRUE(read(gpu).empty()) << "they were there before";
  EXPECT_TRUE(read({}).empty()) << "withheld";
  gpu.ecc_uncorrected = 9;
  const auto told = read(gpu);
  expect_one(told, EvidenceKind::kEccUncorrected, 2);
  EXPECT_EQ(told[0].source, EvidenceSource::kReading);
  EXPECT_EQ(told[0].at, now_.at);
  EXPECT_EQ(told[0].last, now_.at);
  EXPECT_TRUE(read(gpu).empty()) << "told once";
}

TEST_F(GpuWatchTest, ACounterThatGoesBackCountsFromThere) {
  GpuReading gpu;
  gpu.ecc_uncorrected = 9;
  read(gpu);
  gpu.ecc_uncorrected = 1;
  EXPECT_TRUE(read(gpu).empty()) << "the driver was loaded anew";
  gpu.ecc_uncorrected = 2;
  expect_one(read(gpu), EvidenceKind::kEccUncorrected, 1);
}

TEST_F(GpuWatchTest, ACounterThatJumpsToTheEndBreaksNothing) {
  GpuReading gpu;
  gpu.ecc_uncorrected = 0;
  read(gpu);
  gpu.ecc_uncorrected = std::numeric_limits<std::uint64_t>::max();
  expect_one(read(gpu), EvidenceKind::kEccUncorrected, std::numeric_limits<std::int64_t>::max());
}

TEST_F(GpuWatchTest, CountersOfHealthyGpusAreToldSeldom) {
  model::GpuSlowMetrics slow;
  slow.pcie_replays = 0;
  read(with_slow(slow));
  slow.pcie_replays = 3;
  expect_one(read(with_slow(slow)), EvidenceKind::kPcieReplays, 3);
  slow.pcie_replays = 4;
  EXPECT_TRUE(read(with_slow(slow)).empty());
  slow.pcie_replays = 9;
  EXPECT_TRUE(read(with_slow(slow)).empty());
  pass(300);
  expect_one(read(with_slow(slow)), EvidenceKind::kPcieReplays, 6);
}

TEST_F(GpuWatchTest, AllErrorsOfLinksAreOneKind) {
  model::GpuSlowMetrics slow;
  slow.nvlink_crc_errors = 1;
  slow.nvlink_replays = 1;
  slow.nvlink_recoveries = 1;
  read(with_slow(slow));
  slow.nvlink_crc_errors = 5;
  slow.nvlink_replays = 3;
  slow.nvlink_recoveries = 2;
  expect_one(read(with_slow(slow)), EvidenceKind::kNvlinkErrors, 7);
}

TEST_F(GpuWatchTest, RowsAndPagesAreToldAtOnce) {
  model::GpuSlowMetrics slow;
  slow.remapped_rows_corrected = 0;
  slow.remapped_rows_uncorrected = 1;
  read(with_slow(slow));
  slow.remapped_rows_uncorrected = 2;
  expect_one(read(with_slow(slow)), EvidenceKind::kRowsRemapped, 1);
  slow.remapped_rows_corrected = 1;
  expect_one(read(with_slow(slow)), EvidenceKind::kRowsRemapped, 1);
  model::GpuSlowMetrics old;
  old.retired_pages_uncorrected = 4;
  read(with_slow(old));
  old.retired_pages_uncorrected = 6;
  expect_one(read(with_slow(old)), EvidenceKind::kPagesRetired, 2);
}

// ---- heat

TEST_F(GpuWatchTest, HeatBeginsAtItsLimitAndEndsWhenItWasCoolForAMinute) {
  EXPECT_TRUE(read(at(84)).empty());
  expect_one(read(at(86)), EvidenceKind::kHeat, 86);
  EXPECT_TRUE(read(at(95)).empty()) << "told once";
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(read(at(82)).empty()) << "not below the margin";
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(read(at(79)).empty());
  EXPECT_TRUE(read(at(80)).empty()) << "it counts anew";
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(read(at(79)).empty());
  expect_one(read(at(79)), EvidenceKind::kHeat, 0, true);
  EXPECT_TRUE(read(at(79)).empty());
}

TEST_F(GpuWatchTest, ANonsensicalOrMissingTemperatureSaysNothing) {
  EXPECT_TRUE(read(at(20'000)).empty());
  read(at(90));
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(read({}).empty());
    EXPECT_TRUE(read(at(-1000)).empty());
  }
}

TEST_F(GpuWatchTest, TheMemoryHasALimitOfItsOwnAndBothAreTheSites) {
  limits_ = {70, 80, std::nullopt};
  GpuReading gpu;
  gpu.temperature_c = 69;
  gpu.memory_temperature_c = 80;
  expect_one(read(gpu), EvidenceKind::kMemoryHeat, 80);
  gpu.temperature_c = 70;
  expect_one(read(gpu), EvidenceKind::kHeat, 70);
}

TEST_F(GpuWatchTest, AFixedLimitHoldsUpToFiveDegreesBelowTheSlowdown) {
  build_.slowdown_c = 87;
  EXPECT_EQ(heat_limit_c(limits_, build_), 82) << "it lowers its clocks before 85 is reached";
  build_.slowdown_c = 93;
  EXPECT_EQ(heat_limit_c(limits_, build_), 85) << "the site's limit is the lower one";
  build_.slowdown_c = 12;
  EXPECT_EQ(heat_limit_c(limits_, build_), 85) << "not believed";
  build_.slowdown_c = std::nullopt;
  EXPECT_EQ(heat_limit_c(limits_, build_), 85) << "not known";
}

TEST_F(GpuWatchTest, ALimitBelowTheSlowdownMayBeHigherThanTheFixedOne) {
  limits_.below_slowdown_c = 3;
  build_.slowdown_c = 93;
  EXPECT_EQ(heat_limit_c(limits_, build_), 90);
  build_.slowdown_c = std::nullopt;
  EXPECT_EQ(heat_limit_c(limits_, build_), 85) << "not known";
}

TEST_F(GpuWatchTest, HeatBeginsAndEndsByTheLimitOfTheGpu) {
  build_.slowdown_c = 87;
  GpuReading gpu = at(81);
  gpu.memory_temperature_c = 90;
  EXPECT_TRUE(read(gpu).empty()) << "the memory has its own limit";
  expect_one(read(at(82)), EvidenceKind::kHeat, 82);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(read(at(77)).empty()) << "not below the margin";
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(read(at(76)).empty());
  expect_one(read(at(76)), EvidenceKind::kHeat, 0, true);
}

// ---- clocks

TEST_F(GpuWatchTest, ASlowdownOfTheHardwareBeginsWhenItLasts) {
  GpuReading slow;
  slow.throttle_reasons = model::kThrottlePowerBrake | model::kThrottlePowerCap;
  GpuReading fast;
  fast.throttle_reasons = model::kThrottlePowerCap;
  EXPECT_TRUE(read(slow).empty());
  EXPECT_TRUE(read(slow).empty());
  EXPECT_TRUE(read(slow, true).empty()) << "readings between do not count";
  const auto told = read(slow);
  expect_one(told, EvidenceKind::kSlowdown);
  EXPECT_EQ(told[0].text, "POWER_BRAKE");
  for (std::uint32_t i = 1; i < GpuWatch::kFastReadings; ++i) EXPECT_TRUE(read(fast).empty());
  expect_one(read(fast), EvidenceKind::kSlowdown, 0, true);
}

TEST_F(GpuWatchTest, AShortSlowdownIsNone) {
  GpuReading slow;
  slow.throttle_reasons = model::kThrottleHeatHardware;
  GpuReading fast;
  fast.throttle_reasons = 0;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(read(i % 3 == 2 ? fast : slow).empty());
}

TEST_F(GpuWatchTest, TellsWhenItIsSlowAmongItsPeers) {
  const auto told = watch_.take_speed(true, 61, now_);
  expect_one(told, EvidenceKind::kSlow, 61);
  EXPECT_TRUE(watch_.take_speed(true, 60, now_).empty());
  expect_one(watch_.take_speed(false, 98, now_), EvidenceKind::kSlow, 0, true);
}

// ---- memory

TEST_F(GpuWatchTest, LevelsOfTheMemoryBeginAndEnd) {
  model::GpuSlowMetrics slow;
  slow.remap_pending = true;
  expect_one(read(with_slow(slow)), EvidenceKind::kRemapPending);
  EXPECT_TRUE(read(with_slow(slow)).empty());
  EXPECT_TRUE(read({}).empty()) << "withheld";
  slow.remap_pending = false;
  slow.remap_failed = true;
  const auto told = read(with_slow(slow));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].is_over);
  EXPECT_EQ(told[1].kind, EvidenceKind::kRemapFailed);
  model::GpuSlowMetrics old;
  old.retirement_pending = true;
  expect_one(read(with_slow(old)), EvidenceKind::kRetirementPending);
}

TEST_F(GpuWatchTest, AnOlderReadingDoesNotTakeBackThatARemapFailed) {
  model::GpuSlowMetrics slow;
  slow.remap_failed = false;
  read(with_slow(slow));
  const auto told = tell(GpuEventKind::kRetirementFailed);
  expect_one(told, EvidenceKind::kRemapFailed);
  EXPECT_EQ(told[0].source, EvidenceSource::kDriver);
  EXPECT_TRUE(read(with_slow(slow)).empty());
  pass(90);
  expect_one(read(with_slow(slow)), EvidenceKind::kRemapFailed, 0, true);
}

// ---- links

TEST_F(GpuWatchTest, ANarrowLinkIsToldUnlessItSavesPower) {
  model::GpuSlowMetrics slow;
  slow.pcie_generation = 1;
  slow.pcie_width = 8;
  EXPECT_TRUE(read(with_slow(slow)).empty()) << "idle";
  slow.pcie_generation = 5;
  const auto told = read(with_slow(slow));
  expect_one(told, EvidenceKind::kPcieWidth, 8);
  EXPECT_EQ(told[0].text, "8 of 16 lanes");
  slow.pcie_width = 16;
  expect_one(read(with_slow(slow)), EvidenceKind::kPcieWidth, 0, true);
}

TEST_F(GpuWatchTest, ALowerGenerationAloneIsNone) {
  model::GpuSlowMetrics slow;
  slow.pcie_generation = 1;
  slow.pcie_width = 16;
  EXPECT_TRUE(read(with_slow(slow)).empty());
}

TEST_F(GpuWatchTest, LinksThatWereUpAndAreDownAreTold) {
  model::GpuSlowMetrics slow;
  slow.nvlinks_active = 18;
  EXPECT_TRUE(read(with_slow(slow)).empty());
  slow.nvlinks_active = 16;
  const auto told = read(with_slow(slow));
  expect_one(told, EvidenceKind::kNvlinkDown, 2);
  EXPECT_EQ(told[0].text, "2 of 18 links");
  slow.nvlinks_active = 18;
  expect_one(read(with_slow(slow)), EvidenceKind::kNvlinkDown, 0, true);
}

TEST_F(GpuWatchTest, ItsPeersTellHowManyLinksAGpuHas) {
  build_.nvlinks = 18;
  model::GpuSlowMetrics slow;
  slow.nvlinks_active = 17;
  expect_one(read(with_slow(slow)), EvidenceKind::kNvlinkDown, 1);
}

TEST_F(GpuWatchTest, AGpuWithoutABridgeHasNoLinksDown) {
  build_.nvlinks = 12;
  model::GpuSlowMetrics slow;
  slow.nvlinks_active = 0;
  EXPECT_TRUE(read(with_slow(slow)).empty());
}

// ---- answers

TEST_F(GpuWatchTest, ALostGpuIsToldAtOnceAndBackWhenItAnsweredForAWhile) {
  const auto told = read(refusing(GpuCondition::kLost));
  expect_one(told, EvidenceKind::kLost);
  EXPECT_EQ(told[0].text, "GPU is lost");
  EXPECT_TRUE(read(refusing(GpuCondition::kLost)).empty());
  for (std::uint32_t i = 1; i < GpuWatch::kAnswers; ++i) EXPECT_TRUE(read({}).empty());
  EXPECT_TRUE(read(refusing(GpuCondition::kLost)).empty()) << "it counts anew";
  for (std::uint32_t i = 1; i < GpuWatch::kAnswers; ++i) {
    EXPECT_TRUE(read({}).empty());
    EXPECT_TRUE(read({}, true).empty()) << "readings between do not count";
  }
  expect_one(read({}), EvidenceKind::kLost, 0, true);
}

TEST_F(GpuWatchTest, ARefusalThatMayPassMustComeTwice) {
  EXPECT_TRUE(read(refusing(GpuCondition::kNotAnswering)).empty());
  EXPECT_TRUE(read({}).empty());
  EXPECT_TRUE(read(refusing(GpuCondition::kNotAnswering)).empty());
  expect_one(read(refusing(GpuCondition::kNotAnswering)), EvidenceKind::kNotAnswering);
}

TEST_F(GpuWatchTest, OneThatNeedsAResetDoesNotAnswer) {
  expect_one(read(refusing(GpuCondition::kResetRequired)), EvidenceKind::kNotAnswering);
}

TEST_F(GpuWatchTest, AGpuThatIsNotListedIsLostUntilItAnswers) {
  expect_one(watch_.take_loss(now_), EvidenceKind::kLost);
  EXPECT_TRUE(watch_.take_loss(now_).empty());
  for (std::uint32_t i = 1; i < GpuWatch::kAnswers; ++i) EXPECT_TRUE(read({}).empty());
  expect_one(read({}), EvidenceKind::kLost, 0, true);
}

// ---- a daemon that starts again

TEST_F(GpuWatchTest, WhatLastsAlreadyIsNotToldAgain) {
  const std::vector<Evidence> before{kept(EvidenceKind::kRemapPending), kept(EvidenceKind::kHeat),
                                     kept(EvidenceKind::kSlowdown)};
  watch_ = GpuWatch(before);
  GpuReading gpu = at(90);
  gpu.throttle_reasons = model::kThrottleHeatHardware;
  gpu.slow.emplace().remap_pending = true;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(read(gpu).empty());
}

TEST_F(GpuWatchTest, WhatEndedMeanwhileIsTold) {
  const std::vector<Evidence> before{kept(EvidenceKind::kRemapPending), kept(EvidenceKind::kLost)};
  watch_ = GpuWatch(before);
  model::GpuSlowMetrics slow;
  slow.remap_pending = false;
  expect_one(read(with_slow(slow)), EvidenceKind::kRemapPending, 0, true);
  for (std::uint32_t i = 2; i < GpuWatch::kAnswers; ++i) EXPECT_TRUE(read({}).empty());
  expect_one(read({}), EvidenceKind::kLost, 0, true);
}

TEST_F(GpuWatchTest, EveryLevelThatEndedMeanwhileIsTold) {
  const std::vector<EvidenceKind> kinds{
      EvidenceKind::kRemapPending, EvidenceKind::kRemapFailed, EvidenceKind::kRetirementPending,
      EvidenceKind::kHeat,         EvidenceKind::kMemoryHeat,  EvidenceKind::kSlowdown,
      EvidenceKind::kPcieWidth,    EvidenceKind::kNvlinkDown,  EvidenceKind::kNotAnswering,
      EvidenceKind::kLost,         EvidenceKind::kSlow};
  std::vector<Evidence> before;
  for (const EvidenceKind kind : kinds) before.push_back(kept(kind));
  watch_ = GpuWatch(before);
  GpuReading good = at(40);
  good.memory_temperature_c = 50;
  good.throttle_reasons = 0;
  model::GpuSlowMetrics& slow = good.slow.emplace();
  slow.remap_pending = slow.remap_failed = slow.retirement_pending = false;
  slow.pcie_width = 16;
  slow.nvlinks_active = 18;

  std::vector<EvidenceKind> over;
  const auto note = [&](const std::vector<Evidence>& told) {
    for (const Evidence& piece : told) {
      EXPECT_TRUE(piece.is_over) << to_string(piece.kind);
      over.push_back(piece.kind);
    }
  };
  for (int i = 0; i < 20; ++i) note(read(good));
  note(watch_.take_speed(false, 100, now_));

  std::ranges::sort(over);
  EXPECT_EQ(over, kinds);
}

TEST_F(GpuWatchTest, TheLatestPieceSaysWhatLastsInWhateverOrderPiecesAreKept) {
  // It began, was over, and began again at once: both begins are one piece, where the first was.
  Evidence begins = kept(EvidenceKind::kRemapPending);
  begins.at = now_.at;
  begins.last = now_.at + base::seconds(4);
  Evidence over = kept(EvidenceKind::kRemapPending, true);
  over.at = over.last = now_.at + base::seconds(2);
  watch_ = GpuWatch(std::vector{begins, over});
  EXPECT_TRUE(read(with_slow({.remap_pending = true})).empty()) << "it is known";
  expect_one(read(with_slow({.remap_pending = false})), EvidenceKind::kRemapPending, 0, true);
}

TEST_F(GpuWatchTest, LinksThatAreStillDownAfterARestartAreNotOver) {
  read(with_slow({.nvlinks_active = 18}));
  const auto down = read(with_slow({.nvlinks_active = 16}));
  expect_one(down, EvidenceKind::kNvlinkDown, 2);
  watch_ = GpuWatch(down);
  EXPECT_TRUE(read(with_slow({.nvlinks_active = 16})).empty());
  expect_one(read(with_slow({.nvlinks_active = 18})), EvidenceKind::kNvlinkDown, 0, true);
}

TEST_F(GpuWatchTest, WhatHadEndedBeginsAnew) {
  const std::vector<Evidence> before{kept(EvidenceKind::kRemapPending),
                                     kept(EvidenceKind::kRemapPending, true)};
  watch_ = GpuWatch(before);
  model::GpuSlowMetrics slow;
  slow.remap_pending = true;
  expect_one(read(with_slow(slow)), EvidenceKind::kRemapPending);
}

// ---- events

TEST_F(GpuWatchTest, AnXidHasItsCodeAndTheInstance) {
  const auto told =
      watch_.take(GpuEvent{0, "a", GpuEventKind::kXid, 8, 94, std::uint32_t{3}, 1}, now_);
  expect_one(told, EvidenceKind::kXid);
  EXPECT_EQ(told[0].code, 94U);
  EXPECT_EQ(told[0].gpu_instance, 3U);
  EXPECT_EQ(told[0].source, EvidenceSource::kDriver);
}

TEST_F(GpuWatchTest, EventsInARowAreOnePieceWithTheirCount) {
  const auto told = tell(GpuEventKind::kXid, 45, 10'000);
  expect_one(told, EvidenceKind::kXid);
  EXPECT_EQ(told[0].count, 10'000U);
}

TEST_F(GpuWatchTest, EveryEventThatSpeaksOfHealthIsTold) {
  expect_one(tell(GpuEventKind::kUnavailable), EvidenceKind::kUnavailable);
  expect_one(tell(GpuEventKind::kPoison), EvidenceKind::kPoison);
  expect_one(tell(GpuEventKind::kMemoryRetired), EvidenceKind::kRowsRemapped, 1);
  expect_one(tell(GpuEventKind::kEccCorrected), EvidenceKind::kEccCorrected, 1);
  expect_one(tell(GpuEventKind::kEccUncorrected, 3), EvidenceKind::kEccUncorrected, 3);
  const auto told = tell(GpuEventKind::kRecoveryAction, 2);
  expect_one(told, EvidenceKind::kRecoveryAction);
  EXPECT_EQ(told[0].code, 2U);
  EXPECT_TRUE(tell(GpuEventKind::kClock).empty());
  EXPECT_TRUE(tell(GpuEventKind::kMigChanged).empty());
  EXPECT_TRUE(tell(GpuEventKind::kOther).empty());
}

TEST_F(GpuWatchTest, ErrorsThatAnEventToldAreNotCountedTwice) {
  GpuReading gpu;
  gpu.ecc_uncorrected = 1;
  read(gpu);
  tell(GpuEventKind::kEccUncorrected);
  gpu.ecc_uncorrected = 4;
  expect_one(read(gpu), EvidenceKind::kEccUncorrected, 2);
  gpu.ecc_uncorrected = 5;
  expect_one(read(gpu), EvidenceKind::kEccUncorrected, 1);
}

TEST_F(GpuWatchTest, AnEventThatNoCounterShowsHidesNothingLater) {
  GpuReading gpu;
  gpu.ecc_uncorrected = 1;
  read(gpu);
  tell(GpuEventKind::kEccUncorrected);
  pass(120);
  read(gpu);
  gpu.ecc_uncorrected = 2;
  expect_one(read(gpu), EvidenceKind::kEccUncorrected, 1);
}

TEST_F(GpuWatchTest, TheRecoveryActionIsToldWhenItChanges) {
  GpuReading gpu;
  gpu.recovery_action = model::RecoveryAction::kNone;
  EXPECT_TRUE(read(gpu).empty());
  tell(GpuEventKind::kRecoveryAction, 1);
  EXPECT_TRUE(watch_.take({gpu, now_.boot_ns - 1, false}, build_, limits_, now_).empty())
      << "it began before the event";
  gpu.recovery_action = model::RecoveryAction::kGpuReset;
  EXPECT_TRUE(read(gpu).empty());
  gpu.recovery_action = model::RecoveryAction::kNone;
  auto told = read(gpu);
  expect_one(told, EvidenceKind::kRecoveryAction);
  EXPECT_EQ(told[0].code, 0U);
  gpu.recovery_action = model::RecoveryAction::kNodeReboot;
  told = read(gpu);
  expect_one(told, EvidenceKind::kRecoveryAction);
  EXPECT_EQ(told[0].code, 2U);
  EXPECT_EQ(told[0].source, EvidenceSource::kReading);
}

TEST_F(GpuWatchTest, ClocksOfTheDayThatJumpChangeNoTimes) {
  read(at(90));
  now_.at = base::Instant(1);
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(read(at(70)).empty()) << i;
  expect_one(read(at(70)), EvidenceKind::kHeat, 0, true);
}

}  // namespace
}  // namespace gpu_platform::monitoring
