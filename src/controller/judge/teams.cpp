#include "controller/judge/teams.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "model/access.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::RunTimeTeam;
using model::SetTeam;
using model::Team;

namespace {

std::unexpected<base::Error> no_such_team(const State& state, const std::string& name) {
  std::vector<std::string_view> known;
  for (const Team& team : state.policy->organisation->teams) known.push_back(team.name);
  return base::fail(ErrorCode::kNotFound,
                    fmt::format("there is no team '{}'{}", name, base::did_you_mean(name, known)),
                    "name");
}

// The place where a person finds the teams of the configuration.
std::string place_of_teams(const State& state) {
  const std::string& file = state.teams->configured.file;
  return file.empty() ? "the configuration" : fmt::format("the configuration ({})", file);
}

base::Status check_caller(const State& state, const model::Caller& caller, const SetTeam& command) {
  if (!model::may_touch_team(caller, command.name)) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("user {} may not change the team {}: ask an administrator, or a "
                                  "coordinator of the team",
                                  caller.user, command.name),
                      "name");
  }
  if (model::may_touch_site(caller)) return {};
  const auto refuse = [&](std::string_view what, std::string field) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("{}: only an administrator may {}; a coordinator may invite and "
                                  "remove members of the team and lower its limits",
                                  field, what),
                      field);
  };
  const bool is_there = find_team(*state.policy->organisation, command.name) != nullptr;
  if (!is_there || command.presence == SetTeam::Presence::kNew)
    return refuse("make a team", "name");
  if (command.parent) return refuse("move a team", "parent");
  if (command.shares) return refuse("change its shares", "shares");
  if (!command.add_coordinators.empty()) {
    return refuse("name its coordinators", "add_coordinators");
  }
  if (!command.remove_coordinators.empty()) {
    return refuse("dismiss its coordinators", "remove_coordinators");
  }
  const bool names_default = std::ranges::any_of(
      command.add_members, [](const auto& member) { return member.is_default.has_value(); });
  if (names_default)
    return refuse("only with add_members: they get this default team", "add_members");
  for (const model::QuotaField& row : model::kQuotaFields) {
    if (row.is_limit || !command.quota.contains(row.key)) continue;
    return refuse("change what is guaranteed", std::string(row.name));
  }
  return {};
}

base::Status check_presence(const State& state, const SetTeam& command) {
  const bool is_there = find_team(*state.policy->organisation, command.name) != nullptr;
  if (is_there && command.presence == SetTeam::Presence::kNew) {
    return base::fail(
        ErrorCode::kAlreadyExists,
        fmt::format("name: team '{}' exists already; 'team set' changes it", command.name), "name");
  }
  if (is_there) return {};
  if (command.presence == SetTeam::Presence::kPresent) return no_such_team(state, command.name);
  if (!model::is_team_name(command.name)) {
    return base::invalid("name",
                         "name: 1 to 64 letters, digits, '-', '_' and '.', the first a letter");
  }
  if (state.teams->run_time.size() >= model::kMaxRunTimeTeams) {
    return base::fail(
        ErrorCode::kResourceExhausted,
        fmt::format("{} teams are set at run time, which is the limit; remove some, or "
                    "define them in the configuration",
                    model::kMaxRunTimeTeams));
  }
  return {};
}

bool is_empty(const RunTimeTeam& team) {
  RunTimeTeam nothing;
  nothing.name = team.name;
  nothing.set_by = team.set_by;
  nothing.set_at = team.set_at;
  return team == nothing;
}

base::Status check_headroom(store::Headroom headroom) {
  if (headroom == store::Headroom::kAmple) return {};
  return base::fail(ErrorCode::kResourceExhausted,
                    "the disk of the data directory is full: no teams are changed until space is "
                    "freed");
}

// Carries a command into what is set of its team.
class TeamChange {
 public:
  TeamChange(const State& state, const model::Caller& caller, const SetTeam& command)
      : state_(state),
        caller_(caller),
        command_(command),
        configured_(find_team(state.teams->configured, command.name)) {
    const auto before = state.teams->run_time.find(command.name);
    if (before != state.teams->run_time.end()) team_ = before->second;
    team_.name = command.name;
  }

