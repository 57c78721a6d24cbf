#include "monitoring/load_watch.h"

#include <gtest/gtest.h>

namespace gpu_platform::monitoring {
namespace {

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
  watch.take(gpu);
  EXPECT_TRUE(watch.has_moved(true));
  const auto load = watch.tell();
  ASSERT_TRUE(load);
  EXPECT_EQ(load->utilization_percent, 35U);
  EXPECT_EQ(load->memory_free, base::kGiB * 69 + base::kMiB * 768);
  EXPECT_FALSE(watch.has_moved(true));
}

TEST(LoadWatch, ABurstOfOneReadingIsNotTold) {
  LoadWatch watch;
  watch.take(reading(10, 10));
  watch.tell();
  watch.take(reading(100, 10));
  EXPECT_FALSE(watch.has_moved(true));
  for (int i = 0; i < 40; ++i) watch.take(reading(100, 10));
  EXPECT_TRUE(watch.has_moved(true));
  EXPECT_GE(watch.tell()->utilization_percent, 95U);
}

TEST(LoadWatch, KnowsNothingBeforeAReading) {
  LoadWatch watch;
  EXPECT_FALSE(watch.has_moved(true));
  EXPECT_FALSE(watch.tell());
  hardware::GpuReading silent;
  silent.utilization_percent = 5;  // and no memory
  watch.take(silent);
  EXPECT_FALSE(watch.has_moved(true));
}

TEST(LoadWatch, IsToldAnewWhenItIsNotWantedAnyMore) {
  LoadWatch watch;
  watch.take(reading(10, 10));
  watch.tell();
  EXPECT_TRUE(watch.has_moved(false));
  EXPECT_FALSE(watch.forget());
  EXPECT_FALSE(watch.has_moved(false));
  EXPECT_TRUE(watch.has_moved(true));
}

}  // namespace
}  // namespace gpu_platform::monitoring
