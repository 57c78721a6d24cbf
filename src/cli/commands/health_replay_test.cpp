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

TEST_F(HealthReplay, NeedsEvidence) {
  EXPECT_EQ(call({"health", "replay"}), 2);
  EXPECT_NE(err().find("--evidence is missing"), std::string::npos) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
