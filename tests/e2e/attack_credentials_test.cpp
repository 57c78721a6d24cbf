// Attacks with credentials from other machines: who has a credential for a short time, or a weak
// one, and wants more of it; a token that was taken back while its bearer waits; pages of other
// sites in the browser of a person with a certificate; and tokens that were signed for other
// things.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>

#include <future>

#include "api/identity/testing/issuer_key.h"
#include "listener/testing/grpc_client.h"
#include "listener_fixture.h"

namespace gpu_platform::e2e {
namespace {

using listener::GrpcClient;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kIssuer = "https://sso.example";

std::int64_t unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// Seconds since 1970 of "2026-07-01T12:00:00.000Z".
std::int64_t seconds_of(const json& time) {
  if (!time.is_string()) return INT64_MAX;
  std::tm parts{};
  const std::string text = time;
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return INT64_MAX;
  return ::timegm(&parts);
}

class AttackByCredentials : public ListenerProcess {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
    put("localhost");
    write_pem_file(folder_.path() + "/keys.json", json{{"keys", {issuer_.entry()}}}.dump(), 0644);
    write_pem_file(folder_.path() + "/ada.crt", ada_.pem());
    daemon_ = std::make_unique<Daemon>(DaemonOptions{.config = config(kNames)});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    ASSERT_TRUE(answers()) << daemon_->log();
    ::chmod(daemon_->directory().c_str(), 0755);
    const auto test =
        as_account({kAnn, kNoGroup}, {"/usr/bin/test", "-x", program("gpu-platform")});
    if (run_command(test).exit_code != 0) GTEST_SKIP() << "closed to other users";
  }

  static constexpr const char* kNoGroup = "65534";
  // The users that a certificate and the issuer's tokens stand for.
  static constexpr const char* kNames = R"({"cn:ada": daemon, "openid:ann": daemon})";
  std::string config(const std::string& identities) const {
    return configuration("  grpc:\n    address: 127.0.0.1:" + std::to_string(grpc_port_) + "\n") +
           "    client_ca: " + folder_.path() + "/ada.crt\naccess:\n  openid: {issuer: \"" +
           kIssuer + "\", audience: gpu, keys: " + folder_.path() +
           "/keys.json, user_claim: sub}\n  identities: " + identities + "\n";
  }
  // Returns when the daemon goes by it.
  void change_identities(const std::string& identities, const std::string& token, int status) {
    std::ofstream(daemon_->directory() + "/config.yaml")
        << config(identities) << "execution: {min_uid: 1}\n";
    kill(daemon_->pid(), SIGHUP);
    EXPECT_TRUE(eventually([&] { return ask(token, "GET", "/v1/whoami").status == status; }))
        << identities << daemon_->log();
  }

  std::string signed_token(std::int64_t ends_at, const json& changes = json::object(),
                           const json& header = json::object()) const {
    json claims = {{"iss", kIssuer}, {"aud", "gpu"}, {"sub", "ann"}, {"exp", ends_at}};
    claims.merge_patch(changes);
    return issuer_.sign(claims, "ES256", header);
  }
  static std::string request(const std::string& token, const std::string& method,
                             const std::string& target, const std::string& body = {},
                             const std::string& more = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more;
    if (!token.empty()) text += "Authorization: Bearer " + token + "\r\n";
    if (!body.empty()) {
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n";
    }
    return text + "\r\n" + body;
  }
  TlsClient::Response ask_as(const TlsClient::Options& who, const std::string& bytes) const {
    TlsClient client(port_, who);
    if (!client.is_connected() || !client.send(bytes)) return {};
    return client.receive().value_or(TlsClient::Response{});
  }
  TlsClient::Response ask(const std::string& token, const std::string& method,
                          const std::string& target, const std::string& body = {},
                          const std::string& more = {}) const {
    return ask_as({}, request(token, method, target, body, more));
  }
  TlsClient::Options with_certificate() const {
    return {.certificate = ada_.pem(), .key = ada_.key_pem()};
  }
  // The answer to the making of a token with that credential.
  json made(const TlsClient::Response& answer) const {
    EXPECT_EQ(answer.status, 201) << answer.body;
    return answer.status == 201 ? json::parse(answer.body) : json{{"token", {}}, {"secret", ""}};
  }
  json make(const std::string& token, const std::string& name) const {
    return made(ask(token, "POST", "/v1/tokens", json{{"name", name}}.dump()));
  }

