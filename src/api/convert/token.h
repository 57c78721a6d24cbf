#pragma once

#include "api/convert/job.h"
#include "base/result.h"
#include "gpu_platform/v1/tokens.pb.h"
#include "model/command.h"
#include "model/token.h"

// Tokens between their messages and the model.

namespace gpu_platform::api {

constexpr v1::TokenRole to_proto(model::Role role) {
  return static_cast<v1::TokenRole>(static_cast<int>(role) + 1);
}
// `role` is a real value, not the unspecified one.
constexpr model::Role to_model(v1::TokenRole role) {
  return static_cast<model::Role>(static_cast<int>(role) - 1);
}

// Without its user and the hash of its secret.
model::MakeToken to_model(const v1::CreateTokenRequest& request);
// `used_at`: the last use, as far as it is known. Fills the cleared message.
void to_proto(const model::Token& token, base::Instant used_at, v1::Token& out);

}  // namespace gpu_platform::api
