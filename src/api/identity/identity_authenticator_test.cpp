#include "api/identity/identity_authenticator.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <optional>

namespace gpu_platform::api {
namespace {

using base::ErrorCode;

constexpr base::Instant kNoonOfProofs(1'750'000'000'000'000'000);

class UsersByName final : public host::UserDatabase {
 public:
  base::Result<host::User> find(std::uint32_t) const override {
    return base::fail(ErrorCode::kNotFound, "not asked");
  }
  base::Result<host::User> find(const std::string& name) const override {
    const auto found = users.find(name);
    if (found == users.end()) return base::fail(ErrorCode::kNotFound, "no such user");
    return found->second;
  }
  std::map<std::string, host::User> users = {{"ann", {"ann", 1001, 6001, "/home", "/bin/sh"}},
                                             {"root", {"root", 0, 0, "/root", "/bin/sh"}}};
};

class IdentityNames : public testing::Test {
 protected:
  IdentityNames() {
    IdentityAuthenticator::Options options;
    options.limits.failures = 3;
    options.clock = [] { return kNoonOfProofs; };
    options.prove = [this](const Credential& shown, base::Instant) -> base::Result<ProvenIdentity> {
      if (shown.secret == "forged") return base::fail(ErrorCode::kUnauthenticated, "not signed");
      return proven_;
    };
    options.rule = [this] { return std::make_shared<const IdentityUsers>(rule_); };
    options.warn = [this](const std::string& line) { lines_ += line + "\n"; };
    authenticator_.emplace(directory_, options);
  }

  base::Result<Peer> ask(const std::string& secret = "signed") {
    std::promise<base::Result<Peer>> answer;
    authenticator_->authenticate(
        {Credential::Kind::kCertificate, secret, "192.0.2.7"},
        [&](base::Result<Peer> peer) { answer.set_value(std::move(peer)); });
    return answer.get_future().get();
  }
  std::string refusal(const std::string& secret = "signed") {
    const auto peer = ask(secret);
    return peer ? "accepted" : std::string(to_string(peer.error().code));
  }

  ProvenIdentity proven_{{"cn:x", "email:ann@example.org"}, kNoonOfProofs + base::hours(1)};
  IdentityUsers rule_ = {{"email:ann@example.org", "ann"}, {"email:root@example.org", "root"}};
  std::string lines_;
  host::UserDirectory directory_{std::make_shared<UsersByName>()};
  std::optional<IdentityAuthenticator> authenticator_;
};

TEST_F(IdentityNames, TheCallerIsNamedByWhatStandsForIt) {
  const auto peer = ask();
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->caller.user, "ann");
  EXPECT_EQ(*peer->caller.credential_name,
            (model::CredentialName{"email:ann@example.org", {}, {}}));
  EXPECT_TRUE(authenticator_->check_still_holds(*peer));

  proven_ = {{"openid:ann"},
             kNoonOfProofs + base::hours(1),
             IdentityKind::kOpenId,
             "https://sso.example",
             "sub"};
  rule_ = {{"openid:ann", "ann"}};
  const auto other = ask();
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(*other->caller.credential_name,
            (model::CredentialName{"openid:ann", "https://sso.example", "sub"}));
}

TEST_F(IdentityNames, ANameIsOneLineAndBounded) {
  const std::string name = "email:ann\n" + std::string(1'000, 'x');
  proven_.names = {name};
  rule_ = {{name, "ann"}};
  const auto peer = ask();
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_LE(peer->caller.credential_name->name.size(), model::kMaxCredentialNameBytes);
  EXPECT_EQ(peer->caller.credential_name->name.find('\n'), std::string::npos);
}

TEST(ProvenNames, StandOnlyForTheUserThatTheyStoodForAndByASignerThatCounts) {
  const model::ProvenNames certificate{{"cn:ada", "email:ada@example.org"}, {}, {}, "ada"};
  const TrustedSigners signers{true, "https://sso.example", "sub"};
  const IdentityUsers domain = {{"email:*@example.org", "*"}};
  EXPECT_TRUE(still_stand(certificate, signers, domain));
  EXPECT_TRUE(still_stand(certificate, signers, {{"cn:ada", "ada"}}));
  EXPECT_FALSE(still_stand(certificate, signers, {}));
  EXPECT_FALSE(still_stand(certificate, signers, {{"cn:ada", "bob"}}));
  EXPECT_FALSE(still_stand(certificate, signers, {{"cn:ada", "bob"}, {"email:*@example.org", "*"}}))
      << "two names for two users";
  EXPECT_FALSE(still_stand(certificate, {false, "https://sso.example", "sub"}, domain));

  const model::ProvenNames token{{"openid:ada"}, "https://sso.example", "sub", "ada"};
  const IdentityUsers named = {{"openid:ada", "ada"}};
  EXPECT_TRUE(still_stand(token, signers, named));
  EXPECT_FALSE(still_stand(token, {true, "https://other.example", "sub"}, named));
  EXPECT_FALSE(still_stand(token, {true, "https://sso.example", "email"}, named));
  EXPECT_FALSE(still_stand(token, {true, {}, {}}, named));
}

TEST_F(IdentityNames, WhatIsRightlySignedIsNoFailureOfItsAddressWhomeverItStandsFor) {
  for (const char* name : {"cn:unknown", "email:root@example.org", "email:gone@example.org"}) {
    proven_.names = {name};
    rule_["email:gone@example.org"] = "gone";
    for (int i = 0; i < 10; ++i) ASSERT_EQ(refusal(), "UNAUTHENTICATED") << name;
  }
  EXPECT_NE(lines_.find("cn:unknown has no user in access.identities"), std::string::npos)
      << lines_;
  EXPECT_NE(lines_.find("system account"), std::string::npos) << lines_;
  proven_.names = {"email:ann@example.org"};
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(IdentityNames, WhatIsNotSignedIsAFailureOfItsAddress) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal("forged"), "UNAUTHENTICATED");
  EXPECT_EQ(refusal("forged"), "RESOURCE_EXHAUSTED");
}

}  // namespace
}  // namespace gpu_platform::api
