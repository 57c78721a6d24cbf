#include "alerts/rule_table.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace gpu_platform::alerts {
namespace {

std::string refusal(const RuleWords& words) {
  const std::vector<RuleWords> all{words};
  const auto made = make_rules(all);
  return made ? "accepted" : made.error().field + ": " + made.error().message;
}

TEST(RuleTable, ShippedRulesHaveThresholdsThatMakeSense) {
  std::set<std::string> names;
  std::set<Signal> watched;
  for (const Rule& rule : shipped_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    watched.insert(rule.signal);
    EXPECT_TRUE(fires(rule, rule.threshold)) << rule.name;
    EXPECT_FALSE(fires(rule, rule.clear)) << rule.name;
    EXPECT_TRUE(is_clear(rule, rule.clear)) << rule.name;
    EXPECT_FALSE(is_clear(rule, rule.threshold)) << rule.name;
    EXPECT_FALSE(rule.advice.empty()) << rule.name;
    EXPECT_LE(rule.threshold, row_of(rule.signal).most) << rule.name;
    EXPECT_EQ(rule.is_enabled, rule.name != "GpuBusy") << rule.name;
  }
  EXPECT_EQ(watched.size(), kSignals) << "each signal has a rule";
  for (const SignalRow& row : signals()) EXPECT_EQ(parse_signal(row.name), row.signal);
}

TEST(RuleTable, ASiteChangesShippedRulesAndAddsOthers) {
  const std::vector<RuleWords> words{
      {.name = "GpuHot",
       .above = 80,
       .clear = 70,
       .hold = base::minutes(5),
       .severity = "critical"},
      {.name = "GpuBusy", .is_enabled = true},
      {.name = "RackHot", .signal = "gpu_temperature", .above = 75, .nodes = {"dgx-a*"}}};
  const auto rules = make_rules(words);
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(rules->size(), shipped_rules().size() + 1);
  const auto named = [&](std::string_view name) {
    return *std::ranges::find(*rules, name, &Rule::name);
  };
  EXPECT_EQ(named("GpuHot").threshold, 80);
  EXPECT_EQ(named("GpuHot").clear, 70);
  EXPECT_EQ(named("GpuHot").severity, Severity::kCritical);
  EXPECT_TRUE(named("GpuHot").is_of_site);
  EXPECT_TRUE(named("GpuBusy").is_enabled);
  EXPECT_EQ(named("GpuBusy").threshold, 95);
  EXPECT_EQ(named("RackHot").clear, 74);
  EXPECT_FALSE(named("GpuTooHot").is_of_site);
}

TEST(RuleTable, WrongRulesAreRefusedWithWhatIsAllowed) {
  EXPECT_NE(refusal({.name = "Mine"}).find("alerts.rules[0]: the rule 'Mine'"), std::string::npos);
  EXPECT_NE(refusal({.name = "Mine", .signal = "gpu_temprature", .above = 1})
                .find("did you mean 'gpu_temperature'?"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .above = 200}).find("0 to 150 °C is allowed"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .above = 80, .clear = 80}).find("must be less than"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "DiskLow", .below = 5, .clear = 5}).find("must be more than"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHott", .above = 80}).find("did you mean 'GpuHot'?"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .above = 0}).find("never be over"), std::string::npos);
  EXPECT_NE(refusal({.name = "DiskLow", .below = 100}).find("never be over"), std::string::npos);
  EXPECT_NE(refusal({.name = "DiskLow", .below = 10, .clear = 101}).find("never be over"),
            std::string::npos);
  EXPECT_EQ(refusal({.name = "DiskLow", .below = 99}), "accepted");
  EXPECT_EQ(refusal({.name = "GpuHot", .above = 1}), "accepted");
  EXPECT_EQ(refusal({.name = "GpuXidCritical", .above = 3}), "accepted");
  EXPECT_NE(refusal({.name = "GpuXidCritical", .above = 3, .clear = 1}).find("no 'clear'"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .above = 80, .below = 10}).find("either"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "NodeLost", .above = 1}).find("no threshold"), std::string::npos);
  EXPECT_NE(refusal({.name = "GpuXidCritical", .below = 1}).find("only grows"), std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .signal = "gpu_memory"}).find("needs another name"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .severity = "loud"}).find("info, warning, critical"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "bad name", .signal = "node_lost"}).find("letters"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuXidCritical", .hold = base::minutes(1)}).find("no 'for'"),
            std::string::npos);
  EXPECT_NE(refusal({.name = "GpuHot", .teams = {"lab"}}).find("no 'teams'"), std::string::npos);
  EXPECT_NE(refusal({.name = "DiskLow", .nodes = {"n*"}}).find("no 'nodes'"), std::string::npos);
  EXPECT_NE(refusal({.name = "NodeLost", .types = {"H100"}}).find("no 'types'"), std::string::npos);
  EXPECT_EQ(refusal({.name = "NodeLost", .nodes = {"n*"}}), "accepted");
  EXPECT_EQ(refusal({.name = "GpuAllocatedIdle", .teams = {"lab"}}), "accepted");
  const std::vector<RuleWords> twice{{.name = "GpuHot"}, {.name = "GpuHot"}};
  const auto made = make_rules(twice);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "alerts.rules[1]");
  EXPECT_NE(made.error().message.find("two rules 'GpuHot'"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::alerts
