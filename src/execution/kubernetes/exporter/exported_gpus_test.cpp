#include "execution/kubernetes/exporter/exported_gpus.h"

#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

namespace gpu_platform::execution {
namespace {

// One number of the GPU with the UUID "GPU-1".
std::string line(std::string_view name, std::string_view value) {
  return fmt::format("{}{{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",Hostname=\"n1\"}} {}\n", name,
                     value);
}

model::GpuMetrics gpu_of(const std::string& page) {
  const auto gpus = gpus_of_page(page);
  const auto found = gpus.find("GPU-1");
  return found == gpus.end() ? model::GpuMetrics() : found->second;
}

TEST(ExportedGpus, AreInTheUnitsOfThePlatform) {
  const model::GpuMetrics gpu =
      gpu_of(line("DCGM_FI_DEV_GPU_UTIL", "97") + line("DCGM_FI_DEV_FB_USED", "1024") +
             line("DCGM_FI_DEV_GPU_TEMP", "61") + line("DCGM_FI_DEV_POWER_USAGE", "412.345600") +
             line("DCGM_FI_DEV_SM_CLOCK", "1980") + line("DCGM_FI_PROF_SM_ACTIVE", "0.8714") +
             line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "1.000000") +
             line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "3526847129") +
             line("DCGM_FI_DEV_ROW_REMAP_FAILURE", "0") +
             line("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "2"));
  EXPECT_EQ(gpu.utilization_percent, 97U);
  EXPECT_EQ(gpu.memory_used, base::kGiB);
  EXPECT_EQ(gpu.temperature_c, 61);
  EXPECT_EQ(gpu.power, base::Milliwatts(412'346));
  EXPECT_EQ(gpu.clock_sm_mhz, 1980U);
  EXPECT_EQ(gpu.sm_active, 871U);
  EXPECT_EQ(gpu.tensor_active, 1000U);
  ASSERT_TRUE(gpu.slow);
  EXPECT_EQ(gpu.slow->energy_mj, 3'526'847'129U);
  EXPECT_EQ(gpu.slow->remap_failed, false);
  EXPECT_EQ(gpu.slow->remapped_rows_uncorrected, 2U);
  EXPECT_EQ(gpu.memory_temperature_c, std::nullopt);
}

TEST(ExportedGpus, HaveNewerNamesToo) {
  const model::GpuMetrics gpu = gpu_of(line("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "4") +
                                       line("DCGM_FI_PROF_PCIE_TX_BYTES", "2500000"));
  EXPECT_EQ(gpu.throttle_reasons, model::kThrottlePowerCap);
  ASSERT_TRUE(gpu.slow);
  EXPECT_EQ(gpu.slow->pcie_sent_bytes_per_second, 2'500'000U);
}

TEST(ExportedGpus, LackWhatDcgmDoesNotKnow) {
  for (const std::string_view value :
       {"2147483632", "2147483633", "2147483634", "2147483635", "140737488355328",
        "9223372036854775794", "9.223372036854776e+18", "NaN", "+Inf", "-Inf", "-1", "101"}) {
    EXPECT_TRUE(gpus_of_page(line("DCGM_FI_DEV_GPU_UTIL", value)).empty()) << value;
  }
  EXPECT_TRUE(gpus_of_page(line("DCGM_FI_PROF_SM_ACTIVE", "1.1")).empty());
  EXPECT_TRUE(gpus_of_page(line("DCGM_FI_DEV_ROW_REMAP_PENDING", "2")).empty());
  EXPECT_EQ(gpu_of(line("DCGM_FI_DEV_GPU_TEMP", "-3")).temperature_c, -3) << "it may be cold";
}

TEST(ExportedGpus, AreWholeOnesWithAUuid) {
  EXPECT_TRUE(gpus_of_page("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 5\n").empty());
  EXPECT_TRUE(gpus_of_page("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\",GPU_I_PROFILE=\"1g.10gb\","
                           "GPU_I_ID=\"7\"} 0.5\n")
                  .empty());
  EXPECT_TRUE(gpus_of_page("DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-1\"} 79\n").empty());
  EXPECT_TRUE(gpus_of_page("utilization_percent{UUID=\"GPU-1\"} 79\n").empty());
  EXPECT_TRUE(gpus_of_page("<html><body>404 page not found</body></html>").empty());
}

TEST(ExportedGpus, CountTheFirstNumberOfSeveralPods) {
  const std::string_view form =
      "DCGM_FI_DEV_GPU_UTIL{{UUID=\"GPU-1\",namespace=\"ml\",pod=\"{}\"}} {}\n";
  const std::string page =
      fmt::format(fmt::runtime(form), "a", 40) + fmt::format(fmt::runtime(form), "b", 41);
  EXPECT_EQ(gpu_of(page).utilization_percent, 40U);
}

TEST(ExportedGpus, HaveALimit) {
  std::string page;
  for (std::size_t i = 0; i < kMaxExportedGpus + 5; ++i) {
    page += fmt::format("DCGM_FI_DEV_GPU_UTIL{{UUID=\"GPU-{}\"}} 1\n", i);
  }
  page += "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-0\"} 30\n";
  const auto gpus = gpus_of_page(page);
  EXPECT_EQ(gpus.size(), kMaxExportedGpus);
  EXPECT_EQ(gpus.at("GPU-0").temperature_c, 30);
}

}  // namespace
}  // namespace gpu_platform::execution
