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

// Fills the cleared message. `names_credential`: what the caller came with is told by name, too.
void to_proto(const model::AuditEntry& entry, bool names_credential, v1::AuditEntry& out);

// Sets the three fields of an identity or of an entry that have something.
template <class Message>
void set_credential_name(const model::CredentialName& name, Message& out) {
  if (!name.name.empty()) out.set_credential_name(name.name);
  if (!name.issuer.empty()) out.set_issuer(name.issuer);
  if (!name.user_claim.empty()) out.set_user_claim(name.user_claim);
}

}  // namespace gpu_platform::api
