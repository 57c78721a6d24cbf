#include "bin/telemetry_part.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "bin/captured_log_fixture.h"
#include "bin/folder_fixture.h"
#include "os/clock.h"

namespace gpu_platform::bin {
namespace {

using telemetry::Frame;

telemetry::MetricId gpu_power() {
  return telemetry::metric_named(telemetry::Of::kGpu, "power_watts").value();
}

telemetry::Frames gpu_reading(base::Instant at) {
  const Frame frame{{telemetry::Of::kGpu, "node", "GPU-0", {}}, at, {{gpu_power(), 300'000}}};
  return std::make_shared<const std::vector<Frame>>(std::vector<Frame>{frame});
}

struct CountingListener final : telemetry::FrameListener {
  void take(const telemetry::Frames& frames) override { count += frames->size(); }
  std::size_t count = 0;
};

TEST(TelemetryPart, KeepsFramesOverARestartAndTellsThemToOthers) {
  const TestFolder folder;
  const CapturedLog log;
  const base::Instant at = os::wall_now();
  CountingListener other;
  {
    const auto part = TelemetryPart::open(folder.path(), {});
    part->add(other);
    part->frames().take(gpu_reading(at));
    part->stop();
  }
  EXPECT_EQ(other.count, 1u);
  const auto part = TelemetryPart::open(folder.path(), {});
  const auto series =
      part->history()->query({.subjects = {{telemetry::Of::kGpu, "node", "GPU-0", {}}},
                              .metrics = {gpu_power()},
                              .from = at,
                              .to = at + base::seconds(1)});
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 1u);
  ASSERT_EQ(series->front().points.size(), 1u);
  EXPECT_EQ(series->front().points.front().sum, 300'000);
  EXPECT_NE(log.lines().front().find("info: telemetry history"), std::string::npos)
      << log.lines().front();
}

TEST(TelemetryPart, HasNoHistoryIfTheSiteWantsNone) {
  const TestFolder folder;
  config::Configuration configuration;
  configuration.telemetry.history = false;
  CountingListener other;
  const auto part = TelemetryPart::open(folder.path(), configuration);
  part->add(other);
  part->frames().take(gpu_reading(os::wall_now()));
  part->stop();
  EXPECT_EQ(other.count, 1u);
  EXPECT_EQ(part->history(), nullptr);
  EXPECT_EQ(part->notes(), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/history.db"));
}

}  // namespace
}  // namespace gpu_platform::bin
