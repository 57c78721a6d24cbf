#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/tokens.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of TokenService. Secrets are made here, go to the caller, and are nowhere else. Safe
// from any thread.
class TokenCalls {
 public:
  explicit TokenCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::ListTokensResponse> list(const v1::ListTokensRequest& request,
                                            const Peer& peer) const;

  // The answer to a repeated call has no secret: it is not known any more.
  void create(const v1::CreateTokenRequest& request, const Peer& peer, Resume resume,
              Done<Created<v1::CreatedToken>> done) const;
  void revoke(const v1::RevokeTokenRequest& request, const Peer& peer, Resume resume,
              Done<v1::Token> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
