#include "kubernetes/client_fixture.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kubernetes/folder_fixture.h"

namespace gpu_platform::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Takes one token at a time.
struct TokenServer {
  explicit TokenServer(std::string accepted) : token(std::move(accepted)) {}

  void accept(std::string next) {
    const std::scoped_lock lock(mutex);
    token = std::move(next);
  }

  std::mutex mutex;
  std::string token;
  ScriptedServer server{[this](const SeenRequest& seen, Wire& wire) {
    const std::scoped_lock lock(mutex);
    const bool is_good = seen.header("authorization") == "Bearer " + token;
    wire.answer(is_good ? 200 : 401, is_good ? "in" : "Unauthorized");
  }};
};

TEST(ClientCredentials, ATokenThatIsRefusedIsAnsweredOnce) {
  TokenServer server("other");
  ClusterAccess access = access_to(server.server);
  access.user.token = "mine";
  const auto client = client_of(access);
  EXPECT_EQ(ask(*client, "/").status, 401);
  EXPECT_EQ(server.server.requests().size(), 1U);
  server.accept("mine");
  EXPECT_EQ(ask(*client, "/").body, "in");
}

TEST(ClientCredentials, ATokenFileIsReadAgainAfterA401) {
  const Folder folder;
  TokenServer server("old");
  ClusterAccess access = access_to(server.server);
  access.user.token_file = folder.write("token", " old\n");
  const auto client = client_of(access);
  EXPECT_EQ(ask(*client, "/").body, "in");
  server.accept("new");
  EXPECT_EQ(ask(*client, "/").status, 401) << "the file has the old one still";
  EXPECT_EQ(server.server.requests().size(), 2U);
  folder.write("token", "new");
  EXPECT_EQ(ask(*client, "/").body, "in");
  std::filesystem::remove(access.user.token_file);
  EXPECT_EQ(ask(*client, "/").body, "in") << "the last token stays";
}

TEST(ClientCredentials, ATokenFileWithoutATokenFailsWithItsName) {
  const Folder folder;
  TokenServer server("x");
  ClusterAccess access = access_to(server.server);
  access.user.token_file = folder.path() + "/token";
  const auto client = client_of(access);
  EXPECT_EQ(ask(*client, "/").failure, access.user.token_file + ": No such file or directory");
  folder.write("token", "secret\r\nHost: evil");
  EXPECT_EQ(ask(*client, "/").failure, access.user.token_file + ": holds no token");
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.end->failure, access.user.token_file + ": holds no token");
  EXPECT_TRUE(server.server.requests().empty());
  folder.write("token", "x");
  EXPECT_EQ(ask(*client, "/").body, "in");
}

TEST(ClientCredentials, NoTokenGoesOverTheNetworkInTheClear) {
  ClusterAccess access;
  access.origin = "f, context lab";
  access.server = "http://10.0.0.1:80";
  access.user.token = "secret";
  const auto client = Client::make(access);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().message,
            "f, context lab: server: is http, by which others could read the user's credentials; "
            "use https");
  access.server = "https://10.0.0.1";
  access.user.token = "secret\nX: y";
  EXPECT_EQ(Client::make(access).error().message,
            "f, context lab: token: has characters that no token has");
  access.user.token.clear();
  for (const char* server : {"", "10.0.0.1", "ftp://a", "https://a b", "https://:1"}) {
    access.server = server;
    EXPECT_FALSE(Client::make(access).has_value()) << server;
  }
}

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";

std::string exec_token(std::string_view token, std::string_view more = "") {
  return fmt::format(R"({{"kind":"ExecCredential","apiVersion":"{}","status":{{"token":"{}"{}}}}})",
                     kV1, token, more);
}

ClusterAccess with_plugin(const ScriptedServer& server, std::string command) {
  ClusterAccess access = access_to(server);
  access.user.exec = {.api_version = std::string(kV1), .command = std::move(command)};
  return access;
}

