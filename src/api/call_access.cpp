#include "api/call_access.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/rest/routes.h"
#include "base/check.h"

namespace gpu_platform::api {

namespace {

using v1::Access;

std::optional<model::Sight> sight_named(const std::string& name) {
  for (std::size_t i = 0; i < model::kSights; ++i) {
    const auto sight = static_cast<model::Sight>(i);
    if (model::to_string(sight) == name) return sight;
  }
  return std::nullopt;
}

std::optional<model::Role> role_of(Access::Least least) {
  switch (least) {
    case Access::VIEWER:
      return model::Role::kViewer;
    case Access::USER:
      return model::Role::kUser;
    case Access::OPERATOR:
      return model::Role::kOperator;
    case Access::ADMIN:
      return model::Role::kAdmin;
    default:
      return std::nullopt;
  }
}

bool allows(Access::Least least, const model::AccessRules& rules, const model::Caller& caller) {
  if (least == Access::ANYONE) return true;
  if (least == Access::ROOT) return rules.may_act_as_users(caller);
  const auto role = role_of(least);
  return role && caller.role >= *role;
}

std::string_view name_of(Access::Least least) {
  if (const auto role = role_of(least)) return model::to_string(*role);
  if (least == Access::ANYONE) return "any caller";
  return least == Access::ROOT ? "root" : "–";
}

}  // namespace

CallAccess access_of(const google::protobuf::MethodDescriptor& call) {
  CHECK(call.options().HasExtension(v1::access));
  const Access& row = call.options().GetExtension(v1::access);
  CHECK(row.role() != Access::LEAST_UNSPECIFIED);
  CallAccess out{row.role(), row.others(), row.coordinators(), {}};
  if (row.visibility().empty()) return out;
  out.sight = sight_named(row.visibility());
  CHECK(out.sight.has_value());
  return out;
}

base::Status admit(const CallAccess& access, const model::AccessRules& rules,
                   model::Caller& caller) {
  rules.settle(caller);
  if (!allows(access.role, rules, caller)) {
    return base::fail(
        base::ErrorCode::kPermissionDenied,
        fmt::format(
            "permission denied: this needs the role {2}, and user {0} has the role {1}; ask an "
            "administrator",
            caller.user, model::to_string(caller.role), name_of(access.role)));
  }
  const bool coordinates = caller.teams != nullptr && !caller.teams->coordinates.empty();
  caller.reach = allows(access.others, rules, caller) ? model::Reach::kAll
                 : access.coordinators && coordinates ? model::Reach::kTeams
                                                      : model::Reach::kOwn;
  return {};
}

std::string access_table() {
  std::string out =
      "| call | own, or in general | of others or of the site | coordinators of its team | more "
      "may "
      "see it by |\n| --- | --- | --- | --- | --- |\n";
  const RoutingTable table;
  for (const Route& route : table.routes()) {
    const CallAccess access = access_of(*route.call);
    const std::string selector =
        route.selector_name.empty()
            ? std::string()
            : fmt::format("?{}={}", route.selector_name, route.selector_value);
    const std::string sight =
        access.sight ? fmt::format("`access.visibility.{}`", model::to_string(*access.sight)) : "–";
    out += fmt::format("| `{} {}{}` | {} | {} | {} | {} |\n", route.method, route.path, selector,
                       name_of(access.role), name_of(access.others),
                       access.coordinators ? "yes" : "–", sight);
  }
  out += "\nIn all calls:\n\n| from this role on | a caller |\n| --- | --- |\n";
  for (const model::RightRow& row : model::rights()) {
    out += fmt::format("| {} | {} |\n", model::to_string(row.least), row.text);
  }
  return out;
}

}  // namespace gpu_platform::api
