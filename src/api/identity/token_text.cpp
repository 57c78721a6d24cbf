#include "api/identity/token_text.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/parse.h"

namespace gpu_platform::api {

namespace {

constexpr std::string_view kPrefix = "gpt_";
// Of 32 bytes, without padding.
constexpr std::size_t kSecretLength = 43;

}  // namespace

std::string to_text(const TokenText& token) {
  CHECK(token.secret.size() == model::kTokenSecretBytes);
  return fmt::format("{}{}_{}", kPrefix, token.id.value,
                     base::to_base64(token.secret, base::Base64::kUrlUnpadded));
}

std::optional<TokenText> parse_token_text(std::string_view text) {
  if (!text.starts_with(kPrefix) || text.size() < kPrefix.size() + 2 + kSecretLength) {
    return std::nullopt;
  }
  const std::string_view id_text =
      text.substr(kPrefix.size(), text.size() - kPrefix.size() - kSecretLength - 1);
  const auto id = base::parse_count(id_text, 1, INT64_MAX);
  auto secret =
      base::parse_base64(text.substr(text.size() - kSecretLength), base::Base64::kUrlUnpadded);
  if (!id || !secret || secret->size() != model::kTokenSecretBytes) return std::nullopt;
  TokenText token{model::TokenId(*id), *std::move(secret)};
  // Other spellings of the same bytes are none.
  if (to_text(token) != text) return std::nullopt;
  return token;
}

base::Result<std::string> random_secret() {
  std::string secret(model::kTokenSecretBytes, '\0');
  const int done =
      RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(secret.size()));
  if (done == 1) return secret;
  return base::fail(base::ErrorCode::kUnavailable,
                    "the system gives no random numbers at the moment; try again");
}

std::string hash_of(std::string_view secret) {
  std::string hash(model::kTokenHashBytes, '\0');
  unsigned int size = 0;
  const int done =
      EVP_Digest(secret.data(), secret.size(), reinterpret_cast<unsigned char*>(hash.data()), &size,
                 EVP_sha256(), nullptr);
  CHECK(done == 1 && size == hash.size());
  return hash;
}

bool is_same_hash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gpu_platform::api
