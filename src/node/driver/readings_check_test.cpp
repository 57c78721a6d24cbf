#include "node/driver/readings_check.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using hardware::GpuCondition;
using hardware::GpuReading;
using model::GpuSlowMetrics;

TEST(ReadingsCheck, FindsNothingOnASoundGpu) {
  GpuReading reading;
  EXPECT_EQ(objection_to_readings(reading, {}), "");
  reading.temperature_c = 35;
  reading.ecc_uncorrected = 0;
  reading.ecc_corrected = 7;
  reading.recovery_action = model::RecoveryAction::kNone;
  GpuSlowMetrics slow;
  slow.remapped_rows_uncorrected = 3;
  slow.remap_pending = false;
  slow.remap_failed = false;
  EXPECT_EQ(objection_to_readings(reading, slow), "");
}

TEST(ReadingsCheck, SaysWhatForbidsWork) {
  GpuReading lost;
  lost.condition = GpuCondition::kLost;
  lost.problem = "GPU is lost (15)";
  EXPECT_EQ(objection_to_readings(lost, {}), "it does not answer: GPU is lost (15)");
  GpuReading asks;
  asks.recovery_action = model::RecoveryAction::kGpuReset;
  EXPECT_EQ(objection_to_readings(asks, {}), "the driver asks for GPU_RESET");
  GpuReading ecc;
  ecc.ecc_uncorrected = 2;
  EXPECT_EQ(objection_to_readings(ecc, {}),
            "2 uncorrected memory errors since the driver was loaded");
  GpuReading hot;
  hot.temperature_c = 92;
  EXPECT_EQ(objection_to_readings(hot, {}), "it is at 92 degrees Celsius without work");
  GpuSlowMetrics slow;
  slow.retirement_pending = true;
  EXPECT_NE(objection_to_readings({}, slow), "");
  slow = {};
  slow.remap_pending = true;
  EXPECT_NE(objection_to_readings({}, slow), "");
  slow.remap_failed = true;
  EXPECT_EQ(objection_to_readings({}, slow), "a row of its memory could not be replaced");
}

}  // namespace
}  // namespace gpu_platform::node
