#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/quota_fields.h"
#include "model/team.h"

// Teams that people manage while the daemon runs, beside those of the configuration. A team that
// the configuration names is the configuration's in every key that it sets there; its parent, its
// shares and its coordinators are always the configuration's. Run time sets the other keys, and all
// keys of the teams that the configuration does not define.

namespace gpu_platform::model {

// An addition by a coordinator that the user has not accepted.
struct Invitation {
  std::string user;
  std::uint32_t shares = 1;
  std::string by;  // the coordinator

  friend bool operator==(const Invitation&, const Invitation&) = default;
};

// What was set of one team at run time. A regular value.
struct RunTimeTeam {
  std::string name;
  std::string parent;  // empty: the organisation itself
  std::uint32_t shares = 1;
  std::vector<Member> members;
  std::vector<std::string> coordinators;  // users
  Quota quota;                            // by administrators; without gpu_types
  // Limits below them that coordinators have set. The lower value of both is in force.
  Quota lowered;
  std::string set_by;  // the user who changed something last
  base::Instant set_at;
  std::vector<Invitation> invited;  // none of them a member
  // Those of the members whose jobs are charged to the team without naming it; by administrators.
  std::vector<std::string> default_of;

  friend bool operator==(const RunTimeTeam&, const RunTimeTeam&) = default;
};
inline constexpr std::size_t kMaxRunTimeTeams = 1'000;
inline constexpr std::size_t kMaxRunTimeMembers = 5'000;  // of one team, with who is invited
inline constexpr std::size_t kMaxRunTimeCoordinators = 100;
inline constexpr std::uint32_t kMaxTeamShares = 1'000'000;
inline constexpr std::uint32_t kMaxOverQuotaWeight = 1'000'000;

using RunTimeTeams = std::map<std::string, RunTimeTeam, std::less<>>;  // by name

// The two sources of teams.
struct TeamSources {
  Organisation configured;
  RunTimeTeams run_time;

  friend bool operator==(const TeamSources&, const TeamSources&) = default;
};

// Returns the organisation that is in force: the teams of the configuration in their order, then
// the others by name. If the configuration has changed since a team was set, the result is as
// sound as a configuration: a team without its parent, or below itself, is below the organisation,
// and limits that contradict those of the configuration are left out together.
// Cost: O(teams * depth), and the members.
Organisation organisation_in_force(const TeamSources& sources);

// Returns the configuration's limits of the team with those that are set at run time where it has
// none. They may contradict each other.
Quota overlaid(const Quota& configured, const RunTimeTeam& team);

// A value that is set at run time and hidden by the configuration.
struct HiddenValue {
  std::string key;   // "max_gpus", "members"
  std::string text;  // "12", "ann, bob"

  friend bool operator==(const HiddenValue&, const HiddenValue&) = default;
};
// Returns what the configuration hides of the team, in the order of its keys.
std::vector<HiddenValue> hidden_values(const TeamSources& sources, const RunTimeTeam& team);

// Returns the coordinators that are set at run time and not hidden, by team.
std::map<std::string, std::vector<std::string>, std::less<>> run_time_coordinators(
    const TeamSources& sources);

// Returns what contradicts itself among a team's limits and guarantees, with the key at fault;
// nothing if they are sound.
struct QuotaProblem {
  QuotaKey key = QuotaKey::kMaxGpus;
  std::string text;  // "borrow_limit needs guaranteed_gpus, which is not set"
};
std::optional<QuotaProblem> problem_of(const Quota& quota);

// As the name of a token (model/token.h). The configuration may name teams otherwise.
bool is_team_name(std::string_view name);
// 1 to 255 bytes without blanks and control characters.
bool is_member_name(std::string_view name);

}  // namespace gpu_platform::model
