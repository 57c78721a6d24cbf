#include "model/role.h"

#include <array>

namespace gpu_platform::model {

namespace {

constexpr std::array<std::string_view, kRoles> kRoleNames = {"viewer", "user", "operator", "admin"};

}  // namespace

std::string_view to_string(Role role) {
  return kRoleNames[static_cast<std::size_t>(role)];
}

std::optional<Role> parse_role(std::string_view text) {
  for (std::size_t i = 0; i < kRoles; ++i) {
    if (kRoleNames[i] == text) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace gpu_platform::model