  // The command line of a user of this machine.
  Finished local(const std::string& user, std::vector<std::string> words) const {
    words.insert(words.begin(), {"/usr/bin/env", "-C", "/", program("gpu-platform"), "--server",
                                 "unix:" + daemon_->socket()});
    return run_command(as_account({user, kNoGroup}, words));
  }
  std::string local_token(const std::string& name, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"token", "create", "-q", "--name", name});
    const Finished done = local(kAnn, options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }
  // gRPC's wait for a job: field 1 is the job, field 2 the time limit (a double).
  static std::string wait_message(const std::string& job) {
    return std::string("\x0a") + static_cast<char>(job.size()) + job +
           std::string("\x11\x00\x00\x00\x00\x00\x70\xa7\x40", 9);
  }
  std::string held_job() const {
    const Finished done = local(kAnn, {"submit", "--hold", "--gpus", "0", "--", "/bin/true"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }

  const std::uint16_t grpc_port_ = free_port();
  const api::IssuerKey issuer_{"first", "P-256"};
  const http::TestCertificate ada_ =
      http::make_certificate({.common_name = "ada", .ends_in_s = 3600});
};

// Who: the bearer of an issuer's token, or of a certificate, that ends soon. Tried: a token of ours
// that does not, and one that was made with such a one. Refused by: what is made ends no later.
TEST_F(AttackByCredentials, WhatAShortCredentialMakesEndsWithIt) {
  const std::int64_t end = unix_now() + 20;
  const std::string brief = signed_token(end);
  for (const char* body : {R"({"name":"x","never_expires":true})",
                           R"({"name":"x","expires_at":"2199-01-01T00:00:00Z"})"}) {
    const auto refused = ask(brief, "POST", "/v1/tokens", body);
    EXPECT_EQ(refused.status, 409) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("your credential expires"));
  }
  const json first = make(brief, "first");
  EXPECT_LE(seconds_of(first["token"]["expires_at"]), end);
  EXPECT_EQ(first["token"]["identities"], json({"openid:ann"}));
  EXPECT_EQ(first["token"]["issuer"], kIssuer);
  EXPECT_EQ(first["token"]["user_claim"], "sub");
  const json second = make(first["secret"], "second");
  EXPECT_LE(seconds_of(second["token"]["expires_at"]), end);
  EXPECT_EQ(second["token"]["identities"], json({"openid:ann"}));
  const auto longer =
      ask(second["secret"], "POST", "/v1/tokens", R"({"name":"third","never_expires":true})");
  EXPECT_EQ(longer.status, 409) << longer.body;
  // Within the skew of clocks that is forgiven, nothing more is made.
  const auto late = ask(signed_token(unix_now() - 5), "POST", "/v1/tokens", R"({"name":"late"})");
  EXPECT_EQ(late.status, 401) << late.body;

  const json by_certificate = made(ask_as(
      with_certificate(), request({}, "POST", "/v1/tokens", R"({"name":"by-certificate"})")));
  EXPECT_LE(seconds_of(by_certificate["token"]["expires_at"]), unix_now() + 3600);
  EXPECT_EQ(by_certificate["token"]["identities"], json({"cn:ada"}));
  EXPECT_TRUE(by_certificate["token"]["issuer"].is_null());
  // What a user of this machine makes has no such names.
  local_token("own");
  const auto listed = json::parse(local(kAnn, {"token", "list", "--json"}).out)["tokens"];
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[0]["name"], "own");
  EXPECT_EQ(listed[0]["identities"], json::array());
  EXPECT_THAT(local(kAnn, {"token", "list"}).out, HasSubstr("openid:ann"));

