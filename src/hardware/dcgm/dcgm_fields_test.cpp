#include "hardware/dcgm/dcgm_fields.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpu_platform::hardware {
namespace {

using model::GpuMetrics;

DcgmFieldValue real_value(std::uint16_t field, double number) {
  DcgmFieldValue value{};
  value.field = field;
  value.type = kDcgmReal;
  value.value.real = number;
  return value;
}

DcgmFieldValue number_value(std::uint16_t field, std::int64_t number) {
  DcgmFieldValue value{};
  value.field = field;
  value.type = kDcgmNumber;
  value.value.number = number;
  return value;
}

GpuMetrics metrics_of(const DcgmFieldValue& value) {
  GpuMetrics metrics;
  take_dcgm_value(value, metrics);
  return metrics;
}

TEST(DcgmFields, AreTheMetricsOfTheirNumbers) {
  EXPECT_EQ(metrics_of(real_value(1001, 0.5)).graphics_active, 500U);
  EXPECT_EQ(metrics_of(real_value(1002, 0.0)).sm_active, 0U);
  EXPECT_EQ(metrics_of(real_value(1003, 1.0)).sm_occupancy, 1000U);
  EXPECT_EQ(metrics_of(real_value(1004, 0.1234)).tensor_active, 123U);
  EXPECT_EQ(metrics_of(real_value(1005, 0.25)).dram_active, 250U);
  EXPECT_EQ(metrics_of(real_value(1006, 0.001)).fp64_active, 1U);
  EXPECT_EQ(metrics_of(real_value(1007, 0.2)).fp32_active, 200U);
  EXPECT_EQ(metrics_of(real_value(1008, 0.75)).fp16_active, 750U);
  EXPECT_EQ(metrics_of(number_value(140, 71)).memory_temperature_c, 71);
  const GpuMetrics energy = metrics_of(number_value(156, 123'456));
  ASSERT_TRUE(energy.slow);
  EXPECT_EQ(energy.slow->energy_mj, 123'456U);
}

TEST(DcgmFields, ThatDcgmDoesNotHaveAreNotKnown) {
  for (int reason = 0; reason < 16; ++reason) {
    EXPECT_EQ(metrics_of(real_value(1001, kDcgmBlankReal + reason)), GpuMetrics{}) << reason;
    EXPECT_EQ(metrics_of(number_value(140, kDcgmBlankNumber + reason)), GpuMetrics{}) << reason;
    EXPECT_EQ(metrics_of(number_value(156, kDcgmBlankNumber + reason)), GpuMetrics{}) << reason;
  }
  DcgmFieldValue refused = number_value(140, 71);
  refused.status = -16;
  EXPECT_EQ(metrics_of(refused), GpuMetrics{});
}

TEST(DcgmFields, ThatCannotBeAreLeftOut) {
  EXPECT_EQ(metrics_of(real_value(1001, std::numeric_limits<double>::quiet_NaN())), GpuMetrics{});
  EXPECT_EQ(metrics_of(real_value(1001, -0.1)), GpuMetrics{});
  EXPECT_EQ(metrics_of(real_value(1001, 1.01)), GpuMetrics{});
  EXPECT_EQ(metrics_of(number_value(1001, 1)), GpuMetrics{}) << "of another type";
  EXPECT_EQ(metrics_of(real_value(140, 71.0)), GpuMetrics{}) << "of another type";
  EXPECT_EQ(metrics_of(number_value(140, 0)), GpuMetrics{}) << "a memory without a sensor";
  EXPECT_EQ(metrics_of(number_value(140, 5'000)), GpuMetrics{});
  EXPECT_EQ(metrics_of(number_value(156, -1)), GpuMetrics{});
  EXPECT_EQ(metrics_of(number_value(1011, 7)), GpuMetrics{}) << "no metric of ours";
}

TEST(DcgmFields, FillGapsAndNothingElse) {
  GpuMetrics more;
  more.sm_active = 900;
  more.tensor_active = 400;
  more.memory_temperature_c = 80;
  more.slow.emplace().energy_mj = 5;
  GpuMetrics reading;
  reading.sm_active = 111;
  reading.temperature_c = 50;
  reading.slow.emplace().pcie_width = 16;

  fill_gaps(more, reading);

  EXPECT_EQ(reading.sm_active, 111U) << "NVML's goes first";
  EXPECT_EQ(reading.tensor_active, 400U);
  EXPECT_EQ(reading.memory_temperature_c, 80);
  EXPECT_EQ(reading.temperature_c, 50);
  EXPECT_EQ(reading.slow->energy_mj, 5U);
  EXPECT_EQ(reading.slow->pcie_width, 16U);
}

TEST(DcgmFields, DoNotMakeSlowReadingsThatWereNotTaken) {
  GpuMetrics more;
  more.slow.emplace().energy_mj = 5;
  GpuMetrics reading;

  fill_gaps(more, reading);

  EXPECT_EQ(reading, GpuMetrics{});
}

}  // namespace
}  // namespace gpu_platform::hardware
