#include "health/policy_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace gpu_platform::health {
namespace {

std::string mistake(const model::HealthRule& second) {
  model::Policy policy;
  policy.health_rules = {{"xid-31", "", "degrade", ""}, second};
  const auto rules = checked_rules(policy);
  return rules ? std::string() : rules.error().field + ": " + rules.error().message;
}

TEST(PolicyRules, AreTheProfileWithTheChangesOfTheSite) {
  model::Policy policy;
  policy.health_profile = model::HealthProfile::kCloud;
  policy.health_rules = {{"xid-31", "H100", "degrade", "Shadow"}};
  const auto rules = checked_rules(policy);
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(rules->profile(), Profile::kCloud);
  EXPECT_EQ(rules->of_xid(31, "H100-80GB").action, Action::kDegrade);
  EXPECT_EQ(rules->of_xid(31, "H100-80GB").mode, RuleMode::kShadow);
  EXPECT_EQ(rules->of_xid(31, "A100-80GB").action, Action::kCount);
}

TEST(PolicyRules, MistakesNameTheKeyAndWhatIsAllowed) {
  EXPECT_EQ(mistake({"xid-31", "", "COUNT", ""}), "");
  EXPECT_EQ(mistake({"xid-1000", "", "COUNT", ""}).find("health.rules[1].rule: \"xid-1000\" is"),
            0U);
  EXPECT_EQ(mistake({"xid-31", "", "SHOOT", ""}).find("health.rules[1].action: \"SHOOT\" is"), 0U);
  EXPECT_EQ(mistake({"xid-31", "", "", "dark"}),
            "health.rules[1].mode: \"dark\" is not one of EXECUTE, SHADOW, OFF");
  EXPECT_EQ(mistake({"xid-31", "", "", ""}).find("health.rules[1]: it changes nothing"), 0U);
}

TEST(PolicyRules, OfAnotherVersionAreUsedAsFarAsTheyAreKnown) {
  model::Policy policy;
  policy.health_rules = {{"xid-1000", "", "DRAIN", ""}, {"xid-31", "", "DRAIN", ""}};
  EXPECT_EQ(known_rules(policy).of_xid(31).action, Action::kDrain);
}

}  // namespace
}  // namespace gpu_platform::health