  // After that second, none of them is of use; a kill of the daemon changes nothing.
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(answers());
  EXPECT_TRUE(eventually([&] {
    return ask(first["secret"], "GET", "/v1/whoami").status == 401 &&
           ask(second["secret"], "GET", "/v1/whoami").status == 401;
  }));
  EXPECT_GE(unix_now(), end);
  EXPECT_EQ(ask(by_certificate["secret"], "GET", "/v1/whoami").status, 200);
}

// Who: a person who has left, and whose name the site has taken out of its rules. Tried: tokens
// that he made before, on new and open connections, streams, long polls and in a browser. Refused
// by: the rule is asked again at each look.
TEST_F(AttackByCredentials, WhatASignedCredentialMadeHoldsOnlyWhileARuleHasItsNames) {
  const std::string credential = signed_token(unix_now() + 3'000);
  const std::string parent = make(credential, "parent")["secret"];
  const std::string child = make(parent, "child")["secret"];
  const std::string of_certificate =
      made(ask_as(with_certificate(),
                  request({}, "POST", "/v1/tokens", R"({"name":"by-certificate"})")))["secret"];
  const std::string job = held_job();
  TlsClient stream(port_);
  ASSERT_TRUE(stream.send(request(child, "GET", "/v1/events")));
  ASSERT_EQ(stream.receive_head()->status, 200);
  TlsClient poll(port_);
  ASSERT_TRUE(poll.send(request(child, "GET", "/v1/jobs/" + job + "/wait?timeout_seconds=3000")));
  TlsClient open(port_);
  ASSERT_TRUE(open.send(request(child, "GET", "/v1/whoami")));
  ASSERT_EQ(open.receive()->status, 200);
  const std::string cookie = "Cookie: __Host-gpu-platform=" + child + "\r\n";
  EXPECT_EQ(ask({}, "GET", "/v1/whoami", {}, cookie).status, 200);

  change_identities(R"({"cn:ada": daemon})", parent, 401);
  EXPECT_EQ(ask(child, "GET", "/v1/whoami").status, 401);
  EXPECT_EQ(ask(credential, "GET", "/v1/whoami").status, 401);
  EXPECT_EQ(ask(parent, "POST", "/v1/tokens", R"({"name":"more"})").status, 401);
  EXPECT_EQ(ask({}, "GET", "/v1/whoami", {}, cookie).status, 401);
  ASSERT_TRUE(open.send(request(child, "GET", "/v1/whoami")));
  EXPECT_EQ(open.receive()->status, 401);
  EXPECT_EQ(ask(of_certificate, "GET", "/v1/whoami").status, 200) << "the other name still stands";
  // What is open and silent ends by itself.
  EXPECT_EQ(poll.receive().value_or(TlsClient::Response{}).status, 401);
  EXPECT_FALSE(stream.receive_chunk().has_value());

  // The next daemon begins with the first rules, and knows the names from the journal.
  daemon_->kill_now();
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(answers());
  EXPECT_EQ(ask(child, "GET", "/v1/whoami").status, 200);
  change_identities(R"({"cn:other": daemon})", child, 401);
  change_identities(R"({"cn:ada": games, "openid:ann": games})", of_certificate, 401);
  EXPECT_EQ(ask(child, "GET", "/v1/whoami").status, 401) << "the name is another user's now";
  change_identities(kNames, child, 200);
}

// Who: a thief of a token that only looks. Tried: to lock its user out, by ending the user's other
// tokens, taking all names and places of tokens, and all connections. Refused by: a token ends
// those alone that may do no more, and leaves room for its user.
TEST_F(AttackByCredentials, AWeakTokenDoesNotLockItsUserOut) {
  local_token("strong", {"--role", "user"});
  local_token("dashboard", {"--role", "viewer"});
  const std::string user = local_token("laptop");
  const std::string stolen = local_token("stolen", {"--role", "viewer"});
  for (const char* other : {"strong", "dashboard", "laptop", "1", "2"}) {
    const auto answer = ask(stolen, "DELETE", std::string("/v1/tokens/") + other);
    EXPECT_EQ(answer.status, 403) << other << answer.body;
  }
  for (const char* action : {"cancel", "kill", "hold", "release", "requeue", "top"}) {
    EXPECT_EQ(ask(stolen, "POST", "/v1/jobs/" + held_job() + "/" + action, "{}").status, 403);
  }
  int made_tokens = 0;
  while (made_tokens < 100 &&
         ask(stolen, "POST", "/v1/tokens", json{{"name", "t" + std::to_string(made_tokens)}}.dump())
                 .status == 201) {
    ++made_tokens;
  }
  EXPECT_LT(made_tokens, 60);
  local_token("next");
  // It is still good for what it is: it ends itself, and hears of it.
  EXPECT_EQ(ask(stolen, "DELETE", "/v1/tokens/stolen").status, 200);
  EXPECT_EQ(ask(stolen, "GET", "/v1/whoami").status, 401);
  EXPECT_EQ(ask(user, "DELETE", "/v1/tokens/dashboard").status, 200);
}

// Who: a client whose token is taken back while it waits. Tried: to hear the end all the same.
// Refused by: the credential is looked at before each answer that was held back.
TEST_F(AttackByCredentials, WhatWaitsTellsNothingToATokenThatWasRevoked) {
  const std::string token = local_token("waits");
  const std::string job = held_job();
  TlsClient wait(port_);
  ASSERT_TRUE(wait.send(request(token, "GET", "/v1/jobs/" + job + "/wait?timeout_seconds=3000")));
  TlsClient check(port_);
  const json later = {
      {"command", {"/bin/true"}}, {"workdir", "/"}, {"dependency", "afterok:" + job}};
  ASSERT_TRUE(check.send(request(token, "POST", "/v1/check",
                                 json{{"spec", later}, {"timeout_seconds", 3000}}.dump())));
  TlsClient events(port_);
  ASSERT_TRUE(events.send(request(token, "GET", "/v1/jobs/" + job + "/events")));
  ASSERT_EQ(events.receive_head()->status, 200);
  ASSERT_TRUE(events.receive_chunk().has_value());
  auto over_grpc = std::async(std::launch::async, [&] {
    GrpcClient client(grpc_port_);
    return client.call("/gpu_platform.v1.JobService/WaitJob", wait_message(job), token).status();
  });
  ASSERT_EQ(local(kAnn, {"token", "revoke", "waits"}).exit_code, 0);
  ASSERT_EQ(local(kAnn, {"jobs", "cancel", job}).exit_code, 0);
  for (TlsClient* const client : {&wait, &check}) {
    const auto answer = client->receive().value_or(TlsClient::Response{});
    EXPECT_EQ(answer.status, 401) << answer.body;
    EXPECT_THAT(answer.body, Not(HasSubstr("CANCELLED")));
  }
  EXPECT_FALSE(events.receive_chunk().has_value()) << "the end of the job";
  EXPECT_EQ(over_grpc.get(), 16);
}

// Who: a client whose certificate's authority leaves the site, with all that it has open. Tried: to
// go on, over connections and streams that were opened before. Refused by: the chain is checked
// again.
TEST_F(AttackByCredentials, WhatALeftAuthorityHasSignedEndsWithIt) {
  const std::string job = held_job();
  TlsClient kept(port_, with_certificate());
  ASSERT_TRUE(kept.send(request({}, "GET", "/v1/whoami")));
  ASSERT_EQ(kept.receive()->status, 200);
  TlsClient wait(port_, with_certificate());
  ASSERT_TRUE(wait.send(request({}, "GET", "/v1/jobs/" + job + "/wait?timeout_seconds=3000")));
  TlsClient events(port_, with_certificate());
  ASSERT_TRUE(events.send(request({}, "GET", "/v1/jobs/" + job + "/events")));
  ASSERT_EQ(events.receive_head()->status, 200);
  ASSERT_TRUE(events.receive_chunk().has_value());
  auto over_grpc = std::async(std::launch::async, [&] {
    GrpcClient client(grpc_port_, true, with_certificate());
    return client.call("/gpu_platform.v1.JobService/WaitJob", wait_message(job), {}).status();
  });
  write_pem_file(folder_.path() + "/ada.crt", http::make_certificate({.common_name = "ada"}).pem());
  kill(daemon_->pid(), SIGHUP);
  EXPECT_TRUE(eventually([&] {
    return ask_as(with_certificate(), request({}, "GET", "/v1/whoami")).status == 401;
  })) << daemon_->log();
  ASSERT_TRUE(kept.send(request({}, "GET", "/v1/whoami")));
  EXPECT_EQ(kept.receive().value_or(TlsClient::Response{}).status, 401);
  EXPECT_EQ(wait.receive().value_or(TlsClient::Response{}).status, 401);
  EXPECT_FALSE(events.receive_chunk().has_value());
  EXPECT_EQ(over_grpc.get(), 16);
}

// Who: a page elsewhere, in the browser of a person with a certificate, which the browser shows by
// itself; and a server that answers for the same host without TLS. Tried: commands in jobs, changes
// and reads. Refused by: the scheme of the connection, and what the browser says of the page.
TEST_F(AttackByCredentials, APageElsewhereDoesNothingWithTheCertificateOfABrowser) {
  const std::string host = "localhost";
  const std::string job = held_job();
  const auto by_browser = [&](const std::string& method, const std::string& target,
                              const std::string& more) {
    return ask_as(with_certificate(),
                  request({}, method, target, method == "POST" ? "{}" : "", more))
        .status;
  };
  const std::string upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string exec = "/v1/jobs/" + job + "/exec?command=id";
  for (const std::string& page :
       {std::string("Origin: http://localhost\r\n"),
        std::string("Origin: https://evil.example\r\n"), std::string("Origin: null\r\n"),
        std::string("Sec-Fetch-Site: cross-site\r\n"), std::string("Sec-Fetch-Site: same-site\r\n"),
        std::string("Origin: https://localhost\r\nSec-Fetch-Site: cross-site\r\n"),
        std::string("Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n")}) {
    EXPECT_EQ(by_browser("GET", exec, page + upgrade), 403) << page;
    EXPECT_EQ(by_browser("POST", "/v1/jobs/" + job + "/cancel", page), 403) << page;
    EXPECT_EQ(by_browser("GET", "/v1/jobs", page), 403) << page;
  }
  EXPECT_EQ(daemon_->job(job)["state"], "HELD");
  // This server's own page, a person who typed the address, and a program may.
  const std::string own = "Origin: https://" + host + "\r\nSec-Fetch-Site: same-origin\r\n";
  EXPECT_EQ(by_browser("GET", "/v1/jobs", own), 200);
  EXPECT_NE(by_browser("GET", exec, own + upgrade), 403);
  EXPECT_EQ(by_browser("GET", "/v1/jobs", "Sec-Fetch-Site: none\r\n"), 200);
  EXPECT_EQ(by_browser("GET", "/v1/jobs", ""), 200);
  const std::string token = local_token("cookie");
  const std::string cookie = "Cookie: __Host-gpu-platform=" + token + "\r\n";
  EXPECT_EQ(
      ask({}, "POST", "/v1/jobs/" + job + "/cancel", "{}", cookie + "Origin: http://localhost\r\n")
          .status,
      403);
  EXPECT_EQ(ask({}, "GET", "/v1/jobs", {}, cookie + own).status, 200);
}

// Who: a bearer of something else that the issuer has signed with the same key for the same
// audience. Tried: to sign in with it. Refused by: its type.
TEST_F(AttackByCredentials, WhatAnIssuerSignedForOtherThingsIsNoCredential) {
  const std::int64_t end = unix_now() + 300;
  const auto whoami = [&](const json& header, const json& changes = json::object()) {
    return ask(signed_token(end, changes, header), "GET", "/v1/whoami").status;
  };
  EXPECT_EQ(whoami(json::object()), 200);
  for (const char* type : {"JWT", "jwt", "application/jwt"}) {
    EXPECT_EQ(whoami({{"typ", type}}), 200) << type;
  }
  for (const char* type : {"logout+jwt", "LOGOUT+JWT", "application/logout+jwt", "at+jwt",
                           "application/at+jwt", "secevent+jwt", "oauth-authz-req+jwt"}) {
    EXPECT_EQ(whoami({{"typ", type}}), 401) << type;
  }
  const json events = {{"http://schemas.openid.net/event/backchannel-logout", json::object()}};
  EXPECT_EQ(whoami(json::object(), {{"events", events}}), 401);
}

// The page of metrics is what its document says: who may read it, and which names it has.
TEST_F(AttackByCredentials, ThePageOfMetricsIsAsItsDocumentSays) {
  EXPECT_EQ(ask({}, "GET", "/metrics").status, 401);
  EXPECT_EQ(ask("gpt_1_forged", "GET", "/metrics").status, 401);
  const std::string viewer = local_token("prometheus", {"--role", "viewer"});
  const auto page = ask(viewer, "GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(local(kAnn, {"api", "/metrics"}).exit_code, 0);
  EXPECT_EQ(local("games", {"api", "/metrics"}).exit_code, 0);
  EXPECT_THAT(page.body, Not(HasSubstr("\"" + std::string(kAnn) + "\"")));

  const std::string text = read_file(std::string(GP_SOURCE_DIRECTORY) + "/docs/metrics.md");
  const std::size_t begin = text.find("| name | labels | what |");
  const std::string table = text.substr(begin, text.find("\n## ", begin) - begin);
  for (const std::string& line : lines_of(page.body)) {
    if (!line.starts_with("# TYPE ")) continue;
    std::string name = line.substr(7, line.find(' ', 7) - 7);
    if (name.starts_with("DCGM_FI_")) continue;  // NVIDIA's
    if (name.starts_with("gpu_platform_host_")) name = "gpu_platform_host_*";
    EXPECT_THAT(table, HasSubstr("`" + name + "`"));
  }
  // Those that are there only if something is read, waits, is limited or is out of service, and the
  // money of all jobs, which this caller does not see.
  const auto may_be_missing = [](const std::string& name) {
    for (const char* const prefix :
         {"gpu_platform_gpu_", "gpu_platform_alert_", "gpu_platform_host_", "gpu_platform_history_",
          "gpu_platform_waiting_jobs", "gpu_platform_team_", "gpu_platform_gpus_kept_from_work",
          "gpu_platform_gpus_held_and_idle", "gpu_platform_cost_total", "gpu_platform_budget_",
          "gpu_platform_ledger_up"}) {
      if (name.starts_with(prefix)) return true;
    }
    return false;
  };
  std::size_t names = 0;
  for (std::size_t at = 0; (at = table.find("`gpu_platform_", at)) != std::string::npos; ++names) {
    const std::size_t end = table.find('`', ++at);
    const std::string name = table.substr(at, end - at);
    if (may_be_missing(name)) continue;
    EXPECT_THAT(page.body, HasSubstr("# TYPE " + name + " "));
  }
  EXPECT_GT(names, 15u);
}

}  // namespace
}  // namespace gpu_platform::e2e
