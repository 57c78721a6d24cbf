#include "model/team.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace gpu_platform::model {

namespace {

constexpr base::Duration kDay = base::hours(24);
constexpr base::Duration kToFirstMonday = base::hours(4 * 24);  // 1970-01-01 was a Thursday

std::string teams_text(const std::vector<std::string>& names, std::string_view user) {
  if (names.empty()) return fmt::format("user {} is in no team: leave it out", user);
  return fmt::format("user {} may name {}", user, fmt::join(names, ", "));
}

}  // namespace

std::string_view to_string(QuotaPeriod period) {
  switch (period) {
    case QuotaPeriod::kDay:
      return "day";
    case QuotaPeriod::kWeek:
      return "week";
    case QuotaPeriod::kThirtyDays:
      return "month";
  }
  CHECK(false);
  std::unreachable();
}

std::string_view to_string(AllocationMode mode) {
  switch (mode) {
    case AllocationMode::kGuaranteed:
      return "guaranteed";
    case AllocationMode::kStatic:
      return "static";
    case AllocationMode::kDynamic:
      return "dynamic";
    case AllocationMode::kHybrid:
      return "hybrid";
  }
  CHECK(false);
  std::unreachable();
}

base::Duration length_of(QuotaPeriod period) {
  switch (period) {
    case QuotaPeriod::kDay:
      return kDay;
    case QuotaPeriod::kWeek:
      return kDay * 7;
    case QuotaPeriod::kThirtyDays:
      return kDay * 30;
  }
  CHECK(false);
  std::unreachable();
}

base::Instant begin_of(QuotaPeriod period, base::Instant at) {
  const base::Instant epoch =
      period == QuotaPeriod::kWeek ? base::Instant() + kToFirstMonday : base::Instant();
  const std::int64_t length = length_of(period).value();
  std::int64_t count = (at - epoch).value() / length;
  if ((at - epoch).value() % length < 0) --count;
  return epoch + length_of(period) * count;
}

const Team* find_team(const Organisation& organisation, std::string_view name) {
  const auto found = std::ranges::find(organisation.teams, name, &Team::name);
  return found == organisation.teams.end() ? nullptr : &*found;
}

bool is_member(const Team& team, std::string_view user) {
  return std::ranges::find(team.members, user, &Member::user) != team.members.end();
}

std::set<std::string> with_teams_below(const Organisation& organisation, const std::string& top) {
  std::set<std::string> found = {top};
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const Team& team : organisation.teams) {
      if (found.contains(team.parent)) found.insert(team.name);
    }
  }
  return found;
}

base::Result<std::string> team_for(const Organisation& organisation, const std::string& user,
                                   const std::string& asked, bool any_team) {
  if (organisation.teams.empty()) return asked;
  std::vector<std::string> own;
  std::optional<std::string> by_default;
  for (const Team& team : organisation.teams) {
    const auto member = std::ranges::find(team.members, user, &Member::user);
    if (member == team.members.end()) continue;
    own.push_back(team.name);
    if (!by_default && !member->only_if_named) by_default = team.name;
  }
  if (asked.empty()) return by_default.value_or(std::string());
  if (std::ranges::find(own, asked) != own.end()) return asked;
  if (find_team(organisation, asked) == nullptr) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("team: there is no team '{}'; {}", asked, teams_text(own, user)),
                      "team");
  }
  if (any_team) return asked;
  return base::fail(base::ErrorCode::kPermissionDenied,
                    fmt::format("team: user {} is not a member of team '{}'; {}", user, asked,
                                teams_text(own, user)),
                    "team");
}

}  // namespace gpu_platform::model
