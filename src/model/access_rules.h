#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/access.h"
#include "model/team.h"

// The site's rules for roles, and for what users see of others (configuration: `access`, and
// the coordinators of teams).

namespace gpu_platform::model {

// Who sees something of a job: its owner, the members and coordinators of the team that it is
// charged to, too, or every user.
enum class Audience : std::uint8_t { kOwner, kTeam, kAll };
inline constexpr std::size_t kAudiences = 3;

// What is seen.
enum class Sight : std::uint8_t {
  kJobs,      // that the job is there, what it asks for, and its state
  kCommands,  // its command, directory and files; the program of a process on a GPU
  kOutput,    // what it prints
  kUsage,     // what a user has used
};
inline constexpr std::size_t kSights = 4;
std::string_view to_string(Sight sight);  // "jobs", as in access.visibility

struct AccessSettings {
  Role default_role = Role::kUser;  // kViewer or kUser
  std::map<std::string, Role, std::less<>> roles;
  std::map<std::string, std::set<std::string>, std::less<>> coordinators;  // users, by team
  bool admins_act_as_users = false;
  Audience visibility[kSights] = {Audience::kOwner, Audience::kOwner, Audience::kOwner,
                                  Audience::kAll};

  friend bool operator==(const AccessSettings&, const AccessSettings&) = default;
};

// Immutable. Asking costs O(log users).
class AccessRules {
 public:
  // Root alone is more than a user, and the user that the daemon runs as.
  explicit AccessRules(std::uint32_t own_uid = 0) : AccessRules({}, {}, own_uid) {}
  AccessRules(AccessSettings settings, const Organisation& organisation, std::uint32_t own_uid);

  // Gives the caller its role, which is at most that of its credential, and its teams.
  void settle(Caller& caller) const;
  // Returns whether the caller may act with the rights of other users (exec, submissions).
  bool may_act_as_users(const Caller& caller) const;

  // Returns the users who coordinate the team itself, by name.
  std::vector<std::string> coordinators_of(std::string_view team) const;

  Audience audience(Sight sight) const {
    return settings_.visibility[static_cast<std::size_t>(sight)];
  }

 private:
  bool is_root(const Caller& caller) const;

  AccessSettings settings_;
  std::shared_ptr<const UserRoles> roles_;
  std::map<std::string, std::shared_ptr<const Teams>, std::less<>> teams_;  // by user
};

// What a caller sees of others.
class View {
 public:
  // The role and the teams of the caller are those that the rules give it; former ones do not
  // count.
  View(std::shared_ptr<const AccessRules> rules, Caller caller);

  bool sees(Sight sight, const JobSpec& spec) const;
  // The user of the process, if known.
  bool sees_command_of(std::optional<std::uint32_t> uid) const;
  bool sees_usage_of(std::string_view user, std::string_view team) const;
  // The same as of the jobs of that user in that team, where nothing else is left of them.
  bool sees_jobs_of(std::string_view user, std::string_view team) const;
  // Returns whether it sees the jobs of all users.
  bool sees_all_jobs() const { return is_open(Sight::kJobs); }
  // Returns false if it sees only its own jobs.
  bool sees_jobs_of_others() const;

 private:
  bool is_open(Sight sight) const;  // to this caller, whosever it is
  bool is_member_of(std::string_view team) const;
  // Returns whether it coordinates the team that the job is charged to.
  bool coordinates(const JobSpec& spec) const;
  // `uid`: of the user.
  bool coordinates_jobs_of(std::string_view user, std::uint32_t uid, std::string_view team) const;
  bool coordinates(std::string_view team) const;

  std::shared_ptr<const AccessRules> rules_;  // never null
  Caller caller_;
};

}  // namespace gpu_platform::model
