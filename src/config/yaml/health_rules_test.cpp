#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "config/effective.h"
#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

TEST(HealthRules, AreReadAsWordsInTheirOrderWithTheirPlaces) {
  const Checked checked = parse_configuration(R"(
health:
  rules:
    - {rule: xid-31, gpu_type: h100, action: DEGRADE, mode: shadow}
    - rule: xid-74
      nodes: dgx-a*
      mode: off
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  const std::vector<model::HealthRule> expected{{"xid-31", "H100", "DEGRADE", "shadow"},
                                                {"xid-74", "", "", "off", "dgx-a*"}};
  EXPECT_EQ(checked->policy.health_rules, expected);
  const Problem second = problem_at("health.rules[1]", "wrong", *checked);
  EXPECT_EQ(describe(second, "site.yaml"), "site.yaml:5:7: wrong");
  EXPECT_TRUE(parse_configuration("health: {rules: []}\n")->policy.health_rules.empty());
}

TEST(HealthRules, AChangeOfThemTakesEffectAtAReload) {
  const Checked before = parse_configuration("health: {rules: [{rule: xid-31, mode: off}]}\n");
  const Checked after = parse_configuration("health: {rules: [{rule: xid-31, mode: shadow}]}\n");
  ASSERT_TRUE(before && after);
  const std::vector<Difference> found = differences(*before, *after);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "health.rules");
  EXPECT_EQ(found[0].effect, Effect::kAnytime);
}

TEST(HealthRules, AreRefusedWithThePlaceAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"health:\n  rules: {a: 1}\n", "site.yaml:2:10: 'health.rules' must be a list of changes"},
      {"health:\n  rules:\n    - xid-31\n", ":3:7: an entry of 'health.rules' must begin with"},
      {"health:\n  rules:\n    - {mode: off}\n", ":3:7: an entry of 'health.rules' without a rule"},
      {"health:\n  rules:\n    - {rule: xid-31, actoin: COUNT}\n", "did you mean 'action'?"},
      {"health:\n  rules:\n    - {rule: xid-31, action: [COUNT]}\n", "'action' in 'health.rules'"},
      {"health:\n  rules:\n    - {rule: xid-31, rule: xid-32}\n", "twice"},
  };
  for (const auto& [yaml, said] : cases) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_FALSE(checked.has_value()) << yaml;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

TEST(HealthRules, TheTemperaturesAreInDegrees) {
  const Checked checked =
      parse_configuration("health: {max_temperature_c: 80, max_memory_temperature_c: 90}\n");
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->max_temperature_c.max_c, 80U);
  EXPECT_EQ(checked->max_temperature_c.below_slowdown_c, std::nullopt);
  EXPECT_EQ(checked->max_memory_temperature_c, 90U);
  EXPECT_FALSE(parse_configuration("health: {max_temperature_c: 39}\n").has_value());
  EXPECT_FALSE(parse_configuration("health: {max_memory_temperature_c: 111}\n").has_value());
}

TEST(HealthRules, TheTemperatureMayBeBelowTheSlowdownOfTheGpu) {
  for (const char* const text : {"slowdown-3", "slowdown - 3", "'slowdown - 3'"}) {
    const Checked checked =
        parse_configuration(std::string("health: {max_temperature_c: ") + text + "}\n");
    ASSERT_TRUE(checked.has_value()) << text;
    EXPECT_EQ(checked->max_temperature_c, (HeatLimit{85, 3})) << text;
    const std::vector<Difference> found = differences(Configuration{}, *checked);
    ASSERT_EQ(found.size(), 1U) << text;
    EXPECT_EQ(found[0].after, "slowdown-3");
  }
  for (const char* const text :
       {"slowdown", "slowdown-0", "slowdown-41", "slowdown+5", "shutdown-5", "slowdown-5C"}) {
    const Checked checked =
        parse_configuration(std::string("health: {max_temperature_c: ") + text + "}\n");
    ASSERT_FALSE(checked.has_value()) << text;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find("40 to 110, or slowdown-1 to slowdown-40 is allowed"), std::string::npos)
        << problem;
  }
  EXPECT_FALSE(parse_configuration("health: {max_memory_temperature_c: slowdown-5}\n"));
}

TEST(HealthRules, TheDeadlinesHaveBounds) {
  const Checked checked = parse_configuration(
      "health: {reset_deadline: 4m, check_deadline: 90s, deep_check_deadline: 1h}\n");
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->reset_deadline, base::minutes(4));
  EXPECT_EQ(checked->check_deadline, base::seconds(90));
  EXPECT_EQ(checked->deep_check_deadline, base::minutes(60));
  for (const char* const text :
       {"reset_deadline: 29s", "reset_deadline: 61m", "check_deadline: 29s", "check_deadline: 61m",
        "deep_check_deadline: 4m", "deep_check_deadline: 61m"}) {
    EXPECT_FALSE(parse_configuration(std::string("health: {") + text + "}\n").has_value()) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::config
