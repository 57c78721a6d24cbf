#include "shims/views/accounts.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/letters.h"
#include "client/answer.h"

namespace gpu_platform::shims {

namespace {

// With 'fair_share' the order is that of Slurm's Fair Tree, whose sshare shows parts of a level:
// the shares beside those of the siblings, the usage beside that of the parent, and for users
// their turn. Sources: sshare(1) and "Fair Tree Fairshare Algorithm" of Slurm.
void show_levels(std::vector<AccountShare>& rows) {
  const auto users =
      std::ranges::count_if(rows, [](const AccountShare& row) { return is_user(row.share); });
  std::map<std::string, double> shares_at;
  std::map<std::string, double> use_of;  // of a team; of the organisation: the empty name
  for (const AccountShare& row : rows) {
    const v1::Share& share = row.share;
    if (share.depth() != 0) shares_at[share.parent()] += share.shares();
    if (!is_user(share)) use_of[share.team()] = share.use();
  }
  for (AccountShare& row : rows) {
    v1::Share& share = row.share;
    if (share.depth() == 0) continue;
    const double above = use_of[share.parent()];
    share.set_normalized_shares(share.shares() / shares_at[share.parent()]);
    share.set_effective_use(above > 0 ? share.use() / above : 0);
    if (share.place() > 0) {
      share.set_fair_share(static_cast<double>(users - share.place() + 1) /
                           static_cast<double>(users));
    }
  }
}

void add_count(std::string& text, const std::string& resource, std::int64_t number) {
  text += fmt::format("{}{}={}", text.empty() ? "" : ",", resource, number);
}

// Teams are the accounts; projects have no counterpart in Slurm.
bool is_of(const AccountShare& row, std::string_view holder, std::string_view name) {
  return is_user(row.share) ? holder == "user" && name == row.share.user()
                            : holder == "team" && name == row.share.team();
}

// The budgets of those that the caller may see.
client::Called<v1::ListBudgetsResponse> budgets_of(client::Client& client) {
  auto budgets = client.ask<v1::ListBudgetsResponse>("/v1/budgets", "the list of budgets");
  // A daemon that is older has none.
  if (!budgets && budgets.error().kind == client::Failure::Kind::kProblem)
    return v1::ListBudgetsResponse();
  return budgets;
}

}  // namespace

void put_limits(const v1::ListSharesResponse& shares, const v1::ListBudgetsResponse& budgets,
                AccountShare& row) {
  if (!is_user(row.share) && row.share.team().empty()) return;
  for (const v1::Budget& budget : budgets.budgets()) {
    if (!is_of(row, budget.holder(), budget.name())) continue;
    add_count(row.grp_tres_mins, "billing", billing_minutes(budget.amount()));
    row.spent_billing_minutes = billing_minutes(budget.spent());
  }
  for (const v1::Quota& quota : shares.quotas()) {
    if (!is_of(row, quota.holder(), quota.name())) continue;
    const std::string& type = quota.gpu_type();
    if (type.empty() && quota.has_max_running_jobs()) {
      row.grp_jobs = fmt::format("{}", quota.max_running_jobs());
      if (quota.has_max_queued_jobs()) {
        row.grp_submit =
            fmt::format("{}", std::uint64_t{quota.max_running_jobs()} + quota.max_queued_jobs());
      }
    }
    if (quota.has_max_gpus()) add_count(row.grp_tres, gpu_resource(type), quota.max_gpus());
    if (quota.has_gpu_hours()) {
      add_count(row.grp_tres_mins, gpu_resource(type), std::int64_t{quota.gpu_hours()} * 60);
    }
  }
}

std::string running_minutes(const v1::Share& share, const BillingWeights& weights) {
  double all = 0;
  double billing = 0;
  std::string by_type;
  for (const v1::GpuTypeSeconds& each : share.running()) {
    const double minutes = each.gpu_seconds() / 60;
    all += minutes;
    billing += minutes * currency_units(weight_of_type(weights, each.gpu_type()));
    if (!each.gpu_type().empty())
      by_type += fmt::format(",{}={:.0f}", gpu_resource(each.gpu_type()), minutes);
  }
  const std::string cost = weights.is_empty() ? "" : fmt::format("billing={:.0f},", billing);
  return fmt::format("{}gres/gpu={:.0f}{}", cost, all, by_type);
}

std::string raw_minutes(const AccountShare& row) {
  std::string text;
  if (row.spent_billing_minutes) add_count(text, "billing", *row.spent_billing_minutes);
  if (row.share.has_use_gpu_seconds()) {
    text +=
        fmt::format("{}gres/gpu={:.0f}", text.empty() ? "" : ",", row.share.use_gpu_seconds() / 60);
  }
  return text;
}

bool is_user(const v1::Share& share) {
  return !share.user().empty();
}

std::string account_of(const v1::Share& share) {
  return share.team().empty() ? std::string(kRootAccount) : share.team();
}

std::string gpu_resource(const std::string& type) {
  return type.empty() ? "gres/gpu" : "gres/gpu:" + base::to_lower(type);
}

std::optional<std::vector<AccountShare>> shares_of(CommandCall& call) {
  auto client = call.client();
  if (!client) return std::nullopt;
  const auto body = client->get("/v1/shares");
  if (!body) {
    call.fail(body.error());
    return std::nullopt;
  }
  const auto list = client::message_of<v1::ListSharesResponse>(*body);
  if (!list) {
    call.fail("the list of shares is not a JSON object");
    return std::nullopt;
  }
  const auto budgets = budgets_of(*client);
  if (!budgets) {
    call.fail(budgets.error());
    return std::nullopt;
  }
  std::vector<AccountShare> rows;
  for (const v1::Share& share : list->shares()) {
    rows.push_back({.share = share});
    put_limits(*list, *budgets, rows.back());
  }
  if (list->order() == "fair_share") show_levels(rows);
  return rows;
}

}  // namespace gpu_platform::shims
