#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "accounting/amount_text.h"
#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/suggest.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/message_text.h"
#include "cli/text/money_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "client/answer.h"
#include "client/request_text.h"
#include "gpu_platform/v1/budgets.pb.h"

// What teams, users and projects may spend.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kBudgetsPath = "/v1/budgets";
constexpr std::array<std::string_view, 3> kBudgetHolders = {"team", "user", "project"};
constexpr std::array<std::string_view, 3> kBudgetPeriods = {"month", "quarter", "year"};
constexpr std::array<std::string_view, 3> kBudgetActs = {"alert", "refuse", "stop"};
constexpr std::string_view kBudgetWords = "team|user|project NAME";

// Whose budget it is.
struct BudgetWords {
  std::vector<std::string> words;
  Output output;
};

base::Status check_budget_words(const BudgetWords& o) {
  const std::string& holder = o.words.front();
  if (std::ranges::find(kBudgetHolders, holder) == kBudgetHolders.end()) {
    return base::invalid(
        std::string(kBudgetWords),
        fmt::format("'{}' is not one of {}{}", harmless(holder), fmt::join(kBudgetHolders, ", "),
                    base::did_you_mean(holder, kBudgetHolders)));
  }
  if (o.words.back().empty()) return base::invalid("NAME", "must not be empty");
  return check_text("NAME", o.words.back());
}

std::string budget_path(const BudgetWords& o, std::string_view verb = {}) {
  return fmt::format("{}/{}/{}{}", kBudgetsPath, o.words.front(),
                     base::percent_encoded(o.words.back()), verb);
}

// "12.00 USD".
std::string money_of(const v1::Budget& budget, const std::string& amount) {
  return fmt::format("{} {}", amount, budget.currency());
}

std::string lower_name(const v1::Budget& budget, int field) {
  return base::to_lower(name_at(budget, field));
}

std::string override_of(const v1::Budget& budget) {
  if (!budget.has_override()) return {};
  const v1::BudgetOverride& over = budget.override();
  return fmt::format("until {} by {}: {}", time_text(over.until()), over.by(), over.why());
}

std::string budget_page(const v1::Budget& budget) {
  const std::array<std::pair<std::string_view, std::string>, 12> rows = {{
      {"Budget", fmt::format("{} {}", budget.holder(), budget.name())},
      {"Amount", fmt::format("{} for each {}", money_of(budget, budget.amount()),
                             lower_name(budget, v1::Budget::kPeriodFieldNumber))},
      {"Spent", money_of(budget, budget.spent())},
      {"Left", money_of(budget, budget.left())},
      {"Now", fmt::format("{} an hour", money_of(budget, budget.per_hour()))},
      {"Spent at", time_text(budget.spent_at())},
      {"Renews", time_text(budget.renews_at())},
      {"Level", lower_name(budget, v1::Budget::kLevelFieldNumber)},
      {"When spent", lower_name(budget, v1::Budget::kAtLimitFieldNumber)},
      {"Bars starts", budget.bars_starts() ? "yes" : "no"},
      {"Override", override_of(budget)},
      {"Set by", budget.has_set_by() ? budget.set_by() : "the configuration"},
  }};
  std::string page;
  for (const auto& [name, value] : rows) {
    if (!value.empty()) page += fmt::format("{:<14}{}\n", name, harmless(value));
  }
  return page;
}

// Prints the budget, or what went wrong.
int show_budget(Console& console, const Called<std::string>& answer, const Output& output) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto budget = client::message_of<v1::Budget>(*answer);
  if (output.is_document() || !budget) return print_document(console, output, *answer);
  console.out(budget_page(*budget));
  return console.out_failed() ? kFailure : kOk;
}

void add_budget_words(Arguments& arguments, BudgetWords& o) {
  arguments.words(std::string(kBudgetWords), o.words, 2, 2, "whose budget it is")
      .output(o.output, {"", "name"});
}

