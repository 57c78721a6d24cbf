// The drills of docs/health.md: faults of an emulated board as an operator sees them.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

constexpr const char* kDrilledGpu = "dgx-h100-1:0";

class HealthDrills : public ::testing::Test {
 protected:
  explicit HealthDrills(std::string config = "monitoring:\n  interval_seconds: 1\n")
      : daemon_({.emulate = "dgx-h100", .config = std::move(config)}) {}
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  void inject(std::vector<std::string> fault) {
    fault.insert(fault.begin(), {program("gpu-emulator"), "inject"});
    fault.insert(fault.end(), {"--data-dir", daemon_.data_dir(), "--gpu", kDrilledGpu});
    const Finished done = run_command(fault);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  nlohmann::json health() { return daemon_.json({"health", "--gpu", kDrilledGpu}); }
  bool has_evidence_of_xid(unsigned xid) {
    for (const auto& piece : health()["evidence"]) {
      if (piece["kind"] == "XID" && piece["code"] == xid) return true;
    }
    return false;
  }

  Daemon daemon_;
};

TEST_F(HealthDrills, AProgramsErrorLeavesTheGpuInServiceAndIsInItsStory) {
  inject({"xid", "31"});
  ASSERT_TRUE(eventually([&] { return has_evidence_of_xid(31); })) << health();
  EXPECT_EQ(health()["gpu"]["state"], "AVAILABLE") << health();
  EXPECT_EQ(health()["taints"].size(), 0U) << health();
  const std::string story = daemon_.cli({"health", kDrilledGpu}).out;
  EXPECT_NE(story.find("\nEvidence:\n"), std::string::npos) << story;
  EXPECT_NE(story.find("XID 31"), std::string::npos) << story;
}

TEST_F(HealthDrills, AMemoryErrorDrainsTheGpuAndSaysWhatHelps) {
  inject({"xid", "48"});
  ASSERT_TRUE(eventually([&] { return health()["gpu"]["state"] == "DRAINING"; })) << health();
  const auto shown = health();
  EXPECT_EQ(shown["verdict"]["action"], "RESET") << shown;
  EXPECT_EQ(shown["verdict"]["fault"], "HARDWARE") << shown;
  EXPECT_NE(shown["verdict"]["next"].get<std::string>().find("reset"), std::string::npos) << shown;
  const std::string all = daemon_.cli({"health"}).out;
  EXPECT_NE(all.find("1 with something wrong"), std::string::npos) << all;
  EXPECT_NE(daemon_.cli({"status"}).out.find("1 GPU draining"), std::string::npos);

  // The same verdict follows from the evidence alone, as soon as all of it has come.
  const std::string file = daemon_.directory() + "/evidence.jsonl";
  nlohmann::json replayed;
  EXPECT_TRUE(eventually([&] {
    std::ofstream(file) << daemon_.cli({"health", "evidence"}).out;
    replayed = daemon_.json({"health", "replay", "--evidence", file});
    return replayed["gpus"].size() == 1 &&
           replayed["gpus"][0]["rule"] == health()["verdict"]["rule"];
  })) << replayed
      << health();
  EXPECT_EQ(replayed["gpus"][0]["action"], "RESET") << replayed;

  const Finished report = daemon_.cli({"health", "report", "--gpu", kDrilledGpu});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(nlohmann::json::parse(report.out)["gpus"].size(), 1U);
}

// The whole circle: a fault, its verdict, the job elsewhere, the reset, the check, and back.
TEST_F(HealthDrills, AFaultUnderAJobGoesRoundTheCircle) {
  const std::string marker = daemon_.directory() + "/failed";
  // It fails once, when it is told to, and runs until it is told to end.
  const std::string line = "while [ ! -e " + marker + " ] || [ -e " + marker + ".seen ]; do [ -e " +
                           marker + ".end ] && exit 0; sleep 0.1; done; touch " + marker +
                           ".seen; exit 7";
  const std::string id = daemon_.submit({"--gpus", "1", "--", "/bin/sh", "-c", line});
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING"));
  const nlohmann::json first = daemon_.job(id)["attempts"][0];
  ASSERT_EQ(first["gpus"][0]["index"], 0) << first;
  inject({"xid", "48"});
  std::ofstream(marker).flush();

  ASSERT_TRUE(eventually([&] { return daemon_.job(id)["attempts"].size() == 2; }))
      << daemon_.job(id);
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING"));
  const nlohmann::json moved = daemon_.job(id);
  EXPECT_EQ(moved["attempts"][0]["exit_code"], 7) << "the true exit code stays";
  EXPECT_EQ(moved["attempts"][0]["reason"], "GPU_FAULT") << moved;
  EXPECT_NE(moved["attempts"][1]["gpus"][0]["index"], 0) << moved;
  EXPECT_EQ(health()["gpu"]["state"], "DRAINING") << health();

  const Finished reset = daemon_.cli({"reset", kDrilledGpu, "--wait", "--yes"});
  EXPECT_EQ(reset.exit_code, 0) << reset.err << reset.out << health();
  EXPECT_TRUE(eventually([&] { return health()["gpu"]["state"] == "AVAILABLE"; })) << health();
  std::vector<std::string> kinds;
  for (const auto& piece : health()["evidence"]) kinds.push_back(piece["kind"]);
  EXPECT_EQ(std::ranges::count(kinds, "RESET"), 1) << health();
  EXPECT_EQ(std::ranges::count(kinds, "CHECK"), 1) << health();
  std::ofstream(marker + ".end").flush();
  EXPECT_TRUE(daemon_.reaches(id, "COMPLETED")) << daemon_.job(id);
}

TEST_F(HealthDrills, AResetThatFailsLeavesTheGpuOutAndSaysWhy) {
  inject({"remap-pending", "2"});
  inject({"reset-fail"});
  const Finished reset = daemon_.cli({"reset", kDrilledGpu, "--wait", "--yes"});
  EXPECT_NE(reset.exit_code, 0) << reset.out;
  EXPECT_TRUE(eventually([&] { return health()["gpu"]["state"] == "OFFLINE"; })) << health();
  EXPECT_NE(daemon_.json({"status"})["available_gpus"], 8);
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(health()["gpu"]["state"], "OFFLINE") << "a restart forgets nothing";
}

TEST_F(HealthDrills, AGpuThatComesBackWhileTheDaemonIsAwayIsInServiceAgain) {
  inject({"lost"});
  ASSERT_TRUE(eventually([&] { return health()["gpu"]["state"] == "OFFLINE"; })) << health();
  daemon_.kill_now();
  const Finished cleared = run_command(
      {program("gpu-emulator"), "clear", "--data-dir", daemon_.data_dir(), "--gpu", kDrilledGpu});
  ASSERT_EQ(cleared.exit_code, 0) << cleared.err;
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_TRUE(eventually([&] { return health()["gpu"]["state"] == "AVAILABLE"; })) << health();
}

// The driver has another index and minor number for it then.
TEST_F(HealthDrills, AGpuThatVanishesAndComesBackInAnotherPlaceIsStillTheSame) {
  const auto restart_with = [&](const std::string& fault) {
    daemon_.kill_now();
    inject({fault});
    ASSERT_TRUE(daemon_.start()) << daemon_.log();
  };
  restart_with("vanish");
  ASSERT_TRUE(eventually([&] { return health()["gpu"]["state"] == "OFFLINE"; })) << health();
  restart_with("return-last");
  ASSERT_TRUE(eventually([&] { return health()["gpu"]["state"] == "AVAILABLE"; })) << health();
  inject({"xid", "31"});
  EXPECT_TRUE(eventually([&] { return has_evidence_of_xid(31); })) << health();
  EXPECT_EQ(daemon_.json({"status"})["available_gpus"], 8);
}

// Readings are so rare that only the check of the job finds the fault.
class Preflight : public HealthDrills {
 protected:
  Preflight() : HealthDrills("monitoring:\n  interval_seconds: 3600\n") {}
};

TEST_F(Preflight, AGpuThatFailsItIsOutAndTheJobRunsOnAnother) {
  inject({"remap-failed"});
  const std::string id = daemon_.submit({"--gpus", "1", "--preflight", "quick", "--", "/bin/true"});
  ASSERT_TRUE(daemon_.reaches(id, "COMPLETED")) << daemon_.job(id);
  const nlohmann::json job = daemon_.job(id);
  ASSERT_EQ(job["attempts"].size(), 2U) << job;
  EXPECT_EQ(job["exit_code"], 0) << job;
  EXPECT_EQ(job["failures"], 0) << job;
  EXPECT_EQ(job["losses"], 0) << job;
  const nlohmann::json& first = job["attempts"][0];
  EXPECT_EQ(first["gpus"][0]["index"], 0) << job;
  EXPECT_EQ(first["reason"], "GPU_FAULT") << job;
  EXPECT_TRUE(first["started_at"].is_null()) << job;
  const nlohmann::json& second = job["attempts"][1];
  EXPECT_NE(second["gpus"][0]["index"], 0) << job;
  EXPECT_EQ(second["preflight"].get<std::string>().find("quick: passed in "), 0U) << job;
  const std::string page = daemon_.cli({"jobs", "describe", id}).out;
  EXPECT_NE(page.find("quick: passed in "), std::string::npos) << page;
  EXPECT_NE(health()["gpu"]["state"], "AVAILABLE") << health();
  bool has_failed_check = false;
  for (const auto& piece : health()["evidence"]) {
    has_failed_check = has_failed_check || (piece["kind"] == "CHECK" && piece["code"] == 1);
  }
  EXPECT_TRUE(has_failed_check) << health();
}

TEST_F(HealthDrills, HeatKeepsNewWorkAwayAndNothingElse) {
  const std::string id = daemon_.submit({"--gpus", "1", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon_.reaches(id, "RUNNING"));
  inject({"temperature", "90"});
  ASSERT_TRUE(eventually([&] { return health()["verdict"]["action"] == "AVOID"; })) << health();
  EXPECT_EQ(daemon_.job(id)["state"], "RUNNING");
  EXPECT_EQ(health()["gpu"]["state"], "IN_USE") << health();
}

}  // namespace
}  // namespace gpu_platform::e2e
