#include "config/yaml/access.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::config {

void AccessReader::read(const std::string& path, const YAML::Node& value) {
  key_ = path;
  path == "access.roles" ? read_roles(value) : read_identities(value);
}

void AccessReader::read_roles(const YAML::Node& value) {
  constexpr std::array<std::string_view, model::kRoles> kNames = {"viewer", "user", "operator",
                                                                  "admin"};
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

void AccessReader::read_identities(const YAML::Node& value) {
  constexpr std::array<std::string_view, 5> kKinds = {"cn:", "email:", "dns:", "uri:", "openid:"};
  for_each_entry(value, [&](const YAML::Node& name, const YAML::Node& user) {
    const std::string& text = name.Scalar();
    const auto is_kind = [&](std::string_view kind) {
      return text.starts_with(kind) && text.size() > kind.size();
    };
    if (std::ranges::none_of(kKinds, is_kind)) {
      return report(name, fmt::format("'{}' in '{}' must begin with cn:, email:, dns:, uri: or "
                                      "openid:, as in email:ann@example.org",
                                      printable(text), key_));
    }
    const bool is_domain = text.starts_with("email:*@") || text.starts_with("openid:*@");
    const auto stands_for = word(user, text);
    if (!stands_for) return;
    if (is_domain != (*stands_for == "*")) {
      return report(user, fmt::format("'{}': a whole domain, and nothing else, has the user '*': "
                                      "\"email:*@example.org\": \"*\"",
                                      key_));
    }
    if (*stands_for == "root" || stands_for->find_first_not_of("0123456789") == std::string::npos) {
      return report(user, fmt::format("'{}' in '{}' must be the name of a user, never root",
                                      *stands_for, key_));
    }
    identities_.emplace(text, *stands_for);
  });
}

void AccessReader::finish(Configuration& configuration) {
  configuration.access.roles = std::move(roles_);
  configuration.identities = std::move(identities_);
}

}  // namespace gpu_platform::config
