#include "kubernetes/client_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ClientTls, TrustsTheAuthorityOfTheAccessAloneAndShowsItsCertificate) {
  const Pki pki;
  const TestCertificate user =
      make_certificate({.alternative_names = "DNS:ann", .issuer = &pki.authority});
  ScriptedServer server({pki.server, pki.authority.pem()},
                        [](const SeenRequest&, Wire& wire) { wire.answer(200, "in"); });
  ClusterAccess access = access_to(server);
  access.ca_pem = pki.authority.pem();
  EXPECT_EQ(ask(*client_of(access), "/").status, 0) << "without a certificate";
  access.user.certificate_pem = user.pem();
  access.user.key_pem = user.key_pem();
  EXPECT_EQ(ask(*client_of(access), "/").body, "in");
}

TEST(ClientTls, ARequestDoesNotWaitForTheEndOfAnother) {
  const Pki pki;
  ScriptedServer server({pki.server, ""}, [](const SeenRequest& seen, Wire& wire) {
    seen.has("watch") ? wire.hold() : wire.answer(200, "");
  });
  ClusterAccess access = access_to(server);
  access.ca_pem = pki.authority.pem();
  const auto client = client_of(access);
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  EXPECT_EQ(ask(*client, "/a").status, 200);
}

TEST(ClientTls, AnotherAuthorityIsRefusedBeforeTheTokenIsSent) {
  const Pki pki;
  ScriptedServer server({pki.server, ""},
                        [](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  ClusterAccess access = access_to(server);
  access.user.token = "secret";
  for (const std::string& ca : {make_authority().pem(), std::string(), std::string("no PEM")}) {
    access.ca_pem = ca;
    const Answer answer = ask(*client_of(access), "/");
    EXPECT_EQ(answer.status, 0);
    EXPECT_NE(answer.failure, "");
    EXPECT_THAT(answer.failure, Not(HasSubstr("secret")));
    if (ca.starts_with("-----BEGIN")) {
      EXPECT_THAT(answer.failure, HasSubstr("is certificate-authority of the kubeconfig that of"));
    }
  }
  EXPECT_TRUE(server.requests().empty());
  access.ca_pem.clear();
  access.skips_tls_verification = true;
  EXPECT_EQ(ask(*client_of(access), "/").status, 200);
}

TEST(ClientTls, ChecksTheServerNameThatTheAccessGives) {
  const TestCertificate authority = make_authority();
  const TestCertificate shown =
      make_certificate({.alternative_names = "DNS:api.example", .issuer = &authority});
  ScriptedServer server({shown, ""}, [](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  ClusterAccess access = access_to(server);
  access.ca_pem = authority.pem();
  EXPECT_EQ(ask(*client_of(access), "/").status, 0);
  access.tls_server_name = "other.example";
  EXPECT_EQ(ask(*client_of(access), "/").status, 0);
  access.tls_server_name = "api.example";
  EXPECT_EQ(ask(*client_of(access), "/").status, 200);
  EXPECT_EQ(server.requests().at(0).header("host"), fmt::format("127.0.0.1:{}", server.port()));
}

// ---- Proxies ----

// A variable of this process's environment while this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(ClientProxy, IsUsedAsConfiguredAndNeverFromTheEnvironment) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, "direct"); });
  ScriptedServer proxy([](const SeenRequest&, Wire& wire) { wire.answer(200, "proxy"); });
  ClusterAccess access = access_to(server);
  {
    const Variable of_environment("http_proxy", proxy.address());
    EXPECT_EQ(ask(*client_of(access), "/").body, "direct");
  }
  // Nor does the environment take an address from the configured one.
  const Variable of_environment("no_proxy", "127.0.0.1");
  access.proxy_url = proxy.address();
  EXPECT_EQ(ask(*client_of(access), "/").body, "proxy");
}

}  // namespace
}  // namespace gpu_platform::kubernetes
