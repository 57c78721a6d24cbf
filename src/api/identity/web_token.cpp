#include "api/identity/web_token.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/letters.h"

namespace gpu_platform::api {

namespace {

using Json = nlohmann::json;

struct FreeWebKey {
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <class Type>
using OwnedKeyPart = std::unique_ptr<Type, FreeWebKey>;
using WebKey = std::shared_ptr<EVP_PKEY>;

constexpr std::size_t kMaxWebToken = 16 * 1024;
constexpr std::size_t kMaxKeys = 64;
constexpr std::size_t kMaxClaim = 255;
constexpr int kMinRsaBits = 2048;

enum class Signature { kRsa, kRsaPss, kEc, kEdwards };

struct Algorithm {
  std::string_view name;
  Signature kind;
  const EVP_MD* (*hash)();
  std::size_t part_bytes;  // of an EC signature: each of its two numbers
};

constexpr std::array<Algorithm, 10> kAlgorithms = {{
    {"RS256", Signature::kRsa, EVP_sha256, 0},
    {"RS384", Signature::kRsa, EVP_sha384, 0},
    {"RS512", Signature::kRsa, EVP_sha512, 0},
    {"PS256", Signature::kRsaPss, EVP_sha256, 0},
    {"PS384", Signature::kRsaPss, EVP_sha384, 0},
    {"PS512", Signature::kRsaPss, EVP_sha512, 0},
    {"ES256", Signature::kEc, EVP_sha256, 32},
    {"ES384", Signature::kEc, EVP_sha384, 48},
    {"ES512", Signature::kEc, EVP_sha512, 66},
    {"EdDSA", Signature::kEdwards, nullptr, 0},
}};

std::unexpected<base::Error> refuse_token(std::string why) {
  return base::fail(base::ErrorCode::kUnauthenticated, "bearer token: " + std::move(why));
}

std::optional<std::string> decode_base64url(std::string_view text) {
  return base::parse_base64(text, base::Base64::kUrlUnpadded);
}

std::string web_text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

OwnedKeyPart<BIGNUM> number_at(const Json& object, const char* key) {
  const auto bytes = decode_base64url(web_text_at(object, key));
  if (!bytes || bytes->empty() || bytes->size() > 1024) return nullptr;
  return OwnedKeyPart<BIGNUM>(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes->data()),
                                        static_cast<int>(bytes->size()), nullptr));
}

WebKey key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const OwnedKeyPart<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder));
  const OwnedKeyPart<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  return {key, EVP_PKEY_free};
}

WebKey rsa_key(const Json& entry) {
  const auto modulus = number_at(entry, "n");
  const auto exponent = number_at(entry, "e");
  if (modulus == nullptr || exponent == nullptr) return nullptr;
  const OwnedKeyPart<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  WebKey key = key_from("RSA", builder.get());
  return key != nullptr && EVP_PKEY_get_bits(key.get()) >= kMinRsaBits ? key : nullptr;
}

WebKey ec_key(const Json& entry) {
  const std::string curve = web_text_at(entry, "crv");
  const std::size_t bytes = curve == "P-256" ? 32 : curve == "P-384" ? 48 : 66;
  const auto x = decode_base64url(web_text_at(entry, "x"));
  const auto y = decode_base64url(web_text_at(entry, "y"));
  const bool is_known = curve == "P-256" || curve == "P-384" || curve == "P-521";
  if (!is_known || !x || !y || x->size() != bytes || y->size() != bytes) return nullptr;
  const std::string point = '\x04' + *x + *y;
  const OwnedKeyPart<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.c_str(), 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return key_from("EC", builder.get());
}

WebKey edwards_key(const Json& entry) {
  const auto x = decode_base64url(web_text_at(entry, "x"));
  if (web_text_at(entry, "crv") != "Ed25519" || !x) return nullptr;
  return {EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                      reinterpret_cast<const unsigned char*>(x->data()), x->size()),
          EVP_PKEY_free};
}

WebKey key_of(const Json& entry) {
  const std::string use = web_text_at(entry, "use");
  if (!use.empty() && use != "sig") return nullptr;
  const std::string kind = web_text_at(entry, "kty");
  if (kind == "RSA") return rsa_key(entry);
  if (kind == "EC") return ec_key(entry);
  return kind == "OKP" ? edwards_key(entry) : nullptr;
}

