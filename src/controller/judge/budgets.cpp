#include "controller/judge/budgets.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "base/utc.h"
#include "model/access.h"
#include "model/job_spec.h"
#include "scheduling/quota/budgets.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Budget;
using model::BudgetKey;
using model::BudgetState;
using model::Caller;
using model::QuotaHolder;

namespace {

constexpr std::size_t kMaxHolderName = 255;

// "the budget of team vision".
std::string named(const BudgetKey& key) {
  return fmt::format("the budget of {} {}", to_string(key.holder), key.name);
}

const BudgetState* find_budget(const State& state, const BudgetKey& key) {
  const auto found = state.books->budgets->find(key);
  return found == state.books->budgets->end() ? nullptr : &found->second;
}

std::unexpected<base::Error> no_such_budget(const State& state, const BudgetKey& key) {
  std::vector<std::string_view> known;
  for (const auto& [other, budget] : *state.books->budgets) {
    if (other.holder == key.holder) known.push_back(other.name);
  }
  return base::fail(ErrorCode::kNotFound,
                    fmt::format("{} {} has no budget{}", to_string(key.holder), key.name,
                                base::did_you_mean(key.name, known)),
                    "name");
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxHolderName && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) < 0x21 || c == 0x7f;
  });
}

base::Status check_holder(const State& state, const BudgetKey& key) {
  if (key.holder == QuotaHolder::kTeam) {
    const auto& teams = state.policy->organisation->teams;
    if (std::ranges::find(teams, key.name, &model::Team::name) != teams.end()) return {};
    std::vector<std::string_view> known;
    for (const model::Team& team : teams) known.push_back(team.name);
    return base::fail(
        ErrorCode::kNotFound,
        fmt::format("there is no team '{}'{}", key.name, base::did_you_mean(key.name, known)),
        "name");
  }
  if (is_plain_name(key.name)) return {};
  return base::invalid("name", fmt::format("name: 1 to {} bytes without spaces", kMaxHolderName));
}

std::unexpected<base::Error> not_allowed(const Caller& caller, const BudgetKey& key,
                                         std::string_view what, std::string_view helper) {
  return base::fail(
      ErrorCode::kPermissionDenied,
      fmt::format("user {} may not {} {}: ask {}", caller.user, what, named(key), helper), "name");
}

bool coordinates(const Caller& caller, const BudgetKey& key) {
  return key.holder == QuotaHolder::kTeam && model::may_touch_team(caller, key.name);
}

bool coordinates_above(const State& state, const Caller& caller, const BudgetKey& key) {
  if (key.holder != QuotaHolder::kTeam) return false;
  const model::Team* team = model::find_team(*state.policy->organisation, key.name);
  return team != nullptr && !team->parent.empty() && model::may_touch_team(caller, team->parent);
}

// `before`: null: there is none yet, and whatever it is set to is lower.
base::Status check_lowers(const Budget* before, const Budget& after) {
  if (before == nullptr) return {};
  const auto refuse = [](std::string_view what, std::string field) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("{}: only an administrator may {}; a coordinator may lower the "
                                  "budget of the team",
                                  field, what),
                      field);
  };
  if (after.amount > before->amount) return refuse("raise it", "amount");
  if (after.period != before->period) return refuse("change it", "period");
  if (after.act < before->act) return refuse("let more pass", "at_limit");
  return {};
}

// Another period may end before the override does, which lasts no longer than it.
void end_override_with_period(Budget& budget, base::Instant now) {
  if (!budget.over.until.is_set()) return;
  budget.over.until = std::min(budget.over.until, model::end_of(budget.period, now));
}

base::Result<Budget> with_changes(const BudgetState* before, const model::SetBudget& command) {
  if (before == nullptr && !command.amount) {
    return base::invalid("amount", fmt::format("amount: {} {} has no budget yet, so one is needed",
                                               to_string(command.key.holder), command.key.name));
  }
  Budget budget = before == nullptr ? Budget() : before->budget;
  budget.key = command.key;
  budget.period = command.period.value_or(budget.period);
  budget.amount = command.amount.value_or(budget.amount);
  budget.act = command.act.value_or(budget.act);
  if (budget.amount <= base::MicroUsd()) {
    return base::invalid(
        "amount", fmt::format("amount: {} is not more than zero", base::written(budget.amount)));
  }
  return budget;
}

base::Status check_reason(const std::string& why) {
  if (why.empty()) {
    return base::invalid("why", "why: say why the holder may go on; the audit trail keeps it");
  }
  if (why.size() <= kMaxOverrideReason) return {};
  return base::invalid(
      "why", fmt::format("why: {} bytes; at most {} are kept", why.size(), kMaxOverrideReason));
}

