#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "config/effective.h"
#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

TEST(AlertSettings, ListsAreReadAsWordsWithTheirPlaces) {
  const Checked checked = parse_configuration(R"(
alerts:
  rules:
    - {name: GpuHot, above: 80, clear: 75, for: 5m, severity: critical, types: [H100]}
    - {name: Mine, signal: disk_free, below: 5, enabled: false, nodes: a*}
  channels:
    - name: hook
      kind: webhook
      url: https://hooks.example.org/x
      secret_file: /etc/key
      proxy: http://proxy.example.org:3128
      timeout: 3s
    - {name: own, kind: command, command: [/bin/tell, -s]}
  routes:
    - {severity: critical, team: vision, rules: [Gpu*], channels: [hook]}
  idle: {below_percent: 3, after: 1h, action: stop}
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  ASSERT_EQ(checked->alert_rules.size(), 2U);
  EXPECT_EQ(checked->alert_rules[0].above, 80);
  EXPECT_EQ(checked->alert_rules[0].clear, 75);
  EXPECT_EQ(checked->alert_rules[0].hold, base::minutes(5));
  EXPECT_EQ(checked->alert_rules[0].types, std::vector<std::string>{"H100"});
  EXPECT_EQ(checked->alert_rules[1].below, 5);
  EXPECT_EQ(checked->alert_rules[1].enabled, false);
  EXPECT_EQ(checked->alert_rules[1].nodes, std::vector<std::string>{"a*"});
  ASSERT_EQ(checked->alert_channels.size(), 2U);
  EXPECT_EQ(checked->alert_channels[0].url, "https://hooks.example.org/x");
  EXPECT_EQ(checked->alert_channels[0].proxy, "http://proxy.example.org:3128");
  EXPECT_EQ(checked->alert_channels[0].timeout, base::seconds(3));
  EXPECT_EQ(checked->alert_channels[1].command, (std::vector<std::string>{"/bin/tell", "-s"}));
  ASSERT_EQ(checked->alert_routes.size(), 1U);
  EXPECT_EQ(checked->alert_routes[0].channels, std::vector<std::string>{"hook"});
  EXPECT_EQ(checked->idle.action, IdleAction::kStop);
  EXPECT_EQ(checked->idle.after, base::hours(1));
  EXPECT_EQ(describe(problem_at("alerts.rules[1]", "wrong", *checked), "site.yaml"),
            "site.yaml:5:7: wrong");
  EXPECT_EQ(describe(problem_at("alerts.channels[1]", "wrong", *checked), "site.yaml"),
            "site.yaml:13:7: wrong");
}

TEST(AlertSettings, AReloadTakesUpChanges) {
  const Checked before = parse_configuration("alerts: {rules: [{name: GpuHot, above: 80}]}\n");
  const Checked after = parse_configuration("alerts: {rules: [{name: GpuHot, above: 81}]}\n");
  ASSERT_TRUE(before && after);
  const std::vector<Difference> found = differences(*before, *after);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "alerts.rules");
  EXPECT_EQ(found[0].effect, Effect::kAnytime);
}

TEST(AlertSettings, AreRefusedWithThePlaceAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"alerts:\n  rules: {a: 1}\n", ":2:10: 'alerts.rules' must be a list"},
      {"alerts:\n  rules:\n    - GpuHot\n", ":3:7: an entry of 'alerts.rules' must be names"},
      {"alerts:\n  rules:\n    - {above: 5}\n", ":3:7: an entry of 'alerts.rules' needs a name"},
      {"alerts:\n  rules:\n    - {name: A, abov: 5}\n", "did you mean 'above'?"},
      {"alerts:\n  rules:\n    - {name: A, above: hot}\n", "must be a whole number"},
      {"alerts:\n  rules:\n    - {name: A, enabled: perhaps}\n", "must be true or false"},
      {"alerts:\n  rules:\n    - {name: A, for: soon}\n", "must be a time"},
      {"alerts:\n  channels:\n    - {name: a}\n", "needs a kind"},
      {"alerts:\n  channels:\n    - {name: \"a\\nb\", kind: mail}\n", "text of one line"},
      {"alerts:\n  routes:\n    - {team: a}\n", "needs channels"},
      {"alerts: {idle: {action: shout}}\n", "is not tell, warn or stop"},
  };
  for (const auto& [yaml, said] : cases) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_FALSE(checked.has_value()) << yaml;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

TEST(AlertSettings, TheRetentionInDaysIsThatOfMinutesUnlessThisIsSet) {
  const Checked days = parse_configuration("monitoring: {metrics_retention_days: 7}\n");
  ASSERT_TRUE(days.has_value());
  EXPECT_EQ(days->telemetry.keep_minutes, base::hours(24 * 7));
  const Checked both = parse_configuration(
      "monitoring: {metrics_retention_days: 7}\ntelemetry: {keep_minutes: 3d}\n");
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->telemetry.keep_minutes, base::hours(24 * 3));
}

}  // namespace
}  // namespace gpu_platform::config
