#include "model/gpu_metrics.h"

#include <set>

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

TEST(GpuMetrics, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> exported;
  std::size_t on_page = 0;
  for_each_gpu_metric([&](const auto& row) {
    names.insert(row.name);
    if (row.exported.name.empty()) return;
    exported.insert(row.exported.name);
    ++on_page;
    EXPECT_FALSE(row.exported.help.empty()) << row.name;
  });
  EXPECT_EQ(names.size(), kGpuMetricCount);
  EXPECT_EQ(exported.size(), on_page);
}

// Two rows of one member would hide that another has none.
TEST(GpuMetrics, AreEachMemberOnce) {
  GpuMetrics gpu;
  std::set<const void*> members;
  for_each_metric_of(gpu, [&](const auto&, auto& member) { members.insert(&member); });
  for_each_metric_of(gpu.slow.emplace(),
                     [&](const auto&, auto& member) { members.insert(&member); });
  EXPECT_EQ(members.size(), kGpuMetricCount);
}

TEST(GpuMetrics, OfSlowReadingsAreAbsentBeforeTheFirst) {
  GpuMetrics gpu;
  const auto replays = gpu_metric("pcie_replays", &GpuSlowMetrics::pcie_replays);
  EXPECT_EQ(replays.of(gpu), std::nullopt);
  gpu.slow.emplace().pcie_replays = 3;
  EXPECT_EQ(replays.of(gpu), 3U);
}

TEST(ThrottleNames, LeaveIdleClocksOutAndNumberUnknownBits) {
  EXPECT_EQ(throttle_names(kThrottleIdle), std::vector<std::string>{});
  EXPECT_EQ(throttle_names(kThrottlePowerCap | kThrottleHeatHardware | 0x1000),
            (std::vector<std::string>{"POWER_CAP", "HEAT_HARDWARE", "0x1000"}));
}

}  // namespace
}  // namespace gpu_platform::model
