#include "config/yaml/budgets.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "model/team.h"

namespace gpu_platform::config {

namespace {

constexpr std::array<std::string_view, 6> kBudgetKeys = {"team",   "user",   "project",
                                                         "amount", "period", "at_limit"};
constexpr std::array<std::string_view, model::kQuotaHolders> kBudgetHolders = {"team", "user",
                                                                               "project"};
constexpr std::array<std::string_view, model::kBudgetPeriods> kBudgetPeriodNames = {
    "month", "quarter", "year"};
constexpr std::array<std::string_view, model::kBudgetActs> kBudgetActNames = {"alert", "refuse",
                                                                              "stop"};

template <class Value, std::size_t kCount>
std::optional<Value> value_named(const std::array<std::string_view, kCount>& names,
                                 std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

}  // namespace

bool BudgetsReader::reads(std::string_view path) {
  return path == "accounting.budgets";
}

void BudgetsReader::read_amount(const YAML::Node& node, model::Budget& budget) {
  const auto amount =
      node.IsScalar() ? base::parse_money(node.Scalar()) : base::invalid({}, "write it as 100.00");
  if (!amount) {
    return report(node, fmt::format("'amount' in '{}': {}", key_, amount.error().message));
  }
  if (*amount == base::MicroUsd()) {
    return report(node, fmt::format("'amount' in '{}' must be more than zero", key_));
  }
  budget.amount = *amount;
}

void BudgetsReader::read_budget(const YAML::Node& map, std::size_t index) {
  const YAML::Mark mark = map.Mark();
  ReadBudget read{{}, fmt::format("{}[{}]", key_, index), file_, mark.line + 1, mark.column + 1};
  model::Budget& budget = read.budget;
  std::size_t holders = 0;
  const auto named = [&](const YAML::Node& value, std::string_view key, const auto& names,
                         auto& out) {
    const std::string text = word(value, key).value_or("");
    const auto found = value_named<std::remove_cvref_t<decltype(out)>>(names, text);
    if (!found) {
      report(value, fmt::format("'{}' in '{}' must be one of {}{}", key, key_,
                                fmt::join(names, ", "), base::did_you_mean(text, names)));
    }
    out = found.value_or(out);
  };
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (const auto holder = value_named<model::QuotaHolder>(kBudgetHolders, key)) {
      ++holders;
      budget.key = {*holder, word(value, key).value_or("")};
    } else if (key == "amount") {
      read_amount(value, budget);
    } else if (key == "period") {
      named(value, key, kBudgetPeriodNames, budget.period);
    } else if (key == "at_limit") {
      named(value, key, kBudgetActNames, budget.act);
    } else {
      report_unknown(name, kBudgetKeys);
    }
  });
  if (holders != 1) {
    report(map,
           fmt::format("an entry of '{}' needs 'team', 'user' or 'project', one of them", key_));
  }
  if (!map["amount"]) report(map, fmt::format("an entry of '{}' needs 'amount'", key_));
  budgets_.push_back(std::move(read));
}

void BudgetsReader::read(const std::string& path, const YAML::Node& list) {
  key_ = path;
  if (list.IsNull()) return;
  if (!list.IsSequence()) {
    return report(list, fmt::format("'{}' must be a list, not {}", key_, kind_of(list)));
  }
  std::size_t index = 0;
  for (const auto& map : list) {
    if (map.IsMap()) {
      read_budget(map, index);
    } else {
      report(map, fmt::format("an entry of '{}' must be names with their values, not {}", key_,
                              kind_of(map)));
    }
    ++index;
  }
}

void BudgetsReader::report_at(const ReadBudget& read, std::string message) {
  problems_.push_back(
      {read.line, read.column, read.key, fmt::format("{}: {}", read.key, message), read.file});
}

void BudgetsReader::finish(Configuration& configuration) {
  const model::Organisation& organisation = *configuration.policy.organisation;
  std::vector<std::string_view> known;
  for (const model::Team& team : organisation.teams) known.push_back(team.name);
  std::vector<model::Budget>& budgets = configuration.policy.budgets;
  for (const ReadBudget& read : budgets_) {
    const model::BudgetKey& key = read.budget.key;
    if (std::ranges::find(budgets, key, &model::Budget::key) != budgets.end()) {
      report_at(read, fmt::format("{} '{}' has a budget already", to_string(key.holder), key.name));
      continue;
    }
    budgets.push_back(read.budget);
    // Teams that are made at run time are not known here. Without teams, --team is a label.
    const bool is_team = key.holder == model::QuotaHolder::kTeam;
    if (!is_team || known.empty() || model::find_team(organisation, key.name) != nullptr) continue;
    report_at(read, fmt::format("no team '{}'{}", key.name, base::did_you_mean(key.name, known)));
  }
}

}  // namespace gpu_platform::config