  // Returns what is set of the team then.
  base::Result<RunTimeTeam> result() && {
    TRY(change_place());
    TRY(change_coordinators());
    TRY(change_members());
    for (const auto& [key, value] : command_.quota) {
      TRY(change_limit(model::field_of(key), value));
    }
    TRY(check_limits());
    return std::move(team_);
  }

 private:
  std::unexpected<base::Error> is_configured(std::string_view key, std::string field) const {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("{}: {} sets it for team {} ({}); change it there and reload the "
                                  "configuration",
                                  field, place_of_teams(state_), command_.name, key),
                      field);
  }

  base::Status change_place() {
    if (command_.shares) {
      if (configured_ != nullptr) return is_configured("shares", "shares");
      if (*command_.shares == 0 || *command_.shares > model::kMaxTeamShares) {
        return base::invalid("shares",
                             fmt::format("shares: a number from 1 to {}", model::kMaxTeamShares));
      }
      team_.shares = *command_.shares;
    }
    if (!command_.parent) return {};
    if (configured_ != nullptr) return is_configured("parent", "parent");
    team_.parent = *command_.parent;
    if (team_.parent.empty()) return {};
    if (team_.parent == team_.name) {
      return base::invalid("parent", "parent: a team cannot be its own parent");
    }
    if (find_team(*state_.policy->organisation, team_.parent) == nullptr) {
      auto missing = no_such_team(state_, team_.parent);
      missing.error().field = "parent";
      missing.error().message = "parent: " + missing.error().message;
      return missing;
    }
    return check_circle();
  }

  // What was set of other teams may hold for them again one day.
  base::Status check_circle() {
    std::string above = team_.parent;
    for (std::size_t step = 0; !above.empty() && step <= model::kMaxRunTimeTeams; ++step) {
      if (above == team_.name) {
        return base::fail(ErrorCode::kFailedPrecondition,
                          fmt::format("parent: team {} is below {}, so it cannot be its parent",
                                      team_.parent, team_.name),
                          "parent");
      }
      const auto set = state_.teams->run_time.find(above);
      const Team* named = find_team(state_.teams->configured, above);
      above = named != nullptr                      ? named->parent
              : set != state_.teams->run_time.end() ? set->second.parent
                                                    : std::string();
    }
    return {};
  }

  base::Status change_coordinators() {
    for (const std::string& user : command_.remove_coordinators) {
      if (std::erase(team_.coordinators, user) > 0) continue;
      if (configured_ != nullptr) return is_configured("coordinators", "remove_coordinators");
      return base::fail(
          ErrorCode::kNotFound,
          fmt::format("remove_coordinators: user {} is not a coordinator of the team {}", user,
                      command_.name),
          "remove_coordinators");
    }
    if (command_.add_coordinators.empty()) return {};
    if (configured_ != nullptr) return is_configured("coordinators", "add_coordinators");
    for (const std::string& user : command_.add_coordinators) {
      TRY(check_user(user, "add_coordinators"));
      if (std::ranges::find(team_.coordinators, user) == team_.coordinators.end()) {
        team_.coordinators.push_back(user);
      }
    }
    if (team_.coordinators.size() <= model::kMaxRunTimeCoordinators) return {};
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("add_coordinators: a team has {} coordinators at most",
                                  model::kMaxRunTimeCoordinators),
                      "add_coordinators");
  }

  static base::Status check_user(const std::string& user, std::string field) {
    if (model::is_member_name(user)) return {};
    std::string text =
        fmt::format("{}: the name of a user has 1 to 255 bytes without blanks, ',' and ':'", field);
    return base::invalid(std::move(field), std::move(text));
  }

  base::Status change_members() {
    for (const std::string& user : command_.remove_members) {
      if (remove_member(user)) continue;
      if (has_configured_members()) return is_configured("users", "remove_members");
      return base::fail(
          ErrorCode::kNotFound,
          fmt::format("remove_members: user {} is not a member of the team {} and is not invited",
                      user, command_.name),
          "remove_members");
    }
    if (command_.add_members.empty()) return {};
    if (has_configured_members()) return is_configured("users", "add_members");
    for (const SetTeam::NewMember& member : command_.add_members) {
      TRY(check_user(member.user, "add_members"));
      if (member.shares == 0 || member.shares > model::kMaxTeamShares) {
        return base::invalid("add_members",
                             fmt::format("add_members: shares are 1 to {}", model::kMaxTeamShares));
      }
      add_member(member);
    }
    if (team_.members.size() + team_.invited.size() <= model::kMaxRunTimeMembers) return {};
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("add_members: a team has {} members at most that are set at run "
                                  "time; name more of them in the configuration",
                                  model::kMaxRunTimeMembers),
                      "add_members");
  }
  bool remove_member(const std::string& user) {
    std::erase(team_.default_of, user);
    const auto is_of = [&](const auto& each) { return each.user == user; };
    return std::erase_if(team_.members, is_of) + std::erase_if(team_.invited, is_of) > 0;
  }
  // A user that a coordinator adds has to accept it; the coordinator does so by asking.
  void add_member(const SetTeam::NewMember& member) {
    const auto found = std::ranges::find(team_.members, member.user, &model::Member::user);
    const bool is_at_once = model::may_touch_site(caller_) || member.user == caller_.user;
    if (found != team_.members.end()) {
      found->shares = member.shares;
    } else if (is_at_once) {
      remove_member(member.user);
      team_.members.push_back({member.user, member.shares});
    } else {
      invite(member);
    }
    if (!member.is_default) return;
    std::erase(team_.default_of, member.user);
    if (*member.is_default) team_.default_of.push_back(member.user);
  }
  void invite(const SetTeam::NewMember& member) {
    const auto found = std::ranges::find(team_.invited, member.user, &model::Invitation::user);
    if (found != team_.invited.end()) {
      found->shares = member.shares;
    } else {
      team_.invited.push_back({member.user, member.shares, caller_.user});
    }
  }
  bool has_configured_members() const {
    return configured_ != nullptr && !configured_->members.empty();
  }

  base::Status change_limit(const model::QuotaField& row, std::optional<std::uint32_t> value) {
    const bool is_taken = configured_ != nullptr && configured_->quota.*row.member;
    if (is_taken && value) return is_configured(row.name, std::string(row.name));
    if (model::may_touch_site(caller_)) {
      team_.quota.*row.member = value;
      team_.lowered.*row.member = std::nullopt;
      return {};
    }
    const std::optional<std::uint32_t> most = team_.quota.*row.member;
    if (value && most && *value > *most) {
      return base::fail(
          ErrorCode::kPermissionDenied,
          fmt::format(
              "{}: {} exceeds {}, which an administrator set; a coordinator may only lower it",
              row.name, *value, *most),
          std::string(row.name));
    }
    team_.lowered.*row.member = value;
    return {};
  }

  // Beside those of the configuration.
  base::Status check_limits() const {
    if (command_.quota.empty()) return {};
    const model::Quota quota = configured_ == nullptr ? model::Quota() : configured_->quota;
    const model::Quota then = overlaid(quota, team_);
    const auto problem = problem_of(then);
    if (!problem) return {};
    const bool is_below_guarantee =
        then.max_gpus && then.guaranteed_gpus && *then.max_gpus < *then.guaranteed_gpus;
    if (is_below_guarantee && !command_.quota.contains(model::QuotaKey::kGuaranteedGpus)) {
      return base::fail(
          ErrorCode::kFailedPrecondition,
          fmt::format("max_gpus {}: guaranteed_gpus of team {} is {}; lower that as well",
                      *then.max_gpus, command_.name, *then.guaranteed_gpus),
          "max_gpus");
    }
    const std::string key(to_string(problem->key));
    return base::fail(ErrorCode::kFailedPrecondition, fmt::format("{}: {}", key, problem->text),
                      key);
  }

  const State& state_;
  const model::Caller& caller_;
  const SetTeam& command_;
  const Team* configured_;  // null: the configuration does not name it
  RunTimeTeam team_;
};

}  // namespace

