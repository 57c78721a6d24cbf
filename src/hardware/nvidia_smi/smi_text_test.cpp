#include "hardware/nvidia_smi/smi_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/prng.h"
#include "hardware/nvidia_smi/smi_xml.h"

namespace gpu_platform::hardware {
namespace {

constexpr const char* kFirst = "GPU-5b6a8a2e-0c1d-4e5f-8a9b-000000000001";

std::string fixture(const std::string& name) {
  std::ifstream in(std::string(SMI_FIXTURES) + "/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

SmiTable table(const std::string& text) {
  auto parsed = SmiTable::parse(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : SmiTable();
}

TEST(SmiText, DescribesGpus) {
  const auto gpus = smi_descriptions(table(fixture("gpus.csv")));

  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].uuid, kFirst);
  EXPECT_EQ(gpus[0].model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpus[0].pci_address, "00000000:1B:00.0");
  EXPECT_EQ(gpus[0].memory, base::kMiB * 81559);
  EXPECT_EQ(gpus[0].compute_capability, (ComputeCapability{9, 0}));
  EXPECT_EQ(gpus[0].power_limit_min, base::Milliwatts(200'000));
  EXPECT_EQ(gpus[0].mig_enabled, false);
  EXPECT_EQ(gpus[0].ecc_enabled, true);
  EXPECT_EQ(gpus[0].pcie_width_max, 16u);
  EXPECT_EQ(gpus[1].compute_capability, (ComputeCapability{7, 5}));
  EXPECT_EQ(gpus[1].serial, std::nullopt);
  EXPECT_EQ(gpus[1].mig_enabled, std::nullopt) << "cannot be divided";
}

TEST(SmiText, ReadsGpusAndTheirProcesses) {
  const auto gpus = smi_readings(table(fixture("readings.csv")), table(fixture("processes.csv")));

  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].utilization_percent, 97u);
  EXPECT_EQ(gpus[0].encoder_percent, 12u);
  EXPECT_EQ(gpus[0].decoder_percent, 34u);
  EXPECT_EQ(gpus[0].memory_used, base::kMiB * 20480);
  EXPECT_EQ(gpus[0].memory_reserved, base::kMiB * 551);
  EXPECT_EQ(gpus[0].memory_temperature_c, 72);
  EXPECT_EQ(gpus[0].power, base::Milliwatts(612'370));
  EXPECT_EQ(gpus[0].clock_sm_mhz, 1980u);
  EXPECT_EQ(gpus[0].throttle_reasons, model::kThrottlePowerCap);
  EXPECT_EQ(gpus[0].ecc_corrected, 12u);
  EXPECT_EQ(gpus[0].processes,
            (std::vector<GpuProcess>{{977, std::nullopt}, {41233, base::kMiB * 20470}}));
  EXPECT_EQ(gpus[1].processes, std::vector<GpuProcess>{});
  EXPECT_EQ(gpus[1].encoder_percent, std::nullopt);
  EXPECT_EQ(gpus[1].power, std::nullopt);
  EXPECT_EQ(gpus[1].memory_temperature_c, std::nullopt);
  EXPECT_EQ(gpus[1].ecc_uncorrected, std::nullopt);
}

TEST(SmiText, TakesAGpuThatIsLostForLost) {
  const auto gpus = smi_readings(
      table("index, uuid, memory.total [MiB]\n0, [GPU is lost], [GPU is lost]\n"), SmiTable());

  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].condition, GpuCondition::kLost);
  EXPECT_EQ(gpus[0].problem, "[GPU is lost]");
}

TEST(SmiText, RefusesATableWithARowThatDoesNotFit) {
  EXPECT_FALSE(SmiTable::parse(""));
  EXPECT_FALSE(SmiTable::parse("\n\n"));
  EXPECT_FALSE(SmiTable::parse("index, uuid\n0\n"));
  EXPECT_FALSE(SmiTable::parse("index, uuid\n0, GPU-x, more\n"));
}

TEST(SmiText, TakesValuesOutOfRangeForUnknown) {
  EXPECT_EQ(smi_bytes("81559 MiB"), base::kMiB * 81559);
  EXPECT_EQ(smi_bytes("81559"), std::nullopt) << "no unit";
  EXPECT_EQ(smi_bytes("-1 MiB"), std::nullopt);
  EXPECT_EQ(smi_bytes("99999999999999999999 MiB"), std::nullopt);
  EXPECT_EQ(smi_watts("71.25 W"), base::Milliwatts(71'250));
  EXPECT_EQ(smi_watts("71.25678 W"), base::Milliwatts(71'256));
  EXPECT_EQ(smi_watts("9999999 W"), std::nullopt);
  EXPECT_EQ(smi_count("16x"), 16u);
  EXPECT_EQ(smi_count("1.5"), std::nullopt);
  EXPECT_EQ(smi_count(""), std::nullopt);
  EXPECT_EQ(smi_switch("[N/A]"), std::nullopt);
  EXPECT_EQ(smi_text(" [Not Supported] "), std::nullopt);
}

TEST(SmiText, FindsTheColumnThatAVersionRefuses) {
  EXPECT_EQ(smi_refused_column("Field \"memory.reserved\" is not a valid field to query.\n"),
            "memory.reserved");
  EXPECT_EQ(smi_refused_column("NVIDIA-SMI has failed"), "");
}

TEST(SmiXml, TellsWhatTablesDoNot) {
  const auto report = parse_smi_report(fixture("report.xml"));

  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->driver.driver_version, "550.90.07");
  EXPECT_EQ(report->driver.cuda_version, 12040u);
  ASSERT_EQ(report->gpus.size(), 2u);
  EXPECT_EQ(report->gpus[0].minor, 3u);
  EXPECT_EQ(report->gpus[1].minor, std::nullopt);
  EXPECT_EQ(report->gpus[1].power_limit, base::Milliwatts(70'000)) << "as older drivers name it";
  EXPECT_EQ(report->gpus[0].slowdown_c, std::nullopt);
  EXPECT_EQ(report->gpus[1].slowdown_c, 93);
  const model::GpuSlowMetrics& first = report->readings[0];
  EXPECT_EQ(first.pcie_generation, 4u);
  EXPECT_EQ(first.pcie_width, 8u);
  EXPECT_EQ(first.pcie_replays, 7u);
  EXPECT_EQ(first.pcie_sent_bytes_per_second, 450'000u);
  EXPECT_EQ(first.pcie_received_bytes_per_second, std::nullopt);
  EXPECT_EQ(first.remapped_rows_uncorrected, 2u);
  EXPECT_EQ(first.remap_pending, true);
  EXPECT_EQ(first.retired_pages_corrected, std::nullopt);
  EXPECT_EQ(report->readings[1].retired_pages_corrected, 1u);
  EXPECT_EQ(report->readings[1].retirement_pending, false);
}

TEST(SmiXml, RefusesWhatIsNoReport) {
  EXPECT_FALSE(parse_smi_report(""));
  EXPECT_FALSE(parse_smi_report("NVIDIA-SMI has failed because it couldn't communicate"));
  EXPECT_FALSE(parse_smi_report("<html></html>"));
  const std::string whole = fixture("report.xml");
  EXPECT_FALSE(parse_smi_report(whole.substr(0, whole.size() / 2)));
}

TEST(SmiXml, SurvivesDamagedReports) {
  const std::string whole = fixture("report.xml");
  base::Prng random(11);
  for (int round = 0; round < 2'000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 4; ++i) {
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    }
    // A text that is accepted has a reading for every GPU.
    if (const auto report = parse_smi_report(damaged)) {
      EXPECT_EQ(report->gpus.size(), report->readings.size());
    }
  }
}

}  // namespace
}  // namespace gpu_platform::hardware
