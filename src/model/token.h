#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/role.h"

namespace gpu_platform::model {

// The names that a certificate or an issuer's token has proven, and the user that they stood for.
struct ProvenNames {
  std::vector<std::string> names;  // "email:ada@example.org"
  std::string issuer;              // of an OpenID Connect token; empty: they are a certificate's
  std::string user_claim;          // of that token: the one that has the name
  std::string user;

  friend bool operator==(const ProvenNames&, const ProvenNames&) = default;
};
// Names with more bytes together are too many for a token.
inline constexpr std::size_t kMaxProvenBytes = 4096;

// A credential for callers from other machines. A caller that shows its secret is that user, and
// may do what both the user and the role may. The secret itself is nowhere in the core or the
// store.
//
// `hash` is a plain SHA-256: the secret is 256 random bits and no password, so no list of guesses
// finds it, and a slow hash would only cost time in each call.
struct Token {
  TokenId id;
  std::string name;  // one of its user alone
  std::string user;
  std::uint32_t uid = 0;  // the user had when it was made; never 0
  std::uint32_t gid = 0;
  Role role = Role::kUser;
  base::Instant created_at;
  std::string created_by;
  base::Instant expires_at;  // unset: never
  std::string hash;          // of the secret: kTokenHashBytes
  TokenId made_with;         // that its maker came with, and ends with it; invalid: none
  std::string request_id;    // of its maker: a repetition makes no second one
  base::Instant used_at;     // about kTokenUseInterval behind the last use; unset: never
  // That its maker came with, or the maker of the first token of its line: it holds only while the
  // site's rule has one of these names stand for the same user. Absent: it was made without.
  std::optional<ProvenNames> proven = std::nullopt;

  friend bool operator==(const Token&, const Token&) = default;
};

inline constexpr std::size_t kTokenHashBytes = 32;
inline constexpr std::size_t kTokenSecretBytes = 32;
inline constexpr std::size_t kMaxTokens = 10'000;
inline constexpr std::size_t kMaxTokensPerUser = 100;
// The maximum of those that were made with tokens: a leaked one leaves room for those of its user.
inline constexpr std::size_t kMaxMadeWithTokensPerUser = 50;
// The lifetime of a token whose maker sets none.
inline constexpr base::Duration kDefaultTokenLifetime = base::hours(90 * 24);
// Each use within this time of the one that the journal has is not written again.
inline constexpr base::Duration kTokenUseInterval = base::minutes(10);

inline bool is_expired(const Token& token, base::Instant now) {
  return token.expires_at.is_set() && token.expires_at <= now;
}

// Letters, digits, '-', '_' and '.', 1 to 64 of them, first a letter: so no name is an id.
bool is_token_name(const std::string& name);

}  // namespace gpu_platform::model
