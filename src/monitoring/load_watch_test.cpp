#include "monitoring/load_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace gpu_platform::monitoring {
namespace {

constexpr std::chrono::steady_clock::time_point kBegin{std::chrono::hours(1)};

hardware::GpuReading reading(std::uint32_t percent, std::int64_t used_gib) {
  hardware::GpuReading gpu;
  gpu.utilization_percent = percent;
  gpu.memory_total = base::kGiB * 80;
  gpu.memory_used = base::kGiB * used_gib;
  return gpu;
}

TEST(LoadWatch, TellsInStepsRoundedAgainstTheGpu) {
  LoadWatch watch;
  hardware::GpuReading gpu = reading(31, 10);
  gpu.memory_reserved = base::kMiB * 100;
  watch.take(gpu, kBegin);
  EXPECT_TRUE(watch.has_moved(true));
  const auto load = watch.tell();
  ASSERT_TRUE(load);
  EXPECT_EQ(load->utilization_percent, 35U);
  EXPECT_EQ(load->memory_free, base::kGiB * 69 + base::kMiB * 768);
  EXPECT_FALSE(watch.has_moved(true));
}

TEST(LoadWatch, ABurstOfOneReadingIsNotTold) {
  LoadWatch watch;
  watch.take(reading(10, 10), kBegin);
  watch.tell();
  watch.take(reading(100, 10), kBegin + std::chrono::seconds(5));
  EXPECT_FALSE(watch.has_moved(true));
  for (int i = 2; i <= 60; ++i) watch.take(reading(100, 10), kBegin + std::chrono::seconds(5 * i));
  EXPECT_TRUE(watch.has_moved(true));
  EXPECT_GE(watch.tell()->utilization_percent, 95U);
}

TEST(LoadWatch, MeansAboutAMinuteHoweverOftenTheGpuIsRead) {
  for (const int interval : {1, 5, 15}) {
    LoadWatch watch;
    watch.take(reading(0, 10), kBegin);
    for (int at = interval; at <= 60; at += interval) {
      watch.take(reading(100, 10), kBegin + std::chrono::seconds(at));
    }
    EXPECT_NEAR(watch.tell()->utilization_percent, 65, 5) << interval;
  }
  LoadWatch slow;
  slow.take(reading(0, 10), kBegin);
  slow.take(reading(100, 10), kBegin + std::chrono::seconds(120));
  EXPECT_EQ(slow.tell()->utilization_percent, 100U) << "what is older does not count any more";
}

TEST(LoadWatch, ComesToWhatIsReadAgainAndAgain) {
  LoadWatch watch;
  watch.take(reading(90, 10), kBegin);
  for (int i = 1; i <= 600; ++i) watch.take(reading(0, 10), kBegin + std::chrono::seconds(i));
  EXPECT_EQ(watch.tell()->utilization_percent, 0U);
}

TEST(LoadWatch, OfAGpuThatAJobHoldsKnowsTheMemoryOfOthers) {
  LoadWatch watch;
  watch.take(reading(10, 0), kBegin);
  watch.tell();
  watch.take_held(reading(100, 70), base::kGiB * 30);
  EXPECT_TRUE(watch.has_moved(true));
  EXPECT_EQ(watch.tell(), (model::GpuLoad{10, base::kGiB * 50}));
  watch.take_held(reading(100, 70), std::nullopt);
  EXPECT_FALSE(watch.has_moved(true)) << "the driver does not say it";
}

TEST(LoadWatch, OfAGpuThatWasAlwaysHeldKnowsNothing) {
  LoadWatch watch;
  watch.take_held(reading(100, 70), base::kGiB * 30);
  EXPECT_FALSE(watch.tell());
}

TEST(LoadWatch, TakesWhatCannotBe) {
  constexpr base::Bytes kHuge{std::numeric_limits<std::int64_t>::max()};
  LoadWatch watch;
  hardware::GpuReading gpu = reading(4000, 10);
  gpu.memory_used = gpu.memory_reserved = kHuge;
  watch.take(gpu, kBegin);
  EXPECT_EQ(watch.tell(), (model::GpuLoad{100, base::Bytes(0)}));
}

TEST(LoadWatch, KnowsNothingBeforeAReading) {
  LoadWatch watch;
  EXPECT_FALSE(watch.has_moved(true));
  EXPECT_FALSE(watch.tell());
  hardware::GpuReading silent;
  silent.utilization_percent = 5;  // and no memory
  watch.take(silent, kBegin);
  EXPECT_FALSE(watch.has_moved(true));
}

TEST(LoadWatch, IsToldAnewWhenItIsNotWantedAnyMore) {
  LoadWatch watch;
  watch.take(reading(10, 10), kBegin);
  watch.tell();
  EXPECT_TRUE(watch.has_moved(false));
  EXPECT_FALSE(watch.forget());
  EXPECT_FALSE(watch.has_moved(false));
  EXPECT_TRUE(watch.has_moved(true));
}

}  // namespace
}  // namespace gpu_platform::monitoring
