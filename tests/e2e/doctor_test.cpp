// `doctor` on the host that runs the tests: it must agree with what a daemon says there.

#include <gtest/gtest.h>

#include <map>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

nlohmann::json doctor(int* exit_code, const std::vector<std::string>& environment = {}) {
  const Finished done = run_command({program("gpu-platform"), "doctor", "--json"}, environment);
  *exit_code = done.exit_code;
  return nlohmann::json::parse(done.out, nullptr, false);
}

TEST(Doctor, AgreesWithTheDaemonOnHowJobsAreKeptApart) {
  int exit_code = -1;
  const auto said = doctor(&exit_code);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(exit_code, said["verdict"] == "bad" ? 1 : 0);
  std::map<std::string, bool> held;
  for (const auto& finding : said["findings"]) {
    const auto check = finding["check"].get<std::string>();
    if (check.starts_with("isolation.")) held[check.substr(10)] = finding["verdict"] == "ok";
    EXPECT_EQ(finding["advice"].get<std::string>().empty(), finding["verdict"] == "ok") << finding;
  }
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  std::map<std::string, bool> known;
  const auto status = daemon.json({"status"});
  for (const auto& guard : status["isolation"]) {
    known[guard["guard"].get<std::string>()] = guard["held"].get<bool>();
  }
  EXPECT_EQ(held, known);
}

TEST(Doctor, AsksTheDaemonThatTheCommandLineAsks) {
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  int exit_code = -1;
  const auto said = doctor(&exit_code, {"GPU_PLATFORM_SERVER=unix:" + daemon.socket()});
  ASSERT_TRUE(said.is_object());
  const auto& service = said["findings"].back();
  EXPECT_EQ(service["check"], "service");
  EXPECT_EQ(service["text"], "a daemon answers at unix:" + daemon.socket());
}

TEST(Doctor, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(run_command({program("gpu-platform"), "doctor", "--fix"}).exit_code, 2);
}

}  // namespace
}  // namespace gpu_platform::e2e
