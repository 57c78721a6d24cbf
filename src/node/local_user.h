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

// The user of that name in the text of /etc/passwd: that file alone and no name service, which a
// static program cannot ask. Nothing where there is none, or where its numbers are no numbers.
std::optional<LocalUser> find_local_user(std::string_view passwd, std::string_view name);

}  // namespace gpu_platform::node
