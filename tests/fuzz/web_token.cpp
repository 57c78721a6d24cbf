#include "api/identity/web_token.h"
#include "base/check.h"
#include "target.h"

// A bearer token of an OpenID Connect issuer, and the file of the issuer's keys.

namespace gpu_platform::fuzz {

namespace {

// The example of RFC 8037, appendix A.2, whose secret half signs nothing here.
constexpr const char* kKeys =
    R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})";

}  // namespace

void run(std::string_view input) {
  static const api::WebKeys keys = *api::WebKeys::from_json(kKeys);
  static const api::WebTokenRules rules{"https://sso.example", "gpu", {"EdDSA"}, "email"};
  const auto checked =
      api::check_web_token(input, keys, rules, base::Instant(1'800'000'000'000'000'000));
  CHECK(!checked && !checked.error().message.empty());
  const auto others = api::WebKeys::from_json(std::string(input));
  CHECK(others || !others.error().message.empty());
}

std::vector<std::string> seeds() {
  return {
      kKeys,
      R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"a","use":"sig","alg":"RS256"}]})",
      R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})",
      // {"alg":"EdDSA"} and {"iss":"https://sso.example","aud":"gpu","exp":1900000000,"email":"a"}
      "eyJhbGciOiJFZERTQSJ9."
      "eyJpc3MiOiJodHRwczovL3Nzby5leGFtcGxlIiwiYXVkIjoiZ3B1IiwiZXhwIjoxOTAwMDAwMDAwLCJl"
      "bWFpbCI6ImEifQ.hgyY0il_MGCjP0JzlnLWG1PPOt7-"
      "09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"};
}

}  // namespace gpu_platform::fuzz
