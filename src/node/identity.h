#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/user_range.h"

namespace gpu_platform::node {

// The user and groups of a process, as the kernel knows them.
struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  // all that setgroups gets
  std::string name;                   // of the account; empty: it has none
  friend bool operator==(const Identity&, const Identity&) = default;
};

// The rules for users that jobs may run as. They limit the daemon's requests and the user database.
struct IdentityRules {
  bool allow_root = false;
  model::UserRange users = {};
};
// Returns why no job may run with this uid, or an empty text if the user is to be looked up.
std::string error_in_uid(std::uint32_t uid, const IdentityRules& rules);

// Reads a line of `getent passwd UID`; returns false if it is of another user.
bool parse_account(std::string_view line, std::uint32_t uid, Identity& user);
// Reads a line of `getent initgroups NAME` (the name and numbers); returns false if it is of
// another user.
bool parse_groups(std::string_view line, Identity& user);

}  // namespace gpu_platform::node