base::Status check_until(const BudgetState& budget, base::Instant until, base::Instant now) {
  if (until <= now) {
    return base::invalid("until", fmt::format("until: {} is over", base::utc(until)));
  }
  const base::Instant end = model::end_of(budget.budget.period, now);
  if (until <= end) return {};
  return base::invalid(
      "until", fmt::format("until: {} is after {}, when the {} ends and the budget "
                           "renews",
                           base::utc(until), base::utc(end), to_string(budget.budget.period)));
}

}  // namespace

base::Result<model::BudgetSet> judge_budget(const State& state, const Caller& caller,
                                            const model::SetBudget& command, base::Instant now) {
  const bool is_for_all = model::may_touch_site(caller);
  if (!is_for_all && !coordinates(caller, command.key)) {
    return not_allowed(caller, command.key, "set",
                       "an administrator, or a coordinator of the team");
  }
  TRY(check_holder(state, command.key));
  const BudgetState* before = find_budget(state, command.key);
  if (before == nullptr && state.books->budgets->size() >= kMaxBudgets) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("there are {} budgets, which is the limit", kMaxBudgets));
  }
  TRY_ASSIGN(Budget budget, with_changes(before, command));
  if (!is_for_all) TRY(check_lowers(before == nullptr ? nullptr : &before->budget, budget));
  end_override_with_period(budget, now);
  budget.set_by = caller.user;
  return model::BudgetSet{std::move(budget), caller.user};
}

base::Result<model::BudgetSet> judge_override(const State& state, const Caller& caller,
                                              const model::OverrideBudget& command,
                                              base::Instant now) {
  if (!model::may_touch_site(caller) && !coordinates_above(state, caller, command.key)) {
    return not_allowed(caller, command.key, "override",
                       "an administrator, or a coordinator of a team above it");
  }
  const BudgetState* before = find_budget(state, command.key);
  if (before == nullptr) return no_such_budget(state, command.key);
  Budget budget = before->budget;
  budget.over = {};
  if (command.until.is_set()) {
    TRY(check_reason(command.why));
    TRY(check_until(*before, command.until, now));
    budget.over = {command.until, caller.user, command.why};
  } else if (!before->budget.over.until.is_set()) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("{} is not overridden", named(command.key)));
  }
  return model::BudgetSet{std::move(budget), caller.user};
}

base::Result<model::BudgetRemoved> judge_removal(const State& state, const Caller& caller,
                                                 const model::RemoveBudget& command,
                                                 base::Instant) {
  if (!model::may_touch_site(caller)) {
    return not_allowed(caller, command.key, "remove", "an administrator");
  }
  const BudgetState* before = find_budget(state, command.key);
  if (before == nullptr) return no_such_budget(state, command.key);
  if (before->budget.set_by.empty()) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("{} is that of the configuration: remove it from "
                                  "accounting.budgets, or set another amount",
                                  named(command.key)),
                      "name");
  }
  return model::BudgetRemoved{command.key, caller.user};
}

std::optional<base::Instant> next_budget_count(const State& state) {
  std::optional<base::Instant> next;
  for (const auto& [key, meter] : state.budget_meters) {
    next = std::min(next.value_or(meter.next), meter.next);
  }
  return next;
}

namespace {

bool stops_what_runs(const BudgetState& budget, base::Instant now) {
  return budget.budget.act == model::BudgetAct::kStop && model::bars_starts(budget, now);
}

bool has_some_to_stop(const State& state, base::Instant now) {
  return std::ranges::any_of(*state.books->budgets, [&](const auto& entry) {
    return stops_what_runs(entry.second, now) && state.budget_meters.at(entry.first).has_running();
  });
}

}  // namespace

Events stops_by_budgets(const State& state, base::Instant now) {
  Events events;
  if (!has_some_to_stop(state, now)) return events;
  for (const model::AttemptId id : state.held_attempts) {
    if (is_told_to_stop(state, id)) continue;
    const model::JobSpec& spec = *find_job(state, id.job)->spec;
    for (const BudgetState* budget :
         scheduling::budgets_of(*state.books->budgets, *state.policy->organisation, spec)) {
      if (!stops_what_runs(*budget, now)) continue;
      events.push_back(
          model::StopRequested{id, model::EndReason::kBudget, false, named(budget->budget.key)});
      break;
    }
  }
  return events;
}

}  // namespace gpu_platform::controller
