#pragma once

#include <cstdint>
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

// The teams of a user. Sorted.
struct Teams {
  std::vector<std::string> member_of;
  std::vector<std::string> coordinates;  // with all teams below them

  friend bool operator==(const Teams&, const Teams&) = default;
};

}  // namespace gpu_platform::model
