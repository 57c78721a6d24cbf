#include "cli/text/monitor_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/text/use_text.h"

namespace gpu_platform::cli {
namespace {

v1::MetricUse metric(double min, double max, double mean, double deviation = 0) {
  v1::MetricUse out;
  out.set_min(min);
  out.set_max(max);
  out.set_mean(mean);
  out.set_samples(45);
  out.set_deviation(deviation);
  return out;
}

// The run of the document's example: 45 readings of an A100 in 45.2 s.
v1::AttemptUse example() {
  constexpr double kMib = 1024 * 1024;
  v1::AttemptUse use;
  use.set_attempt(1);
  use.set_duration_seconds(45.2);
  use.set_interval_seconds(1);
  use.set_over(true);
  v1::UseOnGpu& gpu = *use.add_gpus();
  gpu.set_node("n1");
  gpu.set_uuid("GPU-a");
  gpu.set_model("NVIDIA A100-SXM4-80GB");
  gpu.set_samples(45);
  gpu.set_expected_samples(45);
  *gpu.mutable_utilization_percent() = metric(78, 95, 87.3, 4);
  *gpu.mutable_memory_used_bytes() = metric(15234 * kMib, 15678 * kMib, 15456.2 * kMib);
  *gpu.mutable_memory_percent() = metric(18.5, 19.1, 18.8);
  *gpu.mutable_temperature_c() = metric(56, 62, 59.1);
  *gpu.mutable_power_watts() = metric(245, 280, 265.3, 10);
  return use;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(MonitorJson, IsTheDocumentsExampleFieldByField) {
  const Json expected = Json::parse(R"({
    "monitoring_duration_seconds": 45.2,
    "sample_count": 45,
    "gpu_stats": {
      "0": {
        "name": "NVIDIA A100-SXM4-80GB",
        "utilization": {"min": 78.0, "max": 95.0, "mean": 87.3, "samples": 45},
        "memory_used_mb": {"min": 15234.0, "max": 15678.0, "mean": 15456.2},
        "memory_usage_percent": {"min": 18.5, "max": 19.1, "mean": 18.8},
        "temperature_c": {"min": 56.0, "max": 62.0, "mean": 59.1},
        "power_draw_w": {"min": 245.0, "max": 280.0, "mean": 265.3}
      }
    }
  })");
  Json document = monitor_json(example());
  EXPECT_EQ(keys_of(document), (std::vector<std::string>{"monitoring_duration_seconds",
                                                         "sample_count", "gpu_stats", "extra"}));
  document.erase("extra");
  EXPECT_EQ(document.dump(), expected.dump()) << "counts are whole numbers, and values are not";
}

TEST(MonitorJson, HasTheRestBelowExtra) {
  v1::AttemptUse use = example();
  v1::UseOnGpu& gpu = *use.mutable_gpus(0);
  gpu.set_samples(40);
  gpu.mutable_utilization_percent()->set_p95(94);
  gpu.set_energy_joules(12'000);
  gpu.set_energy_from("counter");
  v1::ThrottleTime& held = *gpu.add_throttled();
  held.set_reason("POWER_CAP");
  held.set_seconds(3.5);
  const Json document = monitor_json(use);
  EXPECT_EQ(document["extra"]["interval_seconds"], 1.0);
  const Json& extra = document["extra"]["gpus"]["0"];
  EXPECT_EQ(extra["energy_joules"], 12'000.0);
  EXPECT_EQ(extra["energy_from"], "counter");
  EXPECT_EQ(extra["throttled_seconds"]["POWER_CAP"], 3.5);
  EXPECT_EQ(extra["samples_share"], 0.889);
  EXPECT_EQ(extra["metrics"]["utilization_percent"]["p95"], 94.0);
  EXPECT_EQ(extra["metrics"]["utilization_percent"]["deviation"], 4.0);
  EXPECT_TRUE(extra["attributed_by"].is_null());
}

TEST(MonitorJson, SaysNullOfWhatWasNotRead) {
  v1::AttemptUse use;
  use.add_gpus()->set_model("NVIDIA T4");
  const Json document = monitor_json(use);
  EXPECT_EQ(document["sample_count"], 0);
  EXPECT_TRUE(document["gpu_stats"]["0"]["utilization"].is_null());
  EXPECT_TRUE(document["gpu_stats"]["0"]["power_draw_w"].is_null());
}

TEST(MonitorJson, NamesGpusOfSeveralNodesApart) {
  v1::AttemptUse use;
  for (const char* node : {"n1", "n2"}) use.add_gpus()->set_node(node);
  v1::UseOnGpu& third = *use.add_gpus();
  third.set_node("n2");
  third.set_index(1);
  EXPECT_EQ(gpu_names(use), (std::vector<std::string>{"n1:0", "n2:0", "1"}));
}

const Json* row_of(const Json& diff, const std::string& metric) {
  for (const Json& row : diff["metrics"]) {
    if (row["metric"] == metric) return &row;
  }
  return nullptr;
}

TEST(MonitorDiff, TellsADifferenceFromNoise) {
  const Json before = monitor_json(example());
  v1::AttemptUse changed = example();
  // The standard error of each mean is 4 / sqrt(45) = 0.6, so of the difference 0.84.
  *changed.mutable_gpus(0)->mutable_utilization_percent() = metric(78, 95, 88.3, 4);
  *changed.mutable_gpus(0)->mutable_power_watts() = metric(245, 300, 285.3, 10);
  const Json diff = diff_json(before, monitor_json(changed));
  const Json* const utilization = row_of(diff, "utilization_percent");
  ASSERT_NE(utilization, nullptr) << diff;
  EXPECT_NEAR((*utilization)["difference"].get<double>(), 1, 1e-9);
  EXPECT_NEAR((*utilization)["noise"].get<double>(), 1.96 * 0.8433, 0.001);
  EXPECT_EQ((*utilization)["within_noise"], true);
  const Json* const power = row_of(diff, "power_watts");
  ASSERT_NE(power, nullptr) << diff;
  EXPECT_EQ((*power)["within_noise"], false);
}

TEST(MonitorDiff, OfADocumentWithoutDeviationsKnowsNoNoise) {
  Json before = monitor_json(example());
  before.erase("extra");
  const Json diff = diff_json(before, before);
  const Json* const power = row_of(diff, "power_draw_w");
  ASSERT_NE(power, nullptr) << diff;
  EXPECT_EQ((*power)["difference"], 0.0);
  EXPECT_TRUE((*power)["noise"].is_null());
  EXPECT_TRUE((*power)["within_noise"].is_null());
  EXPECT_NE(diff_page(before, before, {}).find("not known"), std::string::npos);
}

TEST(UsePage, ShowsEachGpuAndWhatHeldItsClocksDown) {
  v1::AttemptUse use = example();
  v1::ThrottleTime& held = *use.mutable_gpus(0)->add_throttled();
  held.set_reason("POWER_CAP");
  held.set_seconds(3.5);
  const std::string page = use_page(use, {});
  EXPECT_TRUE(page.starts_with("45.2 s, 45 readings, one each 1 s\n")) << page;
  EXPECT_NE(page.find("87.3 (78-95)"), std::string::npos) << page;
  EXPECT_NE(page.find("GPU 0: its clocks were held down: POWER_CAP 3.5 s\n"), std::string::npos)
      << page;
  EXPECT_EQ(page.find("readings came"), std::string::npos) << "all came";
}

TEST(UsePage, SaysThatReadingsAreMissing) {
  v1::AttemptUse use = example();
  use.mutable_gpus(0)->set_expected_samples(90);
  EXPECT_NE(use_page(use, {}).find("GPU 0: 45 of 90 readings came\n"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::cli
