#include "api/budget_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/budget.h"
#include "api/convert/job.h"
#include "api/list_page.h"
#include "base/parse.h"
#include "model/access.h"
#include "os/clock.h"
#include "views/budgets.h"

namespace gpu_platform::api {

namespace {

bool names(const std::vector<std::string>& teams, const std::string& team) {
  return std::ranges::find(teams, team) != teams.end();
}

bool may_see(const model::Caller& caller, const model::BudgetKey& key) {
  if (model::has(caller, model::Right::kSeeUsage)) return true;
  if (key.holder == model::QuotaHolder::kUser) return key.name == caller.user;
  if (key.holder != model::QuotaHolder::kTeam || caller.teams == nullptr) return false;
  return names(caller.teams->member_of, key.name) || names(caller.teams->coordinates, key.name);
}

v1::Budget described(const views::BudgetFigures& figures, const std::string& currency,
                     base::Instant now) {
  v1::Budget out;
  to_proto(*figures.state, currency, now, out);
  const base::MicroUsd spent = figures.spent.floor();
  out.set_spent(base::written(spent));
  out.set_left(base::written(std::max(figures.state->budget.amount - spent, base::MicroUsd())));
  out.set_per_hour(base::written(figures.per_hour.rounded()));
  if (figures.spent_at.is_set()) to_proto(figures.spent_at, *out.mutable_spent_at());
  return out;
}

base::Result<v1::Budget> find_budget(const CallContext& context, const std::string& holder,
                                     const std::string& name, const Peer& peer) {
  TRY_ASSIGN(const model::QuotaHolder kind, parse_holder(holder));
  const model::BudgetKey key{kind, name};
  const auto snapshot = context.core.snapshots.snapshot();
  const base::Instant now = os::wall_now();
  if (snapshot->budgets->contains(key) && may_see(peer.caller, key)) {
    for (const views::BudgetFigures& figures : views::budget_figures(*snapshot, now)) {
      if (figures.state->budget.key != key) continue;
      return described(figures, snapshot->policy->billing->currency, now);
    }
  }
  return base::fail(base::ErrorCode::kNotFound, fmt::format("{} {} has no budget", holder, name),
                    "name");
}

// Sends a command that changes the budget, which is the answer.
void change_budget(const CallContext& context, model::Command command, model::BudgetKey key,
                   const Peer& peer, Resume resume, Done<v1::Budget> done) {
  context.send(std::move(command), std::move(resume),
               [&context, key = std::move(key), peer,
                done = std::move(done)](base::Result<model::CommandReply> reply) {
                 if (!reply) return done(std::unexpected(std::move(reply).error()));
                 done(find_budget(context, std::string(to_string(key.holder)), key.name, peer));
               });
}

}  // namespace

base::Result<v1::ListBudgetsResponse> BudgetCalls::list(const v1::ListBudgetsRequest& request,
                                                        const Peer& peer) const {
  std::optional<model::QuotaHolder> holder;
  if (request.has_holder()) {
    TRY_ASSIGN(holder, parse_holder(request.holder()));
  }
  const auto snapshot = context_.core.snapshots.snapshot();
  const base::Instant now = os::wall_now();
  v1::ListBudgetsResponse out;
  for (const views::BudgetFigures& figures : views::budget_figures(*snapshot, now)) {
    const model::BudgetKey& key = figures.state->budget.key;
    const bool is_wanted = !holder || key.holder == *holder;
    if (!is_wanted || !may_see(peer.caller, key)) continue;
    *out.add_budgets() = described(figures, snapshot->policy->billing->currency, now);
  }
  TRY(cut_to_page(request, *out.mutable_budgets(), out, [](const v1::Budget& budget) {
    return fmt::format("{} {}", budget.holder(), budget.name());
  }));
  return out;
}

base::Result<v1::Budget> BudgetCalls::get(const v1::GetBudgetRequest& request,
                                          const Peer& peer) const {
  return find_budget(context_, request.holder(), request.name(), peer);
}

void BudgetCalls::set(const v1::SetBudgetRequest& request, const Peer& peer, Resume resume,
                      Done<v1::Budget> done) const {
  auto command = to_model(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const model::BudgetKey key = command->key;
  change_budget(context_, {peer.caller, *std::move(command)}, key, peer, std::move(resume),
                std::move(done));
}

void BudgetCalls::override_budget(const v1::OverrideBudgetRequest& request, const Peer& peer,
                                  Resume resume, Done<v1::Budget> done) const {
  auto command = to_model(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const model::BudgetKey key = command->key;
  change_budget(context_, {peer.caller, *std::move(command)}, key, peer, std::move(resume),
                std::move(done));
}

void BudgetCalls::remove(const v1::RemoveBudgetRequest& request, const Peer& peer, Resume resume,
                         Done<v1::Budget> done) const {
  auto before = find_budget(context_, request.holder(), request.name(), peer);
  if (!before) return done(std::unexpected(std::move(before).error()));
  const auto kind = parse_holder(request.holder());
  context_.send({peer.caller, model::RemoveBudget{{*kind, request.name()}}}, std::move(resume),
                [before = *std::move(before),
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done(before);
                });
}

}  // namespace gpu_platform::api
