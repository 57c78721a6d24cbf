#include "api/identity/web_token.h"

#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include <nlohmann/json.hpp>

#include "api/identity/testing/issuer_key.h"
#include "api/identity/web_token_prover.h"

namespace gpu_platform::api {
namespace {

using nlohmann::json;

constexpr std::int64_t kNow = 1'800'000'000;

base::Instant at(std::int64_t seconds) {
  return base::Instant(seconds * 1'000'000'000);
}

WebKeys keys_of(const std::vector<const IssuerKey*>& keys) {
  json list = json::array();
  for (const IssuerKey* key : keys) list.push_back(key->entry());
  return *WebKeys::from_json(json{{"keys", list}}.dump());
}

class WebTokens : public testing::Test {
 protected:
  std::string why_not(const std::string& token, base::Instant now = at(kNow)) const {
    const auto checked = check_web_token(token, keys_, rules_, now);
    if (checked) return "holds: " + checked->user;
    EXPECT_EQ(checked.error().code, base::ErrorCode::kUnauthenticated);
    return checked.error().message.substr(std::string("bearer token: ").size());
  }
  std::string signed_with(const json& changes) const {
    json claims = claims_;
    claims.merge_patch(changes);
    return rsa_.sign(claims, "RS256");
  }

  const IssuerKey rsa_{"first", "RSA"};
  const IssuerKey ec_{"second", "P-256"};
  const WebKeys keys_ = keys_of({&rsa_, &ec_});
  WebTokenRules rules_{"https://sso.example", "gpu", {"RS256", "ES256"}, "email"};
  const json claims_ = {{"iss", "https://sso.example"}, {"aud", "gpu"},      {"sub", "7"},
                        {"email", "ann@example.org"},   {"exp", kNow + 300}, {"iat", kNow - 5},
                        {"email_verified", true}};
};

TEST_F(WebTokens, HoldWithEachAlgorithmThatTheSiteAllows) {
  for (const auto& [kind, algorithms] :
       std::vector<std::pair<const char*, std::vector<const char*>>>{
           {"RSA", {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}},
           {"P-256", {"ES256"}},
           {"P-384", {"ES384"}},
           {"P-521", {"ES512"}},
           {"Ed25519", {"EdDSA"}}}) {
    const IssuerKey key("k", kind);
    const WebKeys keys = keys_of({&key});
    for (const char* algorithm : algorithms) {
      rules_.algorithms = {algorithm};
      const auto checked = check_web_token(key.sign(claims_, algorithm), keys, rules_, at(kNow));
      ASSERT_TRUE(checked.has_value()) << algorithm << ' ' << checked.error().message;
      EXPECT_EQ(checked->user, "ann@example.org");
      EXPECT_EQ(checked->not_after, at(kNow + 330));
      EXPECT_EQ(checked->ends_at, at(kNow + 300));
      rules_.algorithms = {"none"};
      EXPECT_FALSE(check_web_token(key.sign(claims_, algorithm), keys, rules_, at(kNow)));
    }
  }
}

TEST_F(WebTokens, AreChosenByTheirKeysId) {
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256")), "holds: ann@example.org");
  EXPECT_EQ(why_not(ec_.sign(claims_, "ES256")), "holds: ann@example.org");
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"kid", nullptr}})), "holds: ann@example.org");
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"kid", "second"}})),
            "no key of the issuer has its id");
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"kid", "third"}})),
            "no key of the issuer has its id");
  const IssuerKey other("third", "RSA");
  const auto two = keys_of({&rsa_, &other});
  EXPECT_FALSE(
      check_web_token(rsa_.sign(claims_, "RS256", {{"kid", nullptr}}), two, rules_, at(kNow)));
}

TEST_F(WebTokens, ForgedOnesDoNot) {
  const IssuerKey forger("first", "RSA");
  EXPECT_EQ(why_not(forger.sign(claims_, "RS256")), "the signature is wrong");
  // A key that the token brings along is not looked at.
  EXPECT_EQ(why_not(forger.sign(claims_, "RS256", {{"jwk", forger.entry()}})),
            "the signature is wrong");
  const std::string body = base64url(claims_.dump());
  for (const char* algorithm : {"none", "None", "NONE", ""}) {
    const std::string head = base64url(json{{"alg", algorithm}, {"kid", "first"}}.dump());
    EXPECT_EQ(why_not(head + "." + body + "."), "an algorithm that is not allowed");
  }
  // The public key as a shared secret.
  const std::string secret = rsa_.entry()["n"];
  const std::string text = base64url(json{{"alg", "HS256"}, {"kid", "first"}}.dump()) + "." + body;
  unsigned char digest[32];
  unsigned size = sizeof digest;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  EXPECT_EQ(why_not(text + "." + base64url({reinterpret_cast<char*>(digest), size})),
            "an algorithm that is not allowed");
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS384")), "an algorithm that is not allowed");
  EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"crit", {"exp"}}})),
            "it has critical extensions");
}

