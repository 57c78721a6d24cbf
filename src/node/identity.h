#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::node {

// Who a process is to the kernel.
struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  // all that setgroups gets
  std::string name;                   // of the account; empty: it has none
  friend bool operator==(const Identity&, const Identity&) = default;
};

// As whom jobs may run, whatever the daemon says and the user database knows.
struct IdentityRules {
  bool allow_root = false;
  std::uint32_t min_uid = 1000;  // smaller numbers are the system's own accounts
};
// Why no job may run as that number; empty: ask who it is.
std::string objection_to_uid(std::uint32_t uid, const IdentityRules& rules);

// A line of `getent passwd UID`; false where it is not that user's.
bool parse_account(std::string_view line, std::uint32_t uid, Identity& user);
// A line of `getent initgroups NAME`: the name and numbers; false where it is not that user's.
bool parse_groups(std::string_view line, Identity& user);

}  // namespace gpu_platform::node
