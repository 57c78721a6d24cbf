#include "bin/power_limits.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

using LimitKind = LimitChange::Kind;

hardware::GpuDescription h100(std::int64_t milliwatts = 700'000) {
  hardware::GpuDescription gpu;
  gpu.uuid = "GPU-1";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.memory = base::kGiB * 80;
  gpu.power_limit = base::Milliwatts(milliwatts);
  gpu.power_limit_min = base::Milliwatts(200'000);
  gpu.power_limit_max = base::Milliwatts(700'000);
  return gpu;
}

std::int64_t set_to(const std::vector<config::PowerLimit>& wanted,
                    const hardware::GpuDescription& gpu = h100()) {
  const LimitChange change = limit_change(wanted, "n1", gpu, {});
  return change.kind == LimitKind::kSet ? change.limit.value() : -1;
}

TEST(PowerLimits, NodeGoesBeforeTypeAndTypeBeforeFamily) {
  EXPECT_EQ(set_to({{"H100", 500}}), 500'000);
  EXPECT_EQ(set_to({{"H100", 500}, {"H100-80GB", 450}}), 450'000);
  EXPECT_EQ(set_to({{"H100", 500}, {"H100-80GB", 450}, {"n1", 400}}), 400'000);
  EXPECT_EQ(set_to({{"A100", 300}, {"n2", 400}}), -1);
}

TEST(PowerLimits, EntriesThatNoGpuFitsAreNamed) {
  const GpusByNode nodes{{"n1", {h100()}}, {"n2", {}}};
  const std::vector<config::PowerLimit> wanted{{"A100", 300},      {"H100", 500},
                                               {"H100-80GB", 450}, {"H200-141GB", 60},
                                               {"n1", 400},        {"n2", 400}};
  EXPECT_EQ(unused_limits(wanted, nodes), (std::vector<std::string>{"A100", "H200-141GB", "n2"}));
  EXPECT_TRUE(unused_limits({}, {}).empty());
}

TEST(PowerLimits, ValueIsCutToWhatTheBoardAllows) {
  const LimitChange low = limit_change({{"H100", 100}}, "n1", h100(), {});
  EXPECT_EQ(low.kind, LimitKind::kSet);
  EXPECT_EQ(low.limit, base::Milliwatts(200'000));
  EXPECT_EQ(low.cut_watts, 100u);
  const LimitChange high = limit_change({{"H100", 900}}, "n1", h100(), {});
  EXPECT_EQ(high.kind, LimitKind::kIsSet);
  EXPECT_EQ(high.cut_watts, 900u);
  EXPECT_EQ(limit_change({{"H100", 500}}, "n1", h100(), {}).cut_watts, std::nullopt);
}

TEST(PowerLimits, LimitThatIsSetOrUnknownIsLeftAlone) {
  EXPECT_EQ(limit_change({{"H100", 500}}, "n1", h100(500'000), {}).kind, LimitKind::kIsSet);
  hardware::GpuDescription gpu = h100();
  gpu.power_limit.reset();
  EXPECT_EQ(limit_change({{"H100", 500}}, "n1", gpu, {}).kind, LimitKind::kNone);
  EXPECT_EQ(limit_change({}, "n1", h100(), {}).kind, LimitKind::kNone);
}

TEST(PowerLimits, GpuWithoutAnEntryGetsItsFormerLimitBack) {
  const ChangedLimits changed{{"GPU-1", {base::Milliwatts(650'000), base::Milliwatts(500'000)}}};
  const LimitChange back = limit_change({}, "n1", h100(500'000), changed);
  EXPECT_EQ(back.kind, LimitKind::kReturn);
  EXPECT_EQ(back.limit, base::Milliwatts(650'000));
  EXPECT_EQ(limit_change({}, "n1", h100(600'000), changed).kind, LimitKind::kForget)
      << "an operator has set it since";
}

TEST(PowerLimits, FormerLimitsAreReadAsWritten) {
  const ChangedLimits changed{{"GPU-1", {base::Milliwatts(700'000), base::Milliwatts(500'000)}},
                              {"GPU-2", {base::Milliwatts(400'000), base::Milliwatts(300'000)}}};
  EXPECT_EQ(parse_changed_limits(to_text(changed)), changed);
  EXPECT_EQ(parse_changed_limits("GPU-1 700000\nnonsense\n\nGPU-2 0 5\n"), ChangedLimits());
}

}  // namespace
}  // namespace gpu_platform::bin