base::Result<std::optional<model::Event>> judge_team(const State& state,
                                                     const model::Caller& caller,
                                                     const SetTeam& command, base::Instant now,
                                                     store::Headroom headroom) {
  TRY(check_caller(state, caller, command));
  TRY(check_headroom(headroom));
  TRY(check_presence(state, command));
  TRY_ASSIGN(RunTimeTeam team, TeamChange(state, caller, command).result());
  const auto before = state.teams->run_time.find(command.name);
  const bool is_known = before != state.teams->run_time.end();
  const bool is_configured = find_team(state.teams->configured, command.name) != nullptr;
  if (is_known ? team == before->second : is_configured && is_empty(team)) {
    return std::optional<model::Event>();
  }
  if (is_configured && is_empty(team)) return model::TeamRemoved{command.name, caller.user};
  team.set_by = caller.user;
  team.set_at = now;
  return model::TeamSet{std::move(team)};
}

base::Result<model::Event> judge_answer(const State& state, const model::Caller& caller,
                                        const model::AnswerInvitation& command, base::Instant now,
                                        store::Headroom headroom) {
  TRY(check_headroom(headroom));
  const auto set = state.teams->run_time.find(command.name);
  const auto is_own = [&](const model::Invitation& each) { return each.user == caller.user; };
  if (set == state.teams->run_time.end() || std::ranges::none_of(set->second.invited, is_own)) {
    return base::fail(ErrorCode::kNotFound,
                      fmt::format("name: user {} is not invited to the team '{}': a coordinator of "
                                  "the team invites",
                                  caller.user, command.name),
                      "name");
  }
  const Team* configured = find_team(state.teams->configured, command.name);
  if (command.accept && configured != nullptr && !configured->members.empty()) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("name: {} names the members of the team {}: ask an administrator",
                                  place_of_teams(state), command.name),
                      "name");
  }
  RunTimeTeam team = set->second;
  const model::Invitation invitation = *std::ranges::find_if(team.invited, is_own);
  std::erase_if(team.invited, is_own);
  if (command.accept) team.members.push_back({invitation.user, invitation.shares});
  if (configured != nullptr && is_empty(team)) {
    return model::TeamRemoved{command.name, caller.user};
  }
  team.set_by = caller.user;
  team.set_at = now;
  return model::TeamSet{std::move(team)};
}

base::Result<model::TeamRemoved> judge_removal(const State& state, const model::Caller& caller,
                                               const model::RemoveTeam& command) {
  if (!model::may_touch_site(caller)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not remove teams: ask an administrator", caller.user), "name");
  }
  const auto refuse = [&](std::string why) {
    return base::fail(ErrorCode::kFailedPrecondition, fmt::format("team {}: {}", command.name, why),
                      "name");
  };
  if (find_team(state.teams->configured, command.name) != nullptr) {
    return refuse(fmt::format("{} names it: remove it there and reload the configuration",
                              place_of_teams(state)));
  }
  if (!state.teams->run_time.contains(command.name)) return no_such_team(state, command.name);
  for (const Team& team : state.policy->organisation->teams) {
    if (team.parent != command.name) continue;
    return refuse(fmt::format("the team {} is below it: move that one first", team.name));
  }
  std::uint64_t jobs = 0;
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (!model::is_ended(job.state) && job.spec->team == command.name) ++jobs;
  });
  if (jobs > 0) {
    return refuse(
        fmt::format("{} of its jobs run or wait: let them end, or cancel them, first", jobs));
  }
  return model::TeamRemoved{command.name, caller.user};
}

}  // namespace gpu_platform::controller
