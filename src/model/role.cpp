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

Role UserRoles::of_name(std::string_view user) const {
  const auto named = by_name.find(user);
  return named == by_name.end() ? by_default : named->second;
}

}  // namespace gpu_platform::model