TEST(ClientExecPlugin, ItsTokenIsUsedAndKept) {
  const Folder folder;
  TokenServer server("abc");
  ClusterAccess access = with_plugin(
      server.server,
      folder.script("login", fmt::format("echo $1-$N-$KUBERNETES_EXEC_INFO >>{}/runs\necho '{}'",
                                         folder.path(), exec_token("abc"))));
  access.user.exec.args = {"a b;c"};
  access.user.exec.env = {{"N", "v"}};
  access.user.exec.provide_cluster_info = true;
  const auto client = client_of(access);
  EXPECT_EQ(ask(*client, "/").body, "in");
  EXPECT_EQ(ask(*client, "/").body, "in");
  std::ifstream runs(folder.path() + "/runs");
  std::string first;
  std::string second;
  std::getline(runs, first);
  EXPECT_THAT(first, HasSubstr("a b;c-v-{"));
  EXPECT_THAT(first, HasSubstr(R"("interactive":false)"));
  EXPECT_THAT(first, HasSubstr(server.server.address()));
  EXPECT_FALSE(std::getline(runs, second)) << "it ran once";
}

TEST(ClientExecPlugin, RunsAgainAfterA401AndAfterTheExpiry) {
  const Folder folder;
  TokenServer server("t1");
  // Gives t1, then t2, and so on.
  const std::string command = folder.script(
      "login",
      fmt::format("cd {}; echo >>n; n=$(wc -l <n)\n"
                  "cat <<E\n{}\nE",
                  folder.path(),
                  exec_token("t$n", R"(,"expirationTimestamp":"2099-01-01T00:00:00.5+02:00")")));
  const auto client = client_of(with_plugin(server.server, command));
  EXPECT_EQ(ask(*client, "/").body, "in");
  server.accept("t2");
  EXPECT_EQ(ask(*client, "/").body, "in");
  EXPECT_EQ(server.server.requests().size(), 3U);
}

TEST(ClientExecPlugin, AnExpiredCredentialIsNotUsedTwice) {
  const Folder folder;
  TokenServer server("t");
  const std::string command = folder.script(
      "login", fmt::format("echo >>{}/runs\necho '{}'", folder.path(),
                           exec_token("t", R"(,"expirationTimestamp":"2001-01-01T00:00:00Z")")));
  const auto client = client_of(with_plugin(server.server, command));
  EXPECT_EQ(ask(*client, "/").body, "in");
  EXPECT_EQ(ask(*client, "/").body, "in");
  std::ifstream runs(folder.path() + "/runs");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(runs), {}, '\n'), 2);
}

TEST(ClientExecPlugin, ManyRefusedRequestsRunItOnce) {
  const Folder folder;
  TokenServer server("t1");
  const std::string command =
      folder.script("login", fmt::format("cd {}; echo >>n; n=$(wc -l <n)\ncat <<E\n{}\nE",
                                         folder.path(), exec_token("t$n")));
  const auto client = client_of(with_plugin(server.server, command));
  EXPECT_EQ(ask(*client, "/").body, "in");
  server.accept("t2");
  int good = 0;
  for (int i = 0; i < 20; ++i) {
    client->send({.path = "/"}, [&](const Answer& answer) { good += answer.is_ok() ? 1 : 0; });
  }
  ASSERT_TRUE(poll_until(*client, [&] { return client->pending() == 0; }));
  EXPECT_EQ(good, 20);
}

TEST(ClientExecPlugin, ItsCertificateIsShown) {
  const Folder folder;
  const Pki pki;
  const TestCertificate user =
      make_certificate({.alternative_names = "DNS:ann", .issuer = &pki.authority});
  ScriptedServer server({pki.server, pki.authority.pem()},
                        [](const SeenRequest&, Wire& wire) { wire.answer(200, "in"); });
  const nlohmann::json credential = {
      {"kind", "ExecCredential"},
      {"apiVersion", kV1},
      {"status", {{"clientCertificateData", user.pem()}, {"clientKeyData", user.key_pem()}}}};
  const std::string file = folder.write("credential", credential.dump());
  ClusterAccess access = with_plugin(server, "cat");
  access.user.exec.args = {file};
  access.ca_pem = pki.authority.pem();
  EXPECT_EQ(ask(*client_of(access), "/").body, "in");
}

// The failure of a plugin that is this script.
std::string failure_of(const std::string& script, base::Duration time = kTimeout) {
  const Folder folder;
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const auto client =
      client_of(with_plugin(server, folder.script("login", script)), {.plugin_time = time});
  const Answer answer = ask(*client, "/");
  EXPECT_EQ(answer.status, 0);
  EXPECT_TRUE(server.requests().empty());
  return answer.failure;
}

