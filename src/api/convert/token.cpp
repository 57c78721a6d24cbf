#include "api/convert/token.h"

#include <algorithm>
#include <string>

namespace gpu_platform::api {

model::MakeToken to_model(const v1::CreateTokenRequest& request) {
  model::MakeToken command;
  command.name = request.name();
  if (request.role() != v1::TOKEN_ROLE_UNSPECIFIED) command.role = to_model(request.role());
  if (request.has_expires_at()) {
    // The first moment of all is none in the model; it has passed like the next one.
    command.expires_at = std::max(to_model(request.expires_at()), base::Instant(1));
  }
  command.never_expires = request.never_expires();
  command.request_id = request.request_id();
  return command;
}

void to_proto(const model::Token& token, base::Instant used_at, v1::Token& out) {
  out.set_id(std::to_string(token.id.value));
  out.set_name(token.name);
  out.set_user(token.user);
  out.set_uid(token.uid);
  out.set_role(to_proto(token.role));
  to_proto(token.created_at, *out.mutable_created_at());
  out.set_created_by(token.created_by);
  if (token.expires_at.is_set()) to_proto(token.expires_at, *out.mutable_expires_at());
  if (used_at.is_set()) to_proto(used_at, *out.mutable_last_used_at());
  if (token.made_with.valid()) out.set_made_with(std::to_string(token.made_with.value));
  if (!token.proven) return;
  for (const std::string& name : token.proven->names) out.add_identities(name);
  if (!token.proven->issuer.empty()) out.set_issuer(token.proven->issuer);
  if (!token.proven->user_claim.empty()) out.set_user_claim(token.proven->user_claim);
}

}  // namespace gpu_platform::api
