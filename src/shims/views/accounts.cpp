#include "shims/views/accounts.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/letters.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

// With 'fair_share' the order is that of Slurm's Fair Tree, whose sshare shows parts of a level:
// the shares beside those of the siblings, the usage beside that of the parent, and for users
// their turn. Sources: sshare(1) and "Fair Tree Fairshare Algorithm" of Slurm.
void show_levels(std::vector<Json>& rows) {
  const auto users = std::ranges::count_if(rows, is_user);
  const auto is_top = [](const Json& share) {
    return cli::integer_at(share, "depth").value_or(0) == 0;
  };
  std::map<std::string, double> shares_at;
  std::map<std::string, double> use_of;  // of a team; of the organisation: the empty name
  for (const Json& share : rows) {
    if (!is_top(share))
      shares_at[text_at(share, "parent")] += cli::number_at(share, "shares").value_or(0);
    if (!is_user(share)) use_of[text_at(share, "team")] = cli::number_at(share, "use").value_or(0);
  }
  for (Json& share : rows) {
    if (is_top(share)) continue;
    const std::string level = text_at(share, "parent");
    const double above = use_of[level];
    const double use = cli::number_at(share, "use").value_or(0);
    share["normalized_shares"] = cli::number_at(share, "shares").value_or(0) / shares_at[level];
    share["effective_use"] = above > 0 ? use / above : 0;
    const auto place = cli::integer_at(share, "place").value_or(0);
    if (place > 0) {
      share["fair_share"] = static_cast<double>(users - place + 1) / static_cast<double>(users);
    }
  }
}

void add_limits(const Json& quotas, Json& share) {
  const std::string_view holder = is_user(share) ? "user" : "team";
  const std::string name = text_at(share, holder);
  if (name.empty()) return;
  std::string gpus;
  std::string minutes;
  const auto add = [](std::string& list, const std::string& type, std::int64_t number) {
    list += fmt::format("{}{}={}", list.empty() ? "" : ",", gpu_resource(type), number);
  };
  for (const Json& quota : quotas) {
    if (text_at(quota, "holder") != holder || text_at(quota, "name") != name) continue;
    const std::string type = text_at(quota, "gpu_type");
    const auto running = cli::integer_at(quota, "max_running_jobs");
    const auto queued = cli::integer_at(quota, "max_queued_jobs");
    if (type.empty() && running) share["grp_jobs"] = fmt::format("{}", *running);
    if (type.empty() && running && queued)
      share["grp_submit"] = fmt::format("{}", *running + *queued);
    if (const auto most = cli::integer_at(quota, "max_gpus")) add(gpus, type, *most);
    if (const auto hours = cli::integer_at(quota, "gpu_hours")) add(minutes, type, *hours * 60);
  }
  share["grp_tres"] = gpus;
  share["grp_tres_mins"] = minutes;
}

}  // namespace

bool is_user(const Json& share) {
  return !text_at(share, "user").empty();
}

std::string account_of(const Json& share) {
  const std::string team = text_at(share, "team");
  return team.empty() ? std::string(kRootAccount) : team;
}

std::string gpu_resource(const std::string& type) {
  return type.empty() ? "gres/gpu" : "gres/gpu:" + base::to_lower(type);
}

std::optional<std::vector<Json>> shares_of(CommandCall& call) {
  auto client = call.client();
  if (!client) return std::nullopt;
  const auto body = client->get("/v1/shares");
  if (!body) {
    call.fail(body.error());
    return std::nullopt;
  }
  const auto document = cli::parse_object(*body);
  if (!document) {
    call.fail("the list of shares is not a JSON object");
    return std::nullopt;
  }
  const Json& shares = cli::list_at(*document, "shares");
  std::vector<Json> rows(shares.begin(), shares.end());
  for (Json& row : rows) add_limits(cli::list_at(*document, "quotas"), row);
  if (text_at(*document, "order") == "fair_share") show_levels(rows);
  return rows;
}

}  // namespace gpu_platform::shims
