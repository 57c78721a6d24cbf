#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::model {

// What a caller may do at most. Each role may do all that the roles before it may do.
enum class Role : std::uint8_t {
  kViewer,    // sees what the site's policy shows to all; changes nothing
  kUser,      // submits jobs, and changes its own
  kOperator,  // changes the jobs of all, GPUs, nodes and reservations
  kAdmin,     // changes teams, quotas, tokens and roles, too
};
inline constexpr std::size_t kRoles = 4;
std::string_view to_string(Role role);  // "viewer"
std::optional<Role> parse_role(std::string_view text);

// What a call may touch beside what is the caller's own. The row of the call in proto/ says it, and
// the door hands it to the core with the caller.
enum class Reach : std::uint8_t {
  kOwn,    // nothing else
  kTeams,  // the jobs of the teams that the caller coordinates, too
  kAll,    // the jobs of all, GPUs, nodes and reservations
};

// The roles that the site gives to its users.
struct UserRoles {
  Role by_default = Role::kUser;
  std::map<std::string, Role, std::less<>> by_name;
  std::uint32_t own_uid = 0;  // of the daemon, which is an administrator, as root is

  bool is_root(std::uint32_t uid) const { return uid == 0 || uid == own_uid; }
  // Returns the role that the name has.
  Role of_name(std::string_view user) const;
  // Returns what the user may do at most, with any credential of a call.
  Role of(std::string_view user, std::uint32_t uid) const {
    return is_root(uid) ? Role::kAdmin : of_name(user);
  }
};

// The teams of a user. Sorted.
struct Teams {
  std::vector<std::string> member_of;
  std::vector<std::string> coordinates;  // with all teams below them
  // A coordinator has no power over a user of a higher role, and sees nothing more of one.
  Role own_role = Role::kAdmin;
  std::shared_ptr<const UserRoles> roles = nullptr;  // null: none is higher

  bool is_below(std::string_view user, std::uint32_t uid) const {
    return roles != nullptr && roles->of(user, uid) > own_role;
  }

  friend bool operator==(const Teams&, const Teams&) = default;
};

}  // namespace gpu_platform::model
