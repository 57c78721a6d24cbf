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

void add_limits(const v1::ListSharesResponse& list, AccountShare& row) {
  const std::string_view holder = is_user(row.share) ? "user" : "team";
  const std::string& name = is_user(row.share) ? row.share.user() : row.share.team();
  if (name.empty()) return;
  const auto add = [](std::string& text, const std::string& type, std::uint64_t number) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", gpu_resource(type), number);
  };
  for (const v1::Quota& quota : list.quotas()) {
    if (quota.holder() != holder || quota.name() != name) continue;
    const std::string& type = quota.gpu_type();
    if (type.empty() && quota.has_max_running_jobs()) {
      row.grp_jobs = fmt::format("{}", quota.max_running_jobs());
      if (quota.has_max_queued_jobs()) {
        row.grp_submit =
            fmt::format("{}", std::uint64_t{quota.max_running_jobs()} + quota.max_queued_jobs());
      }
    }
    if (quota.has_max_gpus()) add(row.grp_tres, type, quota.max_gpus());
    if (quota.has_gpu_hours()) add(row.grp_tres_mins, type, std::uint64_t{quota.gpu_hours()} * 60);
  }
}

}  // namespace

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
  std::vector<AccountShare> rows;
  for (const v1::Share& share : list->shares()) {
    rows.push_back({.share = share});
    add_limits(*list, rows.back());
  }
  if (list->order() == "fair_share") show_levels(rows);
  return rows;
}

}  // namespace gpu_platform::shims
