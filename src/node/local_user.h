#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpu_platform::node {

struct LocalUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  friend bool operator==(const LocalUser&, const LocalUser&) = default;
};

// Returns the user of that name from the text of /etc/passwd. It reads only that file and asks no
// name service, because a static program cannot. Returns nothing if there is no such user or its
// numbers are malformed.
std::optional<LocalUser> find_local_user(std::string_view passwd, std::string_view name);

}  // namespace gpu_platform::node
