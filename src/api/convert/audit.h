#pragma once

#include "api/convert/job.h"
#include "gpu_platform/v1/audit.pb.h"
#include "model/audit_query.h"

namespace gpu_platform::api {

constexpr v1::AuditAction to_proto(model::AuditAction action) {
  return static_cast<v1::AuditAction>(static_cast<int>(action) + 1);
}
// `action` is a real value, not the unspecified one.
constexpr model::AuditAction to_model(v1::AuditAction action) {
  return static_cast<model::AuditAction>(static_cast<int>(action) - 1);
}
constexpr v1::AuditDoor to_proto(model::Door door) {
  return static_cast<v1::AuditDoor>(static_cast<int>(door));
}

// Converts all filters except two: the job, which has to be looked up, and the limit to entries
// that the caller may see.
base::Result<model::AuditQuery> to_model(const v1::ListAuditRequest& request);

// Fills the cleared message.
void to_proto(const model::AuditEntry& entry, v1::AuditEntry& out);

}  // namespace gpu_platform::api
