#pragma once

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/base64.h"

// A key of an OpenID Connect issuer, for tests.

namespace gpu_platform::api {

inline std::string base64url(std::string_view bytes) {
  return base::to_base64(bytes, base::Base64::kUrlUnpadded);
}

// A key of the issuer: its entry in the set, and what it signs.
class IssuerKey {
 public:
  IssuerKey(std::string id, const std::string& kind)
      : id_(std::move(id)),
        kind_(kind),
        key_(kind == "RSA"       ? EVP_RSA_gen(2048)
             : kind == "Ed25519" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                 : EVP_EC_gen(kind.c_str()),
             EVP_PKEY_free) {}

  nlohmann::json entry() const {
    nlohmann::json out = {{"kid", id_}, {"use", "sig"}};
    if (kind_ == "RSA") {
      out["kty"] = "RSA";
      out["n"] = number("n");
      out["e"] = number("e");
    } else if (kind_ == "Ed25519") {
      unsigned char raw[32];
      std::size_t size = sizeof raw;
      EVP_PKEY_get_raw_public_key(key_.get(), raw, &size);
      out.update(
          {{"kty", "OKP"}, {"crv", kind_}, {"x", base64url({reinterpret_cast<char*>(raw), size})}});
    } else {
      unsigned char point[200];
      std::size_t size = 0;
      EVP_PKEY_get_octet_string_param(key_.get(), OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                      &size);
      const std::string_view text(reinterpret_cast<char*>(point) + 1, size - 1);
      out.update({{"kty", "EC"},
                  {"crv", kind_},
                  {"x", base64url(text.substr(0, text.size() / 2))},
                  {"y", base64url(text.substr(text.size() / 2))}});
    }
    return out;
  }

  std::string sign(const nlohmann::json& claims, const std::string& algorithm,
                   nlohmann::json header = {}) const {
    header["alg"] = algorithm;
    if (!header.contains("typ")) header["typ"] = "JWT";
    if (header["typ"].is_null()) header.erase("typ");
    if (!header.contains("kid")) header["kid"] = id_;
    if (header["kid"].is_null()) header.erase("kid");
    return sign_text(base64url(header.dump()) + "." + base64url(claims.dump()), algorithm);
  }
  std::string sign_text(const std::string& text, const std::string& algorithm) const {
    return text + "." + base64url(signature(text, algorithm));
  }

 private:
  std::string number(const char* name) const {
    BIGNUM* value = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &value);
    std::string bytes(static_cast<std::size_t>(BN_num_bytes(value)), '\0');
    BN_bn2bin(value, reinterpret_cast<unsigned char*>(bytes.data()));
    BN_free(value);
    return base64url(bytes);
  }
  std::string signature(const std::string& text, const std::string& algorithm) const {
    const std::string bits = algorithm.substr(2);
    const EVP_MD* hash = bits == "256" ? EVP_sha256() : bits == "384" ? EVP_sha384() : EVP_sha512();
    if (kind_ == "Ed25519") hash = nullptr;
    EVP_MD_CTX* const context = EVP_MD_CTX_new();
    EVP_PKEY_CTX* options = nullptr;
    EVP_DigestSignInit(context, &options, hash, nullptr, key_.get());
    if (algorithm.starts_with("PS")) {
      EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
    }
    std::size_t size = 1024;
    std::string out(size, '\0');
    auto* const bytes = reinterpret_cast<unsigned char*>(out.data());
    EVP_DigestSign(context, bytes, &size, reinterpret_cast<const unsigned char*>(text.data()),
                   text.size());
    EVP_MD_CTX_free(context);
    out.resize(size);
    return algorithm.starts_with("ES") ? raw_numbers(out) : out;
  }
  std::string raw_numbers(const std::string& asn1) const {
    const auto* begin = reinterpret_cast<const unsigned char*>(asn1.data());
    ECDSA_SIG* const parts = d2i_ECDSA_SIG(nullptr, &begin, static_cast<long>(asn1.size()));
    const int bytes = kind_ == "P-256" ? 32 : kind_ == "P-384" ? 48 : 66;
    std::string out(static_cast<std::size_t>(2 * bytes), '\0');
    auto* const to = reinterpret_cast<unsigned char*>(out.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(parts), to, bytes);
    BN_bn2binpad(ECDSA_SIG_get0_s(parts), to + bytes, bytes);
    ECDSA_SIG_free(parts);
    return out;
  }

  const std::string id_;
  const std::string kind_;
  const std::shared_ptr<EVP_PKEY> key_;
};

}  // namespace gpu_platform::api