// A name of an enumeration's value in small letters, as the requests have it: "REFUSE".
base::Result<std::string> constant_in(std::string_view option, const std::string& given,
                                      const std::array<std::string_view, 3>& names) {
  if (std::ranges::find(names, given) != names.end()) return base::to_upper(given);
  return base::invalid(std::string(option),
                       fmt::format("'{}' is not one of {}{}", harmless(given),
                                   fmt::join(names, ", "), base::did_you_mean(given, names)));
}

struct BudgetChange : BudgetWords {
  std::optional<std::string> amount, period, at_limit;
};

base::Result<v1::SetBudgetRequest> request_of(const BudgetChange& o) {
  v1::SetBudgetRequest request;
  TRY(check_budget_words(o));
  if (o.amount) {
    const auto amount = base::parse_money(*o.amount);
    if (!amount) return base::invalid("--amount", amount.error().message);
    request.set_amount(base::written(*amount));
  }
  if (o.period) {
    TRY_ASSIGN(const std::string name, constant_in("--period", *o.period, kBudgetPeriods));
    v1::BudgetPeriod period = v1::BUDGET_PERIOD_UNSPECIFIED;
    v1::BudgetPeriod_Parse("BUDGET_PERIOD_" + name, &period);
    request.set_period(period);
  }
  if (o.at_limit) {
    TRY_ASSIGN(const std::string name, constant_in("--at-limit", *o.at_limit, kBudgetActs));
    v1::BudgetAct act = v1::BUDGET_ACT_UNSPECIFIED;
    v1::BudgetAct_Parse("BUDGET_ACT_" + name, &act);
    request.set_at_limit(act);
  }
  if (request.ByteSizeLong() == 0) {
    return base::invalid("NAME", "give at least one change, such as --amount");
  }
  return request;
}

struct OverrideOptions : BudgetWords {
  std::optional<std::string> until, why;
  bool ends = false;
};

base::Result<v1::OverrideBudgetRequest> request_of(const OverrideOptions& o, base::Instant now) {
  v1::OverrideBudgetRequest request;
  TRY(check_budget_words(o));
  const bool is_given = o.until && o.why;
  if (o.ends && (o.until || o.why)) {
    return base::invalid("--end", "it ends the override: give no --until and no --why");
  }
  if (!o.ends && !is_given) {
    return base::invalid(o.until ? "--why" : "--until", "give --until and --why, or --end");
  }
  if (o.ends) return request;
  TRY_ASSIGN(const base::Instant until, coming_time("--until", *o.until, now));
  TRY(check_text("--why", *o.why));
  request.mutable_until()->set_seconds(until.unix_ns() / 1'000'000'000);
  request.set_why(*o.why);
  return request;
}

}  // namespace

int run_budget_show(const CommandText& text, Invocation& invocation) {
  BudgetWords o;
  Arguments arguments(text);
  add_budget_words(arguments, o);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (const auto checked = check_budget_words(o); !checked) {
    return usage_error(invocation.console, checked.error(), text.name);
  }
  return show_budget(invocation.console, client->get(budget_path(o)), o.output);
}

int run_budget_set(const CommandText& text, Invocation& invocation) {
  BudgetChange o;
  Arguments arguments(text);
  add_budget_words(arguments, o);
  arguments.option("--amount", o.amount, "AMOUNT", "what may be spent in a period: 12000, 99.50")
      .option("--period", o.period, "PERIOD",
              "month, quarter or year (default of a new one: month)")
      .option("--at-limit", o.at_limit, "ACT",
              "alert, refuse new starts, or stop running jobs, too (default of a new one: alert)");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto request = request_of(o);
  if (!request) return usage_error(invocation.console, request.error(), text.name);
  return show_budget(invocation.console,
                     client->post(budget_path(o, "/update"), client::request_text(*request)),
                     o.output);
}

int run_budget_override(const CommandText& text, Invocation& invocation) {
  OverrideOptions o;
  Arguments arguments(text);
  add_budget_words(arguments, o);
  arguments.option("--until", o.until, "TIME", "when it ends: 4h, tomorrow, 2026-01-31T12:00")
      .option("--why", o.why, "TEXT", "the reason; the audit trail and 'budget show' have it")
      .flag("--end", o.ends, "end the override now");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto request = request_of(o, invocation.console.process_environment().now());
  if (!request) return usage_error(invocation.console, request.error(), text.name);
  return show_budget(invocation.console,
                     client->post(budget_path(o, "/override"), client::request_text(*request)),
                     o.output);
}

