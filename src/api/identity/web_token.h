#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// Bearer tokens that an OpenID Connect issuer has signed: JSON Web Tokens (RFC 7519) in the compact
// form of a signature (RFC 7515), checked against the issuer's keys (RFC 7517) with the algorithms
// of RFC 7518 and RFC 8037 that the site allows: RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384
// ES512 EdDSA. "none" and those with shared secrets are not known. What a token says of its own
// keys is not read.

namespace gpu_platform::api {

// The public keys of an issuer. Safe from any thread.
class WebKeys {
 public:
  // A set of keys as the issuer publishes it. Keys that sign nothing or are of an unknown kind are
  // left out. kInvalidArgument: the text is no such set, or has no key for signatures.
  static base::Result<WebKeys> from_json(const std::string& text);

 private:
  friend class WebTokenCheck;
  struct Key {
    std::string id;             // empty: it has none
    std::string algorithm;      // that it is for alone; empty: any that fits it
    std::shared_ptr<void> key;  // EVP_PKEY
  };
  std::vector<Key> keys_;
};

// What the site asks of a token.
struct WebTokenRules {
  std::string issuer;
  std::string audience;
  std::set<std::string, std::less<>> algorithms;
  std::string user_claim;
  base::Duration clock_skew = base::seconds(30);  // that is forgiven at both ends
};

struct WebToken {
  std::string user;         // the text of the user claim
  base::Instant not_after;  // with the skew
  base::Instant ends_at;    // as its issuer says
};

// Costs one check of a signature. kUnauthenticated: the token does not hold; the message says why,
// for the site's log alone, and has nothing of the token but the names of its key and algorithm.
base::Result<WebToken> check_web_token(std::string_view token, const WebKeys& keys,
                                       const WebTokenRules& rules, base::Instant now);

}  // namespace gpu_platform::api
