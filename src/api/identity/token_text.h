#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/token.h"

// The text that a token's user keeps: "gpt_7_" and the secret in base64url. The id in it finds the
// token; the prefix lets scanners of repositories and logs find texts that should not be there.

namespace gpu_platform::api {

struct TokenText {
  model::TokenId id;
  std::string secret;  // model::kTokenSecretBytes
};

std::string to_text(const TokenText& token);
// Returns nothing for any other text than to_text() writes.
std::optional<TokenText> parse_token_text(std::string_view text);

// Returns model::kTokenSecretBytes random bytes; kUnavailable if the system gives none.
base::Result<std::string> random_secret();
// SHA-256. model/token.h says why it is a fast one.
std::string hash_of(std::string_view secret);
// The time that it takes does not depend on where they differ.
bool is_same_hash(std::string_view a, std::string_view b);

}  // namespace gpu_platform::api