TEST_F(WebTokens, TokensForOtherThingsAreNone) {
  for (const json& type : {json("JWT"), json("jwt"), json("application/jwt"),
                           json("Application/JWT"), json(nullptr)}) {
    EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"typ", type}})), "holds: ann@example.org")
        << type;
  }
  for (const json& type :
       {json("logout+jwt"), json("Logout+JWT"), json("at+jwt"), json("application/at+jwt"),
        json("secevent+jwt"), json("dpop+jwt"), json("JOSE"), json(""), json(" JWT"), json("JWT "),
        json("application/"), json("application/application/jwt"), json(7), json({"JWT"}),
        json(true)}) {
    EXPECT_EQ(why_not(rsa_.sign(claims_, "RS256", {{"typ", type}})), "of another type (typ)")
        << type;
  }
  const json logout = {{"http://schemas.openid.net/event/backchannel-logout", json::object()}};
  EXPECT_EQ(why_not(signed_with({{"events", logout}})), "it reports an event (events)");
}

TEST_F(WebTokens, NoCharacterOfOneMayBeAnotherAndNoneMissing) {
  std::string token = ec_.sign(claims_, "ES256");
  ASSERT_EQ(why_not(token), "holds: ann@example.org");
  for (char& c : token) {
    const char was = c;
    c = was == 'A' ? 'B' : 'A';
    EXPECT_FALSE(why_not(token).starts_with("holds")) << &c - token.data();
    c = was;
  }
  for (std::size_t size = 0; size < token.size(); ++size) {
    EXPECT_FALSE(why_not(token.substr(0, size)).starts_with("holds")) << size;
  }
  for (const char* more : {"=", ".", "A", " ", "\x01"}) {
    EXPECT_FALSE(why_not(token + more).starts_with("holds"));
  }
  EXPECT_EQ(why_not(token + std::string(20'000, 'A')), "too long");
}

TEST_F(WebTokens, AreForThisPlatformAndThisTimeAlone) {
  EXPECT_EQ(why_not(signed_with({{"iss", "https://sso.example/"}})), "another issuer");
  EXPECT_EQ(why_not(signed_with({{"aud", "other"}})), "another audience");
  EXPECT_EQ(why_not(signed_with({{"aud", nullptr}})), "another audience");
  EXPECT_EQ(why_not(signed_with({{"aud", {"other", "gpu"}}})), "holds: ann@example.org");
  EXPECT_EQ(why_not(signed_with({{"exp", nullptr}})), "no time of its end (exp)");
  EXPECT_EQ(why_not(signed_with({{"exp", "never"}})), "no time of its end (exp)");
  EXPECT_EQ(why_not(signed_with({{"exp", 1e300}})), "holds: ann@example.org");
  EXPECT_EQ(why_not(signed_with({{"exp", kNow - 29}})), "holds: ann@example.org");
  EXPECT_EQ(why_not(signed_with({{"exp", kNow - 30}})), "expired");
  EXPECT_EQ(why_not(signed_with({{"nbf", kNow + 30}})), "holds: ann@example.org");
  EXPECT_EQ(why_not(signed_with({{"nbf", kNow + 31}})), "not yet valid (nbf)");
  EXPECT_EQ(why_not(signed_with({{"iat", kNow + 31}})), "not yet valid (iat)");
}

TEST_F(WebTokens, NameTheirUserInPlainText) {
  for (const json& user :
       std::vector<json>{nullptr, 7, "", json::array(), "a\nb", "ä", std::string(256, 'a')}) {
    EXPECT_EQ(why_not(signed_with({{"email", user}})), "no text in the claim email") << user;
  }
}

TEST_F(WebTokens, AnAddressThatNobodyHasVerifiedNamesNoUser) {
  EXPECT_EQ(why_not(signed_with({{"email_verified", "true"}})), "holds: ann@example.org");
  for (const json& verified : std::vector<json>{nullptr, false, "false", "", 1, json::array()}) {
    EXPECT_EQ(why_not(signed_with({{"email_verified", verified}})),
              "the address is not verified at the issuer (email_verified)")
        << verified;
  }
  // Other names are the issuer's own.
  rules_.user_claim = "sub";
  EXPECT_EQ(why_not(signed_with({{"email_verified", false}})), "holds: 7");
}

TEST_F(WebTokens, AMemberThatStandsTwiceIsRefused) {
  const auto signed_text = [&](std::string header, std::string claims) {
    return rsa_.sign_text(base64url(header) + "." + base64url(claims), "RS256");
  };
  const std::string header = R"({"alg":"RS256","kid":"first"})";
  const std::string claims = claims_.dump();
  const std::string more = claims.substr(1);
  EXPECT_EQ(why_not(signed_text(header, claims)), "holds: ann@example.org");
  EXPECT_EQ(why_not(signed_text(header, R"({"email":"eve@example.org",)" + more)),
            "of another form");
  EXPECT_EQ(why_not(signed_text(R"({"alg":"none","alg":"RS256","kid":"first"})", claims)),
            "of another form");
  EXPECT_EQ(why_not(signed_text(header, R"({"of":{"email":"eve@example.org"},)" + more)),
            "holds: ann@example.org");
}

TEST(WebKeySet, LeavesOutWhatSignsNothingHere) {
  const IssuerKey good("good", "RSA");
  json weak = good.entry();
  weak["n"] = "AQAB";
  json for_encryption = good.entry();
  for_encryption["use"] = "enc";
  const json shared = {{"kty", "oct"}, {"k", "c2VjcmV0"}, {"kid", "shared"}};
  const json odd_curve = {{"kty", "EC"}, {"crv", "P-256"}, {"x", "AA"}, {"y", "AA"}};
  const auto none = json{{"keys", {weak, for_encryption, shared, odd_curve, 7}}};
  EXPECT_FALSE(WebKeys::from_json(none.dump()).has_value());
  for (const char* text : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[]})", "nonsense"}) {
    EXPECT_FALSE(WebKeys::from_json(text).has_value()) << text;
  }
  EXPECT_TRUE(WebKeys::from_json(json{{"keys", {shared, good.entry()}}}.dump()).has_value());
}

TEST_F(WebTokens, WhatWasProvenHoldsWhileItsKeyCounts) {
  base::Result<std::string> file = json{{"keys", {rsa_.entry()}}}.dump();
  const auto prover = *WebTokenProver::make(rules_, [&] { return file; }, at(kNow));
  const auto proven = prover->prove(rsa_.sign(claims_, "RS256"), at(kNow));
  ASSERT_TRUE(proven.has_value());
  EXPECT_TRUE(proven->is_still_signed(at(kNow + 10)));
  file = json{{"keys", {ec_.entry(), rsa_.entry()}}}.dump();
  EXPECT_TRUE(proven->is_still_signed(at(kNow + 20)));
  file = json{{"keys", {ec_.entry()}}}.dump();
  EXPECT_FALSE(proven->is_still_signed(at(kNow + 30)));
  EXPECT_FALSE(proven->is_still_signed(at(kNow + 30))) << "asked again";
}

TEST_F(WebTokens, NewKeysCountSoonAndLostOnesForADay) {
  base::Result<std::string> file = json{{"keys", {rsa_.entry()}}}.dump();
  const auto read = [&] { return file; };
  const auto prover = *WebTokenProver::make(rules_, read, at(kNow));
  const auto holds = [&](const IssuerKey& key, const char* algorithm, std::int64_t after) {
    json claims = claims_;
    claims["exp"] = kNow + 2'000'000;
    return prover->prove(key.sign(claims, algorithm), at(kNow + after)).has_value();
  };
  const auto proven = prover->prove(rsa_.sign(claims_, "RS256"), at(kNow));
  ASSERT_TRUE(proven.has_value());
  EXPECT_EQ(proven->names, std::vector<std::string>{"openid:ann@example.org"});
  EXPECT_FALSE(holds(ec_, "ES256", 0));
  file = json{{"keys", {ec_.entry()}}}.dump();
  EXPECT_TRUE(holds(ec_, "ES256", 2));
  EXPECT_FALSE(holds(rsa_, "RS256", 2));
  file = base::fail(base::ErrorCode::kFailedPrecondition, "gone");
  EXPECT_TRUE(holds(ec_, "ES256", 80'000));
  EXPECT_FALSE(holds(ec_, "ES256", 90'000));
  EXPECT_FALSE(WebTokenProver::make(rules_, read, at(kNow)).has_value());
}

}  // namespace
}  // namespace gpu_platform::api
