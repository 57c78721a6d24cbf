#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "base/result.h"
#include "gpu_platform/v1/options.pb.h"
#include "model/access_rules.h"

// Who may use which call: the rows of the option `access` in proto/. They are the one table: the
// checks, docs/security.md and the tests follow from it.

namespace gpu_platform::api {

// The row of one call.
struct CallAccess {
  v1::Access::Least role = v1::Access::LEAST_UNSPECIFIED;
  v1::Access::Least others = v1::Access::LEAST_UNSPECIFIED;  // unspecified: nothing is of others
  bool coordinators = false;
  std::optional<model::Sight> sight;  // what of others more users may see
};
// Returns the row of the call. A call without one, or with an unknown sight, is a bug.
CallAccess access_of(const google::protobuf::MethodDescriptor& call);

// Gives the caller its role and teams by the rules, and the reach that the row gives them. Refused
// if its role may not use the call at all.
base::Status admit(const CallAccess& access, const model::AccessRules& rules,
                   model::Caller& caller);

// The rows of all calls and the rights of the roles, as tables of docs/security.md. Markdown.
std::string access_table();

}  // namespace gpu_platform::api
