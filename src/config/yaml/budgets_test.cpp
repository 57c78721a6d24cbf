#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

std::vector<model::Budget> budgets_of(std::string_view yaml) {
  const Checked checked = parse_configuration(yaml);
  if (!checked) {
    ADD_FAILURE() << describe(checked.error().front(), "site.yaml");
    return {};
  }
  return checked->policy.budgets;
}

// The text of the first problem; empty: there is none.
std::string budget_problem_of(std::string_view entry) {
  const Checked checked = parse_configuration(
      "teams:\n  - {name: vision, users: [ann]}\naccounting:\n  budgets:\n    - " +
      std::string(entry) + "\n");
  return checked ? std::string() : describe(checked.error().front(), "site.yaml");
}

TEST(Budgets, ReadsTheirHoldersPeriodsAndActs) {
  const auto budgets = budgets_of(R"(
teams:
  - {name: vision, users: [ann]}
accounting:
  budgets:
    - {team: vision, amount: 12000, at_limit: refuse}
    - {user: ann, amount: 0.000001, period: quarter}
    - {project: demo, amount: 500.25, period: year, at_limit: stop}
)");
  ASSERT_EQ(budgets.size(), 3U);
  EXPECT_EQ(budgets[0].key, (model::BudgetKey{model::QuotaHolder::kTeam, "vision"}));
  EXPECT_EQ(budgets[0].amount, base::MicroUsd(12'000'000'000));
  EXPECT_EQ(budgets[0].period, model::BudgetPeriod::kMonth);
  EXPECT_EQ(budgets[0].act, model::BudgetAct::kRefuse);
  EXPECT_EQ(budgets[1].key, (model::BudgetKey{model::QuotaHolder::kUser, "ann"}));
  EXPECT_EQ(budgets[1].amount, base::MicroUsd(1));
  EXPECT_EQ(budgets[1].period, model::BudgetPeriod::kQuarter);
  EXPECT_EQ(budgets[1].act, model::BudgetAct::kAlert);
  EXPECT_EQ(budgets[2].key, (model::BudgetKey{model::QuotaHolder::kProject, "demo"}));
  EXPECT_EQ(budgets[2].period, model::BudgetPeriod::kYear);
  EXPECT_EQ(budgets[2].act, model::BudgetAct::kStop);
  for (const model::Budget& budget : budgets) EXPECT_TRUE(budget.set_by.empty());
}

TEST(Budgets, AnEmptyFileHasNone) {
  EXPECT_TRUE(budgets_of("").empty());
  EXPECT_TRUE(budgets_of("accounting: {budgets: []}\n").empty());
}

TEST(Budgets, SaysWhatIsWrongWithAnEntry) {
  const auto says = [](std::string_view entry, std::string_view what) {
    const std::string text = budget_problem_of(entry);
    EXPECT_NE(text.find(what), std::string::npos) << entry << ": " << text;
  };
  says("{team: vision}", "needs 'amount'");
  says("{amount: 5}", "needs 'team', 'user' or 'project'");
  says("{team: vision, user: ann, amount: 5}", "needs 'team', 'user' or 'project'");
  says("{team: vision, amount: 0}", "more than zero");
  says("{team: vision, amount: -5}", "amount");
  says("{team: vision, amount: 5.1234567}", "six decimals");
  says("{team: vision, amount: 5, period: weak}", "must be one of month, quarter, year");
  says("{team: vision, amount: 5, at_limit: halt}", "must be one of alert, refuse, stop");
  says("{team: vison, amount: 5}", "no team 'vison'; did you mean 'vision'?");
  says("{team: vision, amount: 5, act: stop}", "act");
  says("{team: vision, amount: 5}\n    - {team: vision, amount: 6}", "has a budget already");
}

TEST(Budgets, TakesTeamsAsLabelsWhereThereAreNone) {
  EXPECT_EQ(budgets_of("accounting:\n  budgets:\n    - {team: any, amount: 1}\n").size(), 1U);
}

}  // namespace
}  // namespace gpu_platform::config