bool fits(EVP_PKEY* key, const Algorithm& algorithm) {
  switch (algorithm.kind) {
    case Signature::kRsa:
    case Signature::kRsaPss:
      return EVP_PKEY_base_id(key) == EVP_PKEY_RSA;
    case Signature::kEc:
      return EVP_PKEY_base_id(key) == EVP_PKEY_EC &&
             static_cast<std::size_t>(EVP_PKEY_get_bits(key) + 7) / 8 == algorithm.part_bytes;
    case Signature::kEdwards:
      return EVP_PKEY_base_id(key) == EVP_PKEY_ED25519;
  }
  return false;
}

// OpenSSL wants the two numbers of an EC signature as ASN.1.
std::string asn1_signature(const Algorithm& algorithm, const std::string& signature) {
  const std::size_t bytes = algorithm.part_bytes;
  if (signature.size() != 2 * bytes) return {};
  const auto* at = reinterpret_cast<const unsigned char*>(signature.data());
  const OwnedKeyPart<ECDSA_SIG> parts(ECDSA_SIG_new());
  ECDSA_SIG_set0(parts.get(), BN_bin2bn(at, static_cast<int>(bytes), nullptr),
                 BN_bin2bn(at + bytes, static_cast<int>(bytes), nullptr));
  unsigned char* encoded = nullptr;
  const int size = i2d_ECDSA_SIG(parts.get(), &encoded);
  if (size <= 0) return {};
  std::string out(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(size));
  OPENSSL_free(encoded);
  return out;
}

bool is_signed_with(EVP_PKEY* key, const Algorithm& algorithm, std::string_view text,
                    std::string signature) {
  if (algorithm.kind == Signature::kEc) signature = asn1_signature(algorithm, signature);
  const OwnedKeyPart<EVP_MD_CTX> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;
  const EVP_MD* const hash = algorithm.hash == nullptr ? nullptr : algorithm.hash();
  if (EVP_DigestVerifyInit(context.get(), &options, hash, nullptr, key) != 1) return false;
  if (algorithm.kind == Signature::kRsaPss &&
      (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
       EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1)) {
    return false;
  }
  return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

// An object that names a member twice is none: two readers could take different ones of them.
std::optional<Json> json_object_of(std::string_view part) {
  const auto bytes = decode_base64url(part);
  if (!bytes) return std::nullopt;
  std::set<std::string> names;
  bool is_clear = true;
  const auto note = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) {
      is_clear = names.insert(value.get<std::string>()).second && is_clear;
    }
    return true;
  };
  Json object = Json::parse(*bytes, note, false);
  if (!object.is_object() || !is_clear) return std::nullopt;
  return object;
}

// Seconds since 1970, as the claims of time have them.
std::optional<base::Instant> time_claim(const Json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  const double seconds = found->get<double>();
  if (!std::isfinite(seconds) || seconds < 0) return std::nullopt;
  return base::Instant(static_cast<std::int64_t>(std::min(seconds, 9e9)) * 1'000'000'000);
}

// What a token is for stands in its header (RFC 8725, section 3.11). An ID token has no type there,
// or the general one; a logout token (logout+jwt), an access token (at+jwt, RFC 9068) and all
// others with a type of their own are for something else. Letters of either case, and the prefix
// may be there (RFC 7515, section 4.1.9).
bool has_type_of_id_token(const Json& header) {
  const auto found = header.find("typ");
  if (found == header.end()) return true;
  if (!found->is_string()) return false;
  std::string type = base::to_lower(found->get<std::string>());
  constexpr std::string_view kMediaType = "application/";
  if (type.starts_with(kMediaType)) type.erase(0, kMediaType.size());
  return type == "jwt";
}

bool is_for(const Json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (found->is_string()) return found->get<std::string>() == audience;
  return found->is_array() && std::ranges::any_of(*found, [&](const Json& each) {
           return each.is_string() && each.get<std::string>() == audience;
         });
}

// Issuers hand on addresses that a person has typed and never shown to have: with the address of
// another, a person would be that other one here. Some issuers write the value as text.
bool has_verified_address(const Json& claims) {
  const auto found = claims.find("email_verified");
  return found != claims.end() && (*found == true || *found == "true");
}

base::Result<WebToken> read_claims(const Json& claims, const WebTokenRules& rules,
                                   base::Instant now) {
  if (web_text_at(claims, "iss") != rules.issuer) return refuse_token("another issuer");
  if (!is_for(claims, rules.audience)) return refuse_token("another audience");
  // Issuers that do not type their logout tokens mark them so (RFC 8417; Back-Channel Logout, 2.4).
  if (claims.contains("events")) return refuse_token("it reports an event (events)");
  const auto ends = time_claim(claims, "exp");
  if (!ends) return refuse_token("no time of its end (exp)");
  const base::Instant not_after = *ends + rules.clock_skew;
  if (now >= not_after) return refuse_token("expired");
  for (const char* claim : {"nbf", "iat"}) {
    if (!claims.contains(claim)) continue;
    const auto begins = time_claim(claims, claim);
    if (!begins || *begins > now + rules.clock_skew) {
      return refuse_token(fmt::format("not yet valid ({})", claim));
    }
  }
  std::string user = web_text_at(claims, rules.user_claim.c_str());
  const bool is_plain = std::ranges::all_of(user, [](char c) { return c >= ' ' && c < 0x7f; });
  if (user.empty() || user.size() > kMaxClaim || !is_plain) {
    return refuse_token(fmt::format("no text in the claim {}", rules.user_claim));
  }
  if (rules.user_claim == "email" && !has_verified_address(claims)) {
    return refuse_token("the address is not verified at the issuer (email_verified)");
  }
  return WebToken{std::move(user), not_after, *ends};
}

}  // namespace

