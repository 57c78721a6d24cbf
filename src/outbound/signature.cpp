#include "outbound/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::outbound {

namespace {

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest,
             &size) != nullptr);
  return hex(digest, size);
}

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1);
  return hex(digest, size);
}

}  // namespace gpu_platform::outbound
