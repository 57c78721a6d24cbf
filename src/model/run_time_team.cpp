#include "model/run_time_team.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/token.h"

namespace gpu_platform::model {

namespace {

std::optional<std::uint32_t> set_value(const RunTimeTeam& team, const QuotaField& row) {
  const std::optional<std::uint32_t> value = team.quota.*row.member;
  const std::optional<std::uint32_t> lowered = team.lowered.*row.member;
  if (!value || !lowered) return value ? value : lowered;
  return std::min(*value, *lowered);
}

std::vector<Member> members_in_force(const RunTimeTeam& team) {
  std::vector<Member> members = team.members;
  for (Member& member : members) {
    member.only_if_named = std::ranges::find(team.default_of, member.user) == team.default_of.end();
  }
  return members;
}

Quota quota_in_force(const Quota& configured, const RunTimeTeam& team) {
  Quota quota = overlaid(configured, team);
  return problem_of(quota) ? configured : quota;
}

// Returns whether the team is met on the way up from one that is to be above it.
bool is_above(const Organisation& organisation, const std::string& team, const Team* from) {
  for (std::size_t step = 0; from != nullptr && step <= organisation.teams.size(); ++step) {
    if (from->name == team) return true;
    from = find_team(organisation, from->parent);
  }
  return false;
}

std::string text_of(const std::vector<Member>& members) {
  std::vector<std::string> names;
  for (const Member& member : members) names.push_back(member.user);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Quota overlaid(const Quota& configured, const RunTimeTeam& team) {
  Quota quota = configured;
  for (const QuotaField& row : kQuotaFields) {
    if (!(quota.*row.member)) quota.*row.member = set_value(team, row);
  }
  return quota;
}

Organisation organisation_in_force(const TeamSources& sources) {
  Organisation result = sources.configured;
  for (Team& team : result.teams) {
    const auto set = sources.run_time.find(team.name);
    if (set == sources.run_time.end()) continue;
    if (team.members.empty()) team.members = members_in_force(set->second);
    team.quota = quota_in_force(team.quota, set->second);
  }
  const std::size_t configured = result.teams.size();
  for (const auto& [name, set] : sources.run_time) {
    if (find_team(sources.configured, name) != nullptr) continue;
    Team team;
    team.name = name;
    team.shares = set.shares;
    team.members = members_in_force(set);
    team.quota = quota_in_force({}, set);
    result.teams.push_back(std::move(team));
  }
  // One after the other, so that the last one of a circle is the one that is put below the
  // organisation.
  for (std::size_t i = configured; i < result.teams.size(); ++i) {
    Team& team = result.teams[i];
    const std::string& parent = sources.run_time.find(team.name)->second.parent;
    const Team* above = parent.empty() ? nullptr : find_team(result, parent);
    if (above != nullptr && !is_above(result, team.name, above)) team.parent = parent;
  }
  return result;
}

std::vector<HiddenValue> hidden_values(const TeamSources& sources, const RunTimeTeam& team) {
  std::vector<HiddenValue> hidden;
  const Team* configured = find_team(sources.configured, team.name);
  if (configured == nullptr) return hidden;
  const auto hide = [&](std::string_view key, std::string text) {
    hidden.push_back({std::string(key), std::move(text)});
  };
  if (team.parent != configured->parent && !team.parent.empty()) hide("parent", team.parent);
  if (team.shares != configured->shares && team.shares != 1) {
    hide("shares", fmt::format("{}", team.shares));
  }
  const bool has_other_members = !configured->members.empty() && !team.members.empty();
  if (has_other_members) hide("members", text_of(team.members));
  if (!team.coordinators.empty()) {
    hide("coordinators", fmt::format("{}", fmt::join(team.coordinators, ", ")));
  }
  const bool is_contradicted = problem_of(overlaid(configured->quota, team)).has_value();
  for (const QuotaField& row : kQuotaFields) {
    const auto value = set_value(team, row);
    if (!value || (!is_contradicted && !(configured->quota.*row.member))) continue;
    hide(row.name, fmt::format("{}", *value));
  }
  return hidden;
}

std::map<std::string, std::vector<std::string>, std::less<>> run_time_coordinators(
    const TeamSources& sources) {
  std::map<std::string, std::vector<std::string>, std::less<>> found;
  for (const auto& [name, team] : sources.run_time) {
    if (team.coordinators.empty() || find_team(sources.configured, name) != nullptr) continue;
    found.emplace(name, team.coordinators);
  }
  return found;
}

std::optional<QuotaProblem> problem_of(const Quota& quota) {
  std::uint64_t of_types = 0;
  for (const TypeQuota& type : quota.gpu_types) of_types += type.guaranteed_gpus.value_or(0);
  const auto above = [](std::string_view what, std::uint64_t value, std::string_view most,
                        std::uint64_t limit) {
    return fmt::format("{} ({}) exceeds {} ({})", what, value, most, limit);
  };
  if (quota.over_quota_weight.value_or(0) > kMaxOverQuotaWeight) {
    return QuotaProblem{QuotaKey::kOverQuotaWeight,
                        fmt::format("over_quota_weight is 0 to {}", kMaxOverQuotaWeight)};
  }
  if (quota.max_gpus && of_types > *quota.max_gpus) {
    return QuotaProblem{QuotaKey::kMaxGpus, above("guaranteed_gpus of all gpu_types", of_types,
                                                  "max_gpus", *quota.max_gpus)};
  }
  if (!quota.guaranteed_gpus) {
    for (const QuotaKey key :
         {QuotaKey::kBorrowLimit, QuotaKey::kLendLimit, QuotaKey::kOverQuotaWeight}) {
      if (!(quota.*field_of(key).member)) continue;
      return QuotaProblem{
          key,
          fmt::format("{} needs guaranteed_gpus, which is not set; set it to 0 for no guarantee",
                      to_string(key))};
    }
    return std::nullopt;
  }
  const std::uint32_t guaranteed = *quota.guaranteed_gpus;
  if (quota.max_gpus && guaranteed > *quota.max_gpus) {
    return QuotaProblem{QuotaKey::kGuaranteedGpus,
                        above("guaranteed_gpus", guaranteed, "max_gpus", *quota.max_gpus)};
  }
  if (of_types > guaranteed) {
    return QuotaProblem{QuotaKey::kGuaranteedGpus, above("guaranteed_gpus of all gpu_types",
                                                         of_types, "guaranteed_gpus", guaranteed)};
  }
  if (quota.lend_limit && *quota.lend_limit > guaranteed - of_types) {
    return QuotaProblem{
        QuotaKey::kLendLimit,
        above("lend_limit", *quota.lend_limit,
              "the part of guaranteed_gpus that is not in gpu_types", guaranteed - of_types)};
  }
  return std::nullopt;
}

bool is_team_name(std::string_view name) {
  return is_token_name(std::string(name));
}

bool is_member_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  if (name.empty() || name.size() > kLongest) return false;
  return std::ranges::none_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f || c == ',' || c == ':';
  });
}

}  // namespace gpu_platform::model
