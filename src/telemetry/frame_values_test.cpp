#include "telemetry/frame_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace gpu_platform::telemetry {
namespace {

std::optional<std::int64_t> find(const std::vector<Value>& values, Of of, std::string_view name) {
  const auto id = metric_named(of, name);
  EXPECT_TRUE(id) << name;
  const auto found = std::ranges::find(values, id.value_or(0), &Value::metric);
  if (found == values.end()) return std::nullopt;
  return found->value;
}

TEST(FrameValues, HaveEachMetricThatWasRead) {
  model::GpuMetrics gpu;
  gpu.utilization_percent = 0;
  gpu.temperature_c = -5;
  gpu.power = base::Milliwatts(71'000);
  gpu.recovery_action = model::RecoveryAction::kDrainAndReset;
  gpu.slow.emplace().energy_mj = 7;
  gpu.slow->remap_failed = true;

  const auto values = values_of(gpu);

  EXPECT_EQ(values.size(), 6u) << "a metric that was not read is not there";
  EXPECT_EQ(find(values, Of::kGpu, "utilization_percent"), 0);
  EXPECT_EQ(find(values, Of::kGpu, "temperature_c"), -5);
  EXPECT_EQ(find(values, Of::kGpu, "power_watts"), 71'000) << "milliwatts";
  EXPECT_EQ(find(values, Of::kGpu, "recovery_action"), 4);
  EXPECT_EQ(find(values, Of::kGpu, "energy_mj"), 7);
  EXPECT_EQ(find(values, Of::kGpu, "remap_failed"), 1);
  EXPECT_TRUE(std::ranges::is_sorted(values, {}, &Value::metric));
}

TEST(FrameValues, LeaveOutWhatIsTooLarge) {
  model::GpuMetrics gpu;
  gpu.ecc_uncorrected = ~std::uint64_t{0};
  gpu.ecc_corrected = ~std::uint64_t{0} >> 1;

  const auto values = values_of(gpu);

  EXPECT_EQ(values.size(), 1u);
  EXPECT_EQ(find(values, Of::kGpu, "ecc_corrected"), std::int64_t{0x7fff'ffff'ffff'ffff});
}

TEST(FrameValues, OfAHostAreItsOwn) {
  model::HostMetrics host;
  host.cpu_percent = 12;
  host.disk_free = base::kGiB;

  const auto values = values_of(host);

  EXPECT_EQ(values.size(), 2u);
  EXPECT_EQ(find(values, Of::kHost, "cpu_percent"), 12);
  EXPECT_EQ(find(values, Of::kHost, "disk_free_bytes"), base::kGiB.value());
  EXPECT_TRUE(values_of(model::HostMetrics{}).empty());
}

}  // namespace
}  // namespace gpu_platform::telemetry
