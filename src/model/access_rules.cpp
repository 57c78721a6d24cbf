#include "model/access_rules.h"
#include "model/job_spec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace gpu_platform::model {

namespace {

constexpr std::array<std::string_view, kSights> kSightNames = {"jobs", "commands", "output",
                                                               "usage"};

// The right to see it of all users.
Right right_to(Sight sight) {
  constexpr std::array<Right, kSights> kToSee = {Right::kSeeJobs, Right::kSeeCommands,
                                                 Right::kSeeOutput, Right::kSeeUsage};
  return kToSee[static_cast<std::size_t>(sight)];
}

bool contains(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// The teams of one user, while they are gathered.
struct TeamNames {
  std::set<std::string> member_of;
  std::set<std::string> coordinates;
};

}  // namespace

std::string_view to_string(Sight sight) {
  return kSightNames[static_cast<std::size_t>(sight)];
}

AccessRules::AccessRules(AccessSettings settings, const Organisation& organisation,
                         std::uint32_t own_uid)
    : settings_(std::move(settings)),
      roles_(std::make_shared<const UserRoles>(
          UserRoles{settings_.default_role, settings_.roles, own_uid})) {
  std::map<std::string, TeamNames> by_user;
  for (const Team& team : organisation.teams) {
    for (const Member& member : team.members) by_user[member.user].member_of.insert(team.name);
  }
  for (const auto& [team, users] : settings_.coordinators) {
    const std::set<std::string> all = with_teams_below(organisation, team);
    for (const std::string& user : users) by_user[user].coordinates.insert(all.begin(), all.end());
  }
  for (const auto& [user, names] : by_user) {
    // Names alone: a caller who is root by its uid always reaches everything.
    teams_[user] =
        std::make_shared<const Teams>(Teams{{names.member_of.begin(), names.member_of.end()},
                                            {names.coordinates.begin(), names.coordinates.end()},
                                            roles_->of_name(user),
                                            roles_});
  }
}

// A credential from another machine never stands for root.
bool AccessRules::is_root(const Caller& caller) const {
  return roles_->is_root(caller.uid) && caller.door != Door::kListener;
}

void AccessRules::settle(Caller& caller) const {
  const Role role = is_root(caller) ? Role::kAdmin : roles_->of_name(caller.user);
  caller.role = std::min(role, caller.max_role);
  const auto teams = teams_.find(caller.user);
  caller.teams = teams == teams_.end() ? nullptr : teams->second;
}

std::vector<std::string> AccessRules::coordinators_of(std::string_view team) const {
  const auto found = settings_.coordinators.find(team);
  if (found == settings_.coordinators.end()) return {};
  return {found->second.begin(), found->second.end()};
}

bool AccessRules::may_act_as_users(const Caller& caller) const {
  if (caller.role != Role::kAdmin) return false;
  return is_root(caller) || settings_.admins_act_as_users;
}

View::View(std::shared_ptr<const AccessRules> rules, Caller caller)
    : rules_(std::move(rules)), caller_(std::move(caller)) {
  rules_->settle(caller_);
}

bool View::is_open(Sight sight) const {
  return has(caller_, right_to(sight)) || rules_->audience(sight) == Audience::kAll;
}

bool View::coordinates(std::string_view team) const {
  return caller_.teams != nullptr && contains(caller_.teams->coordinates, team);
}

bool View::coordinates_jobs_of(std::string_view user, std::uint32_t uid,
                               std::string_view team) const {
  return coordinates(team) && !caller_.teams->is_below(user, uid);
}

bool View::coordinates(const JobSpec& spec) const {
  return coordinates_jobs_of(spec.user, spec.uid, spec.team);
}

bool View::is_member_of(std::string_view team) const {
  return caller_.teams != nullptr && contains(caller_.teams->member_of, team);
}

bool View::sees(Sight sight, const JobSpec& spec) const {
  if (spec.uid == caller_.uid || is_open(sight)) return true;
  if (sight == Sight::kJobs && coordinates(spec)) return true;
  return rules_->audience(sight) == Audience::kTeam &&
         (is_member_of(spec.team) || coordinates(spec));
}

bool View::sees_jobs_of(std::string_view user, std::string_view team) const {
  if ((!user.empty() && user == caller_.user) || is_open(Sight::kJobs)) return true;
  // Of other users, the name says which role they have.
  constexpr std::uint32_t kNoUid = std::numeric_limits<std::uint32_t>::max();
  if (coordinates_jobs_of(user, user == "root" ? 0 : kNoUid, team)) return true;
  return rules_->audience(Sight::kJobs) == Audience::kTeam && is_member_of(team);
}

bool View::sees_command_of(std::optional<std::uint32_t> uid) const {
  return uid == caller_.uid || is_open(Sight::kCommands);
}

bool View::sees_usage_of(std::string_view user, std::string_view team) const {
  if (user == caller_.user || is_open(Sight::kUsage)) return true;
  return rules_->audience(Sight::kUsage) == Audience::kTeam &&
         (is_member_of(team) || coordinates(team));
}

bool View::sees_jobs_of_others() const {
  if (is_open(Sight::kJobs)) return true;
  if (caller_.teams == nullptr) return false;
  return !caller_.teams->coordinates.empty() ||
         (rules_->audience(Sight::kJobs) == Audience::kTeam && !caller_.teams->member_of.empty());
}

}  // namespace gpu_platform::model