TEST(ClientExecPlugin, WhatGoesWrongIsSaidWithoutItsOutput) {
  EXPECT_THAT(failure_of("echo token secret; echo no login >&2; exit 3"),
              HasSubstr("login' for the credentials ended with exit code 3: no login"));
  EXPECT_THAT(failure_of("kill -9 $$"), HasSubstr("was ended by signal 9"));
  EXPECT_THAT(failure_of("exec sleep 1000", base::milliseconds(1000)),
              HasSubstr("did not end within 1 s"));
  EXPECT_THAT(failure_of("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"),
              HasSubstr("printed more than 1048576 bytes"));
  EXPECT_THAT(failure_of("echo secret"),
              HasSubstr("is not an ExecCredential: it is not a JSON object"));
  EXPECT_THAT(failure_of("echo '[]'"), HasSubstr("it is not a JSON object"));
  EXPECT_THAT(failure_of("echo '{\"kind\":\"Status\"}'"), HasSubstr("its kind is another"));
  EXPECT_THAT(failure_of("echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}'"),
              HasSubstr("its apiVersion is not client.authentication.k8s.io/v1"));
  EXPECT_THAT(failure_of(fmt::format("echo '{}'", exec_token(""))),
              HasSubstr("it has neither a token nor a certificate"));
  EXPECT_THAT(failure_of(fmt::format("echo '{}'", exec_token("secret here"))),
              HasSubstr("its token has characters that no token has"));
  const std::string time = R"(,"expirationTimestamp":"secret")";
  const std::string bad_time = failure_of(fmt::format("echo '{}'", exec_token("t", time)));
  EXPECT_THAT(bad_time, HasSubstr("its expirationTimestamp is not a time"));
  EXPECT_THAT(bad_time, Not(HasSubstr("secret")));
}

TEST(ClientExecPlugin, AMissingProgramIsNamedWithItsHint) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  ClusterAccess access = with_plugin(server, "no-such-login");
  access.user.exec.install_hint = "Install it from the shop.";
  EXPECT_THAT(ask(*client_of(access), "/").failure,
              HasSubstr("the program 'no-such-login' for the credentials cannot be run: No such "
                        "file or directory. Install it from the shop."));
}

TEST(ClientExecPlugin, PollGoesOnWhileItRuns) {
  const Folder folder;
  TokenServer server("abc");
  ASSERT_EQ(::mkfifo((folder.path() + "/go").c_str(), 0600), 0);
  const auto client = client_of(with_plugin(
      server.server, folder.script("login", fmt::format("read x <{}/go\necho '{}'", folder.path(),
                                                        exec_token("abc")))));
  std::optional<Answer> answer;
  client->send({.path = "/"}, [&](const Answer& got) { answer = got; });
  client->poll(base::milliseconds(20));  // it begins, and poll() comes back
  EXPECT_FALSE(answer.has_value());
  std::ofstream(folder.path() + "/go") << "\n";
  ASSERT_TRUE(poll_until(*client, [&] { return answer.has_value(); }));
  EXPECT_EQ(answer->body, "in");
}

// ---- Credentials for other connections ----

base::Result<Credential> credential_of(Client& client) {
  std::optional<base::Result<Credential>> told;
  client.ask_credential([&](base::Result<Credential> now) { told = std::move(now); });
  EXPECT_TRUE(poll_until(client, [&] { return told.has_value(); }));
  return told.value_or(base::fail(base::ErrorCode::kInternal, "nothing was told"));
}

TEST(ClientCredential, IsTheOneOfThePluginThatRunsForIt) {
  const Folder folder;
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const std::string script = fmt::format("echo '{}'", exec_token("abc"));
  const auto client = client_of(with_plugin(server, folder.script("login", script)));
  const auto credential = credential_of(*client);
  ASSERT_TRUE(credential.has_value()) << credential.error().message;
  EXPECT_EQ(credential->token, "abc");
  EXPECT_TRUE(server.requests().empty());
}

TEST(ClientCredential, ThatCannotBeHadIsAnError) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const auto client = client_of(with_plugin(server, "no-such-login"));
  const auto credential = credential_of(*client);
  ASSERT_FALSE(credential.has_value());
  EXPECT_THAT(credential.error().message, HasSubstr("no-such-login"));
}

}  // namespace
}  // namespace gpu_platform::kubernetes
