#include "node/probe/acceptance/gpu_report.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using hardware::GpuDescription;
using hardware::GpuReading;

GpuDescription gpu(std::uint32_t index, const std::string& uuid) {
  GpuDescription out;
  out.index = index;
  out.uuid = uuid;
  out.model = "NVIDIA H200";
  out.pci_address = "00000000:1B:00.0";
  out.memory = base::kMiB * 143771;
  return out;
}

std::vector<std::string> differences(const std::vector<Comparison>& all) {
  std::vector<std::string> out;
  for (const Comparison& one : all) {
    if (!one.agrees) out.push_back(one.datum);
  }
  return out;
}

TEST(GpuReport, FindsNoDifferenceBetweenEquals) {
  GpuDescription theirs = gpu(0, "GPU-a");
  theirs.pci_address = "00000000:1b:00.0";
  GpuDescription ours = gpu(0, "GPU-a");
  ours.memory = *ours.memory + base::Bytes(4096);  // nvidia-smi writes whole MiB

  EXPECT_EQ(differences(compare_descriptions({ours}, {theirs})), std::vector<std::string>{});
}

TEST(GpuReport, NamesEachDifference) {
  GpuDescription theirs = gpu(1, "GPU-a");
  theirs.model = "Tesla T4";
  theirs.memory = base::kMiB;

  EXPECT_EQ(differences(compare_descriptions({gpu(0, "GPU-a")}, {theirs})),
            (std::vector<std::string>{"index", "model", "memory"}));
}

TEST(GpuReport, CountsAGpuThatOneSideLacks) {
  EXPECT_EQ(differences(compare_descriptions({gpu(0, "GPU-a")}, {gpu(0, "GPU-b")})),
            (std::vector<std::string>{"UUID", "UUID"}));
}

TEST(GpuReport, DoesNotHoldSilenceAgainstASource) {
  GpuDescription theirs = gpu(0, "GPU-a");
  theirs.model.reset();
  const auto all = compare_descriptions({gpu(0, "GPU-a")}, {theirs});

  EXPECT_EQ(differences(all), std::vector<std::string>{});
  EXPECT_EQ(all.at(2).theirs, "not known");
}

TEST(GpuReport, LetsMovingValuesMoveALittle) {
  GpuReading ours;
  ours.temperature_c = 40;
  ours.power = base::Milliwatts(100'000);
  ours.memory_used = base::kGiB;
  ours.ecc_corrected = 1;
  GpuReading theirs = ours;
  theirs.temperature_c = 43;
  theirs.power = base::Milliwatts(125'000);
  EXPECT_EQ(differences(compare_readings({ours}, {theirs})), std::vector<std::string>{});

  theirs.temperature_c = 60;
  theirs.memory_used = base::kGiB * 2;
  theirs.ecc_corrected = 2;
  EXPECT_EQ(differences(compare_readings({ours}, {theirs})),
            (std::vector<std::string>{"memory used", "temperature (C)", "ECC corrected"}));
}

TEST(GpuReport, SaysWhyThereIsNothingToReport) {
  const auto report = make_gpu_report({"/nonexistent/libnvidia-ml.so.1", "", ""});

  ASSERT_TRUE(report.contains("problem"));
  EXPECT_TRUE(report["host"].contains("cpus"));
}

TEST(GpuReport, ReadsALibraryAndWhatItSupports) {
  const auto report = make_gpu_report({FAKE_NVML_NEW, "", ""});

  ASSERT_FALSE(report.contains("problem")) << report["problem"];
  ASSERT_EQ(report["gpus"].size(), 2u);
  EXPECT_EQ(report["gpus"][0]["uuid"], "GPU-fake-0");
  EXPECT_EQ(report["links"][0]["kind"], "NVLink");
  EXPECT_EQ(report["events"], "subscribed");
  EXPECT_EQ(report["supports"]["nvml"]["nvmlEventSetWait_v2"], true);
  EXPECT_EQ(report["supports"]["nvml"]["nvmlDeviceSetMemoryLimits_v1"], false);
  EXPECT_EQ(report["supports"]["cuda"]["opened"], false);
}

TEST(ResultsPage, ShowsChecksAndDifferences) {
  const auto results = nlohmann::json::parse(R"({"name": "n1", "date": "2026-11-21",
    "checks": [{"name": "discovery", "result": "passed", "note": "1 GPU"}],
    "report": {"driver": {"version": "550.90.07"}, "gpus": [],
      "compared": {"all": [{"gpu": 0, "datum": "memory", "ours": "1 MiB", "nvidia_smi": "2 MiB",
                            "agrees": false}]}}})");

  const std::string page = results_page(results);

  EXPECT_NE(page.find("| discovery | passed | 1 GPU |"), std::string::npos) << page;
  EXPECT_NE(page.find("| 0 | memory | 1 MiB | 2 MiB | **differs** |"), std::string::npos) << page;
}

TEST(ResultsPage, DoesWithoutPartsThatAreMissing) {
  EXPECT_FALSE(results_page(nlohmann::json::object()).empty());
  EXPECT_FALSE(
      results_page(nlohmann::json::parse(R"({"report": {"problem": "no driver"}})")).empty());
}

}  // namespace
}  // namespace gpu_platform::node
