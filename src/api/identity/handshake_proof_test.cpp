#include "api/identity/handshake_proof.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <future>
#include <memory>
#include <optional>

#include "api/identity/certificate_prover.h"
#include "api/identity/handshake_test.h"
#include "api/identity/identity_authenticator.h"

namespace gpu_platform::api {

namespace {

void note_message(int, int, int type, const void* bytes, std::size_t size, SSL*, void* into) {
  if (type != SSL3_RT_HANDSHAKE) return;
  static_cast<std::string*>(into)->append(static_cast<const char*>(bytes), size);
}

std::shared_ptr<SSL_CTX> context_of(const SSL_METHOD* method, const TestCertificate& shown) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);  // as the listener
#endif
  if (shown.certificate != nullptr) {
    SSL_CTX_use_certificate(context.get(), shown.certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), shown.key.get());
  }
  return context;
}

}  // namespace

TestCertificate make_certificate(const std::string& common_name, TestCertificateOptions options) {
  options.common_name = common_name;
  if (!options.is_authority && options.extended_use.empty()) options.extended_use = "clientAuth";
  if (options.ends_in_s == TestCertificateOptions().ends_in_s) options.ends_in_s = 3600;
  return http::make_certificate(options);
}

std::string handshake_of(const TestCertificate& server, const TestCertificate& client,
                         const TestHandshake& how) {
  const auto server_context = context_of(TLS_server_method(), server);
  const auto client_context = context_of(TLS_client_method(), client);
  SSL_CTX_set1_groups_list(server_context.get(), how.server_groups.c_str());
  SSL_CTX_set1_groups_list(client_context.get(), "X25519:P-256");
  SSL_CTX_set_ciphersuites(client_context.get(), how.ciphers.c_str());
  SSL_CTX_set_verify(server_context.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  const std::unique_ptr<SSL, void (*)(SSL*)> here(SSL_new(server_context.get()), SSL_free);
  const std::unique_ptr<SSL, void (*)(SSL*)> there(SSL_new(client_context.get()), SSL_free);
  BIO* ends[2];
  BIO_new_bio_pair(&ends[0], 0, &ends[1], 0);
  SSL_set_bio(here.get(), ends[0], ends[0]);
  SSL_set_bio(there.get(), ends[1], ends[1]);
  SSL_set_accept_state(here.get());
  SSL_set_connect_state(there.get());
  std::string messages;
  SSL_set_msg_callback(here.get(), note_message);
  SSL_set_msg_callback_arg(here.get(), &messages);
  for (int i = 0; i < 10; ++i) {
    const int one = SSL_do_handshake(there.get());
    const int other = SSL_do_handshake(here.get());
    if (one == 1 && other == 1) return messages;
  }
  ADD_FAILURE() << "no handshake: " << ERR_error_string(ERR_get_error(), nullptr);
  return {};
}

namespace {

base::Instant in_seconds(long seconds) {
  return os::wall_now() + base::seconds(seconds);
}

class HandshakeProof : public testing::Test {
 protected:
  TestCertificate leaf(const std::string& name, TestCertificateOptions options = {}) const {
    options.issuer = &authority_;
    return make_certificate(name, options);
  }
  std::string why_not(const std::string& messages, base::Instant now = in_seconds(0)) const {
    const auto proven = check_handshake(
        messages, trusted_, [this](std::string_view digest) { return digest == own_digest_; }, now);
    if (proven) return "proven";
    EXPECT_EQ(proven.error().code, base::ErrorCode::kUnauthenticated);
    return proven.error().message;
  }

  const TestCertificate authority_ = make_certificate("authority", {.is_authority = true});
  const TestCertificate server_ = make_certificate("server");
  const std::string own_digest_ = certificate_digest(server_.pem());
  const ClientAuthorities trusted_ = *ClientAuthorities::from_pem(authority_.pem());
};

TEST_F(HandshakeProof, TellsTheNamesOfTheClientWithEachKindOfKeyAndHash) {
  for (const char* key : {"P-256", "P-384", "RSA", "ED25519"}) {
    for (const char* ciphers : {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"}) {
      const auto client = leaf("Ada L", {.key = key,
                                         .alternative_names = "email:ada@example.org,DNS:a.example,"
                                                              "URI:spiffe://example.org/ci"});
      const auto messages = handshake_of(server_, client, {.ciphers = ciphers});
      const auto proven = check_handshake(
          messages, trusted_, [&](std::string_view digest) { return digest == own_digest_; },
          in_seconds(0));
      ASSERT_TRUE(proven.has_value()) << key << ' ' << proven.error().message;
      EXPECT_EQ(proven->names,
                (std::vector<std::string>{"cn:Ada L", "email:ada@example.org", "dns:a.example",
                                          "uri:spiffe://example.org/ci"}));
      EXPECT_GT(proven->not_after, in_seconds(3000));
      EXPECT_LT(proven->not_after, in_seconds(4000));
    }
  }
}

TEST_F(HandshakeProof, HoldsAfterARetryOfTheHello) {
  const auto messages = handshake_of(server_, leaf("ada"), {.server_groups = "P-256"});
  EXPECT_EQ(why_not(messages), "proven");
}

TEST_F(HandshakeProof, RefusesWhatNoAuthorityOfTheSiteHasSignedForAClientNow) {
  EXPECT_NE(why_not(handshake_of(server_, make_certificate("ada"))).find("self"),
            std::string::npos);
  const auto foreign = make_certificate("authority", {.is_authority = true});
  EXPECT_NE(why_not(handshake_of(server_, make_certificate("ada", {.issuer = &foreign}))),
            "proven");
  const auto for_servers = leaf("ada", {.extended_use = "serverAuth"});
  EXPECT_NE(why_not(handshake_of(server_, for_servers)).find("purpose"), std::string::npos);
  const auto messages = handshake_of(server_, leaf("ada"));
  EXPECT_EQ(why_not(messages), "proven");
  EXPECT_NE(why_not(messages, in_seconds(4000)).find("expired"), std::string::npos);
  EXPECT_NE(why_not(messages, in_seconds(-4000)).find("not yet valid"), std::string::npos);
}

TEST_F(HandshakeProof, RefusesAHandshakeWithAnotherServerAndOneWithoutACertificate) {
  EXPECT_NE(why_not(handshake_of(make_certificate("server"), leaf("ada"))).find("another server"),
            std::string::npos);
  EXPECT_NE(why_not(handshake_of(server_, {})), "proven");
  EXPECT_NE(why_not(""), "proven");
}

TEST_F(HandshakeProof, NoByteOfItMayBeAnotherAndNoneMissing) {
  std::string messages = handshake_of(server_, leaf("ada"), {.server_groups = "P-256"});
  ASSERT_EQ(why_not(messages), "proven");
  // The client's Finished, which is the last message, is not read: 4 bytes and a hash.
  const std::size_t read = messages.size() - 36;
  for (std::size_t at = 0; at < read; ++at) {
    messages[at] = static_cast<char>(messages[at] ^ 1);
    EXPECT_NE(why_not(messages), "proven") << at;
    messages[at] = static_cast<char>(messages[at] ^ 1);
  }
  for (std::size_t size = 0; size < read; ++size) {
    EXPECT_NE(why_not(messages.substr(0, size)), "proven") << size;
  }
  EXPECT_EQ(why_not(messages.substr(0, read)), "proven");
}

TEST(IdentityUsers, AreFoundByNameOrByDomainButNeverTwo) {
  const IdentityUsers users = {
      {"cn:Build 7", "builder"}, {"email:*@example.org", "*"}, {"email:boss@example.org", "ann"}};
  EXPECT_EQ(user_of({"cn:Build 7"}, users), "builder");
  EXPECT_EQ(user_of({"cn:other", "email:bob@example.org"}, users), "bob");
  EXPECT_EQ(user_of({"email:boss@example.org"}, users), "ann");
  EXPECT_EQ(user_of({"email:bob@example.org.evil"}, users), std::nullopt);
  EXPECT_EQ(user_of({"email:bob@sub.example.org"}, users), std::nullopt);
  EXPECT_EQ(user_of({"email:@example.org"}, users), std::nullopt);
  EXPECT_EQ(user_of({"dns:bob@example.org", "cn:bob@example.org"}, users), std::nullopt);
  EXPECT_EQ(user_of({"cn:Build 7", "email:bob@example.org"}, users), std::nullopt);
  EXPECT_EQ(user_of({"cn:Build 7", "email:builder@example.org"}, users), "builder");
  EXPECT_EQ(user_of({}, users), std::nullopt);
  const IdentityUsers openid = {{"openid:*@example.org", "*"}, {"openid:eve", "eva"}};
  EXPECT_EQ(user_of({"openid:ann@example.org"}, openid), "ann");
  EXPECT_EQ(user_of({"openid:eve"}, openid), "eva");
  EXPECT_EQ(user_of({"email:ann@example.org"}, openid), std::nullopt);
}

// The users of a machine by name.
class CertificateAccounts final : public host::UserDatabase {
 public:
  base::Result<host::User> find(std::uint32_t) const override {
    return base::fail(base::ErrorCode::kNotFound, "not asked");
  }
  base::Result<host::User> find(const std::string& name) const override {
    if (name == "ada") return host::User{"ada", 1001, 1001, "/home", "/bin/sh"};
    if (name == "games") return host::User{"games", 5, 60, "/usr/games", "/bin/sh"};
    if (name == "toor") return host::User{"toor", 0, 0, "/root", "/bin/sh"};
    return base::fail(base::ErrorCode::kNotFound, "no such user");
  }
};

class IdentityAuthentication : public HandshakeProof {
 protected:
  IdentityAuthentication() {
    rule_ = std::make_shared<const IdentityUsers>(
        IdentityUsers{{"email:*@example.org", "*"}, {"cn:ada", "ada"}});
    IdentityAuthenticator::Options options;
    options.limits.failures = 4;
    options.clock = [this] { return now_; };
    options.rule = [this] { return rule_; };
    options.prove = [this](const Credential& shown, base::Instant now) {
      return prover_.prove(shown.secret, now);
    };
    options.warn = [this](const std::string& line) { lines_ += line + "\n"; };
    authenticator_.emplace(directory_, options);
    prover_.note_own(server_.pem());
    prover_.trust(trusted_);
  }
  base::Result<Peer> ask(const TestCertificate& client) {
    std::promise<base::Result<Peer>> answer;
    authenticator_->authenticate(
        {Credential::Kind::kCertificate, handshake_of(server_, client), "192.0.2.7"},
        [&](base::Result<Peer> peer) { answer.set_value(std::move(peer)); });
    return answer.get_future().get();
  }

  std::shared_ptr<const IdentityUsers> rule_;
  base::Instant now_ = in_seconds(0);
  std::string lines_;
  CertificateProver prover_;
  host::UserDirectory directory_{std::make_shared<CertificateAccounts>()};
  std::optional<IdentityAuthenticator> authenticator_;
};

TEST_F(IdentityAuthentication, IsTheUserOfTheRuleUntilTheRuleOrTheCertificateEnds) {
  const auto peer = ask(leaf("ada"));
  ASSERT_TRUE(peer.has_value()) << peer.error().message;
  EXPECT_EQ(peer->caller.user, "ada");
  EXPECT_EQ(peer->caller.uid, 1001U);
  EXPECT_EQ(peer->caller.door, model::Door::kListener);
  EXPECT_TRUE(authenticator_->check_still_holds(*peer).has_value());
  const base::Instant began = now_;
  now_ = in_seconds(4000);
  EXPECT_FALSE(authenticator_->check_still_holds(*peer).has_value());
  now_ = began;
  rule_ = std::make_shared<const IdentityUsers>();
  EXPECT_FALSE(authenticator_->check_still_holds(*peer).has_value());
}

TEST_F(IdentityAuthentication, HoldsNoLongerThanAnAuthorityOfTheSiteHasSignedIt) {
  const auto peer = ask(leaf("ada"));
  ASSERT_TRUE(peer.has_value()) << peer.error().message;
  const auto still_holds = [&] { return authenticator_->check_still_holds(*peer).has_value(); };
  const TestCertificate other = make_certificate("another", {.is_authority = true});
  prover_.trust(*ClientAuthorities::from_pem(other.pem()));
  EXPECT_FALSE(still_holds());
  EXPECT_FALSE(still_holds()) << "asked again";
  EXPECT_FALSE(ask(leaf("ada")).has_value());
  prover_.trust(*ClientAuthorities::from_pem(other.pem() + authority_.pem()));
  EXPECT_TRUE(still_holds());
  now_ = in_seconds(4000);
  EXPECT_FALSE(still_holds());
}

TEST_F(IdentityAuthentication, NeverStandsForASystemAccount) {
  for (const char* email :
       {"games@example.org", "toor@example.org", "root@example.org", "unknown-user@example.org"}) {
    const auto peer = ask(leaf("x", {.alternative_names = std::string("email:") + email}));
    ASSERT_FALSE(peer.has_value()) << email;
    EXPECT_EQ(peer.error().code, base::ErrorCode::kUnauthenticated);
  }
  EXPECT_NE(lines_.find("system account"), std::string::npos) << lines_;
}

}  // namespace
}  // namespace gpu_platform::api