int run_budget_remove(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  BudgetWords o;
  Arguments arguments(text);
  add_budget_words(arguments, o);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (const auto checked = check_budget_words(o); !checked) {
    return usage_error(console, checked.error(), text.name);
  }
  const auto answer = client->remove(budget_path(o));
  if (!answer) return report(console, answer.error(), o.output.wants_documents());
  if (o.output.is_document()) return print_document(console, o.output, *answer);
  console.out(
      fmt::format("the budget of {} {} is removed\n", o.words.front(), harmless(o.words.back())));
  return console.out_failed() ? kFailure : kOk;
}

namespace {

using BudgetColumn = ListColumn<v1::Budget>;

constexpr PagedList kBudgets{kBudgetsPath, "budgets", 10'000};

// "1,234.57": a column of amounts is read from its right end.
std::string cents_of(const std::string& amount) {
  accounting::HundredthRounder rounder;
  return accounting::with_hundredths(rounder.next(amount_of(amount).value()));
}

double money_rank(const std::string& amount) {
  const auto money = base::parse_money(amount);
  return money ? static_cast<double>(money->value()) : 0.0;
}

std::vector<BudgetColumn> budget_columns() {
  using B = v1::Budget;
  using base::Instant;
  return {
      {.key = "holder",
       .column = {.title = "HOLDER"},
       .cell = [](const B& b, Instant) { return b.holder(); }},
      {.key = "name",
       .column = {.title = "NAME", .cut_to = 12, .wraps = true},
       .cell = [](const B& b, Instant) { return b.name(); }},
      {.key = "period",
       .column = {.title = "PERIOD"},
       .cell = [](const B& b, Instant) { return lower_name(b, v1::Budget::kPeriodFieldNumber); }},
      {.key = "amount",
       .column = {"AMOUNT", Column::Align::kRight},
       .cell = [](const B& b, Instant) { return money_of(b, cents_of(b.amount())); },
       .rank = [](const B& b, Instant) { return money_rank(b.amount()); }},
      {.key = "spent",
       .column = {"SPENT", Column::Align::kRight},
       .cell = [](const B& b, Instant) { return cents_of(b.spent()); },
       .rank = [](const B& b, Instant) { return money_rank(b.spent()); }},
      {.key = "per_hour",
       .column = {"AN HOUR", Column::Align::kRight},
       .cell = [](const B& b, Instant) { return cents_of(b.per_hour()); },
       .rank = [](const B& b, Instant) { return money_rank(b.per_hour()); }},
      {.key = "level",
       .column = {.title = "LEVEL"},
       .cell = [](const B& b, Instant) { return lower_name(b, v1::Budget::kLevelFieldNumber); }},
      {.key = "at_limit",
       .column = {.title = "WHEN SPENT", .expendable = 1},
       .cell = [](const B& b, Instant) { return lower_name(b, v1::Budget::kAtLimitFieldNumber); }},
      {.key = "renews_at",
       .column = {.title = "RENEWS", .cut_to = 10, .expendable = 2, .wraps = true},
       .cell = [](const B& b, Instant) { return minute_of(b.renews_at()); },
       .rank = [](const B& b, Instant) { return time_rank(b.renews_at()); }},
      {.key = "override",
       .column = {.title = "OVERRIDE", .cut_to = 12, .wraps = true},
       .cell = [](const B& b, Instant) { return override_of(b); },
       .is_left_out_if_empty = true}};
}

}  // namespace

int run_budget_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Budget> list{
      .pages = kBudgets,
      .names = {"budgets", "name"},
      .filters = {{"--holder", "holder", ListFilter::Kind::kText, "KIND",
                   "only budgets of teams, users or projects: team, user, project"}},
      .columns = budget_columns(),
      .nothing = "there is no budget"};
  return ListCommand(list, &v1::ListBudgetsResponse::budgets).run(text, invocation);
}

}  // namespace gpu_platform::cli
