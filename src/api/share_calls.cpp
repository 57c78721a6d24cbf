#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/calls.h"
#include "controller/shares.h"

// Who has used how much of what is theirs.

namespace gpu_platform::api {

namespace {

double of_whole(std::uint64_t part) {
  return static_cast<double>(part) / static_cast<double>(std::uint64_t{1} << 32);
}

void to_proto(const scheduling::ShareRow& row, v1::Share& out) {
  out.set_team(row.team);
  out.set_user(row.user);
  out.set_parent(row.parent);
  out.set_depth(row.depth);
  out.set_shares(row.shares);
  out.set_normalized_shares(of_whole(row.normal_shares));
  out.set_use(of_whole(row.use));
  out.set_effective_use(of_whole(row.effective_use));
  out.set_fair_share(static_cast<double>(row.factor) / scheduling::kMaxFactor);
  out.set_place(row.place);
}

// The rows of a team and of what is below it: a team stands before its children.
class Below {
 public:
  explicit Below(const std::string& team) : teams_{team} {}
  bool has(const scheduling::ShareRow& row) {
    if (!row.user.empty()) return teams_.contains(row.team);
    if (teams_.contains(row.parent)) teams_.insert(row.team);
    return teams_.contains(row.team);
  }

 private:
  std::set<std::string> teams_;
};

}  // namespace

base::Result<v1::ListSharesResponse> Calls::shares(const v1::ListSharesRequest& request) const {
  const auto snapshot = core_.snapshots.snapshot();
  const model::Policy& policy = *snapshot->policy;
  const controller::Shares shares = controller::shares_of(*snapshot);
  const auto is_asked = [&](const scheduling::ShareRow& row) {
    return row.user.empty() && row.team == request.team();
  };
  if (!request.team().empty() && std::ranges::none_of(shares.rows, is_asked)) {
    return base::fail(
        base::ErrorCode::kNotFound,
        fmt::format("there is no team '{}': GET /v1/shares has those there are", request.team()));
  }
  v1::ListSharesResponse out;
  out.set_order(std::string(to_string(policy.order)));
  out.set_counted(shares.is_counted);
  const std::int64_t half_life = base::whole_milliseconds(policy.fair_share.half_life);
  out.set_half_life_seconds(static_cast<double>(half_life) / 1000);
  Below below(request.team());
  for (const scheduling::ShareRow& row : shares.rows) {
    const bool is_below = request.team().empty() || below.has(row);
    if (!is_below || (!request.user().empty() && row.user != request.user())) continue;
    to_proto(row, *out.add_shares());
  }
  return out;
}

}  // namespace gpu_platform::api
