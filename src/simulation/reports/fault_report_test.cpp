#include "simulation/reports/fault_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string>

namespace gpu_platform::simulation {
namespace {

FaultReport report() {
  FaultReport report;
  report.seeds = 3;
  report.events = 40;
  report.faults[0] = 5;
  report.hash = 0xabc;
  report.violations.push_back({17, 4, "gang", "2 of 3 \"GPUs\""});
  return report;
}

TEST(FaultReport, JsonHasWhatTheContractSays) {
  const auto json = nlohmann::json::parse(fault_report_json(report(), Plant::kHalfGang));
  EXPECT_EQ(json.at("seeds"), 3);
  EXPECT_EQ(json.at("events"), 40);
  EXPECT_EQ(json.at("faults").size(), kFaultKinds);
  EXPECT_EQ(json.at("faults").at("crash_idle"), 5);
  EXPECT_EQ(json.at("hash"), "0000000000000abc");
  const auto& violation = json.at("violations").at(0);
  EXPECT_EQ(violation.at("seed"), 17);
  EXPECT_EQ(violation.at("step"), 4);
  EXPECT_EQ(violation.at("invariant"), "gang");
  EXPECT_EQ(violation.at("text"), "2 of 3 \"GPUs\"");
  EXPECT_EQ(violation.at("command"),
            "gpu-platform simulate faults --seeds 1 --first-seed 17 --plant half-gang");
}

TEST(FaultReport, TextNamesSeedStepInvariantAndTheCommandThatRepeatsIt) {
  const std::string text = fault_report_text(report(), Plant::kNone);
  EXPECT_NE(text.find("VIOLATION seed 17, step 4, gang: "), std::string::npos) << text;
  EXPECT_NE(text.find("repeat: gpu-platform simulate faults --seeds 1 --first-seed 17\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace gpu_platform::simulation
