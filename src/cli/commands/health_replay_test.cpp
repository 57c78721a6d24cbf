#include <string>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

class HealthReplay : public Cli {};

TEST_F(HealthReplay, ShowsTheRulesWithTheirSources) {
  EXPECT_EQ(call({"health", "rules", "--json"}), 0) << err();
  const Json document = Json::parse(out());
  EXPECT_EQ(document["profile"], "nvidia");
  bool found = false;
  for (const Json& rule : document["rules"]) {
    if (rule["xid"] != 79) continue;
    found = true;
    EXPECT_EQ(rule["action"], "REBOOT");
    EXPECT_NE(rule["source"].get<std::string>(), "");
  }
  EXPECT_TRUE(found);
}

TEST_F(HealthReplay, RefusesAProfileThatIsNeitherOneNorAFile) {
  EXPECT_EQ(call({"health", "rules", "--profile", "mild"}), 2);
  EXPECT_NE(err().find("'mild' is no profile (nvidia, cloud, strict)"), std::string::npos) << err();
}

TEST_F(HealthReplay, JudgesWhatTheDaemonHasKept) {
  FakeServer server([](const client::FakeServer::Request& request) {
    if (begins(request.target, "/v1/status")) {
      return json_answer(
          R"({"gpus":[{"node":"dgx-1","uuid":"GPU-3","type":"H100-80GB"},{"node":"dgx-1","uuid":"GPU-4","type":"H100-80GB"}]})");
    }
    return json_answer(
        R"({"evidence":[{"node":"dgx-1","gpu_id":"GPU-3","kind":"XID","source":"DRIVER","at":"2026-07-01T12:00:00Z","last":"2026-07-01T12:00:04Z","count":2,"code":79}]})");
  });
  EXPECT_EQ(call(server, {"health", "replay", "--json"}), 0) << err();
  const Json document = Json::parse(out());
  ASSERT_EQ(document["gpus"].size(), 1U) << out();
  EXPECT_EQ(document["gpus"][0]["rule"], "xid-79");
  EXPECT_EQ(document["gpus"][0]["taken_out"], true);
  EXPECT_EQ(document["notes"], Json::array());
}

}  // namespace
}  // namespace gpu_platform::cli
