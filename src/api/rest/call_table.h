#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "api/rest/routed_call.h"
#include "model/audit.h"

namespace gpu_platform::api {

// How one call of proto/gpu_platform/v1 is answered.
struct CallRow {
  std::string_view name;                     // "JobService.SubmitJob"
  std::optional<model::AuditAction> action;  // what the audit trail calls it; unset: it does not
                                             // tell of it
  std::function<void(const RoutedCall&)> handle;
};

// Returns a row for each call. Handlers are safe from any thread, and keep nothing.
std::vector<CallRow> call_table();

}  // namespace gpu_platform::api
