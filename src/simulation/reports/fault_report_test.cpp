#include "simulation/reports/fault_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <string>

#include "simulation/reports/simulate_faults_main.h"

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

int run(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = simulate_faults_main(static_cast<int>(argv.size()), argv.data());
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return code;
}

TEST(SimulateFaults, ExitCodesAreThoseOfTheContract) {
  EXPECT_EQ(run({"faults", "--seeds", "3"}), 0);
  EXPECT_EQ(run({"faults", "--seeds", "3", "--json"}), 0);
  EXPECT_EQ(run({"faults", "--seeds", "20", "--plant", "half-gang"}), 1);
  EXPECT_EQ(run({"faults", "--help"}), 0);
  EXPECT_EQ(run({"faults", "--seeds", "many"}), 2);
  EXPECT_EQ(run({"faults", "--seeds", "0"}), 2);
  EXPECT_EQ(run({"faults", "--plant", "nothing"}), 2);
  EXPECT_EQ(run({"faults", "--sedes", "3"}), 2);
}

}  // namespace
}  // namespace gpu_platform::simulation