base::Result<WebKeys> WebKeys::from_json(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  const auto list = document.is_object() ? document.find("keys") : document.end();
  if (!document.is_object() || list == document.end() || !list->is_array()) {
    return base::invalid({}, "it is not a set of keys, which is a JSON object with a list 'keys'");
  }
  WebKeys keys;
  for (const Json& entry : *list) {
    if (!entry.is_object() || keys.keys_.size() >= kMaxKeys) continue;
    WebKey key = key_of(entry);
    if (key == nullptr) continue;
    keys.keys_.push_back({web_text_at(entry, "kid"), web_text_at(entry, "alg"), std::move(key)});
  }
  if (keys.keys_.empty()) return base::invalid({}, "it has no key for signatures");
  return keys;
}

// A token against the keys.
class WebTokenCheck {
 public:
  WebTokenCheck(const WebKeys& keys, const WebTokenRules& rules) : keys_(keys), rules_(rules) {}

  // Returns the payload's part of the token if an allowed key has signed it.
  base::Result<std::string_view> signed_part(std::string_view token) const {
    if (token.size() > kMaxWebToken) return refuse_token("too long");
    const std::size_t first = token.find('.');
    const std::size_t last = token.rfind('.');
    if (first == std::string_view::npos || first == last) return refuse_token("of another form");
    const auto header = json_object_of(token.substr(0, first));
    const auto signature = decode_base64url(token.substr(last + 1));
    if (!header || !signature) return refuse_token("of another form");
    // An extension that must be understood is one that is not (RFC 7515, section 4.1.11).
    if (header->contains("crit")) return refuse_token("it has critical extensions");
    if (!has_type_of_id_token(*header)) return refuse_token("of another type (typ)");
    const std::string name = web_text_at(*header, "alg");
    const auto algorithm = std::ranges::find(kAlgorithms, std::string_view(name), &Algorithm::name);
    if (algorithm == kAlgorithms.end() || !rules_.algorithms.contains(name)) {
      return refuse_token("an algorithm that is not allowed");
    }
    const auto key = key_for(web_text_at(*header, "kid"), *algorithm);
    if (!key) return refuse_token("no key of the issuer has its id");
    if (!is_signed_with(key->get(), *algorithm, token.substr(0, last), *signature)) {
      return refuse_token("the signature is wrong");
    }
    return token.substr(first + 1, last - first - 1);
  }

 private:
  // By its id; a token that names none is for the one key that fits.
  std::optional<WebKey> key_for(const std::string& id, const Algorithm& algorithm) const {
    std::optional<WebKey> found;
    for (const WebKeys::Key& each : keys_.keys_) {
      const WebKey key = std::static_pointer_cast<EVP_PKEY>(each.key);
      if (!fits(key.get(), algorithm) || (!id.empty() && each.id != id)) continue;
      if (!each.algorithm.empty() && each.algorithm != algorithm.name) continue;
      if (found) return std::nullopt;
      found = key;
    }
    return found;
  }

  const WebKeys& keys_;
  const WebTokenRules& rules_;
};

base::Result<WebToken> check_web_token(std::string_view token, const WebKeys& keys,
                                       const WebTokenRules& rules, base::Instant now) {
  TRY_ASSIGN(const std::string_view payload, WebTokenCheck(keys, rules).signed_part(token));
  const auto claims = json_object_of(payload);
  if (!claims) return refuse_token("of another form");
  return read_claims(*claims, rules, now);
}

}  // namespace gpu_platform::api
