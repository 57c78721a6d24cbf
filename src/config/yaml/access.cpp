#include "config/yaml/access.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::config {

void AccessReader::read(const std::string& path, const YAML::Node& value) {
  constexpr std::array<std::string_view, model::kRoles> kNames = {"viewer", "user", "operator",
                                                                  "admin"};
  key_ = path;
  for_each_entry(value, [&](const YAML::Node& name, const YAML::Node& list) {
    const auto role = model::parse_role(name.Scalar());
    if (!role) return report_unknown(name, kNames);
    for (std::string& user : users(list, name.Scalar())) {
      const auto known = roles_.find(user);
      if (known == roles_.end()) {
        roles_.emplace(std::move(user), *role);
      } else {
        report(list, fmt::format("user '{}' has the role {} already: each user has one role", user,
                                 model::to_string(known->second)));
      }
    }
  });
}

void AccessReader::finish(Configuration& configuration) {
  configuration.access.roles = std::move(roles_);
}

}  // namespace gpu_platform::config
