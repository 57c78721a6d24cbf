#include <gtest/gtest.h>

#include "shims/views/sacct_fields.h"

namespace gpu_platform::shims {
namespace {

TEST(GpuUseInSlurmsWords, IsTheMemoryOfAllGpusAndTheirMeanUtilization) {
  v1::Job job;
  EXPECT_EQ(gpu_use_of(job, {}), "") << "nothing was read";
  job.mutable_gpu_use()->set_utilization_percent(86.6);
  EXPECT_EQ(gpu_use_of(job, {}), "gres/gpuutil=87");
  job.mutable_gpu_use()->set_memory_bytes(15ULL << 30);
  EXPECT_EQ(gpu_use_of(job, {}), "gres/gpumem=15G,gres/gpuutil=87");
}

TEST(GpuUseInSlurmsWords, WritesEnergyWithAUnitOrAllDigits) {
  v1::Job job;
  EXPECT_EQ(energy_of(job, false), "");
  job.mutable_gpu_use()->set_energy_joules(999.4);
  EXPECT_EQ(energy_of(job, false), "999");
  job.mutable_gpu_use()->set_energy_joules(12'300);
  EXPECT_EQ(energy_of(job, false), "12.30K");
  EXPECT_EQ(energy_of(job, true), "12300");
  job.mutable_gpu_use()->set_energy_joules(4.5e9);
  EXPECT_EQ(energy_of(job, false), "4.50G");
}

TEST(GpuUseInSlurmsWords, JoinsThePartsThatAreKnown) {
  EXPECT_EQ(joined_use({"cpu=00:00:01", "", "mem=12K"}), "cpu=00:00:01,mem=12K");
  EXPECT_EQ(joined_use({"", ""}), "");
}

}  // namespace
}  // namespace gpu_platform::shims
