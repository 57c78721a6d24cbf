#include "listener/rest/front.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/fake_core_test.h"
#include "api/rest/server.h"
#include "listener/testing/self_signed.h"
#include "listener/testing/tls_client.h"

// These tests run a front before a real server of the API, with users that a test names.

namespace gpu_platform::listener {
namespace {

using Response = TlsClient::Response;

// The secret is the name of the user.
class NamedUsers final : public api::Authenticator {
 public:
  void authenticate(api::Credential credential, Done done) const override {
    if (credential.secret != "ann" && credential.secret != "bob") {
      return done(base::fail(base::ErrorCode::kUnauthenticated, "the token is not valid"));
    }
    api::Peer peer;
    peer.caller.user = credential.secret;
    peer.caller.uid = credential.secret == "ann" ? 5001 : 5002;
    peer.caller.door = model::Door::kListener;
    done(std::move(peer));
  }
  base::Status check_still_holds(const api::Peer&) const override { return {}; }
};

// Hands connections to the server, as the daemon does.
class ServerUpstream final : public Upstream {
 public:
  base::Result<int> open(const Credential& credential) override {
    ++opened;
    if (server == nullptr) return base::fail(base::ErrorCode::kUnavailable, "the daemon is gone");
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
      return std::unexpected(base::system_error("socketpair", errno));
    }
    server->adopt(pair[1], {api::Credential::Kind::kBearer, credential.secret, credential.address});
    return pair[0];
  }
  api::Server* server = nullptr;
  std::atomic<int> opened = 0;
};

class ListenerFront : public testing::Test {
 protected:
  ListenerFront() {
    std::string pattern = (std::filesystem::temp_directory_path() / "front-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    server_options_.socket_path = directory_ + "/s";
    server_options_.version = "1.2.3";
    server_options_.authenticator = &users_;
    front_options_.settings.threads = 2;
  }
  ~ListenerFront() override {
    front_.reset();
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void start(bool has_tls = true) {
    auto server = api::Server::start(server_options_, core_.access(), core_.hub());
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = *std::move(server);
    upstream_.server = server_.get();
    const SelfSigned made = self_signed("first");
    ASSERT_TRUE(tls_.use(made.certificate, made.key).has_value());
    os::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(socket.get(), name, size), 0);
    ASSERT_EQ(::listen(socket.get(), 1024), 0);
    ASSERT_EQ(::getsockname(socket.get(), name, &size), 0);
    port_ = ntohs(address.sin_port);
    has_tls_ = has_tls;
    front_ = std::make_unique<Front>(front_options_, upstream_, tls_);
    ASSERT_TRUE(front_->listen(std::move(socket), {Door::kRest, has_tls, "127.0.0.1"}).has_value());
    front_->start();
  }

  TlsClient::Options plain_or_tls() const { return {.has_tls = has_tls_}; }
  static std::string get(std::string_view target, std::string_view token = "ann",
                         std::string_view more = {}) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}{}\r\n", target,
                       token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token),
                       more);
  }
  Response ask(std::string_view bytes) {
    TlsClient client(port_, plain_or_tls());
    EXPECT_TRUE(client.send(bytes));
    auto response = client.receive();
    EXPECT_TRUE(response.has_value()) << bytes.substr(0, 200);
    return std::move(response).value_or(Response{});
  }
  static nlohmann::json parsed(const Response& response) {
    auto document = nlohmann::json::parse(response.body, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << response.body;
    return document;
  }
  template <class Condition>
  static bool eventually(Condition&& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::string directory_;
  api::ServerOptions server_options_;
  FrontOptions front_options_;
  api::FakeCore core_;
  NamedUsers users_;
  ServerUpstream upstream_;
  Tls tls_{"http/1.1"};
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<Front> front_;
  std::uint16_t port_ = 0;
  bool has_tls_ = true;
};

TEST_F(ListenerFront, ServesTheUserBehindTheToken) {
  start();
  core_.add_job("ann", 5001);
  core_.add_job("bob", 5002);
  for (const char* user : {"ann", "bob"}) {
    const Response list = ask(get("/v1/jobs", user));
    ASSERT_EQ(list.status, 200) << list.body;
    const auto jobs = parsed(list)["jobs"];
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0]["spec"].value("user", ""), user);
    EXPECT_EQ(list.headers.at("x-content-type-options"), "nosniff");
  }
}

TEST_F(ListenerFront, ServesPlainClientsTheSame) {
  start(false);
  EXPECT_EQ(ask(get("/v1/version")).status, 200);
}

TEST_F(ListenerFront, ABrowsersSessionIsTheUserUntilItEnds) {
  start();
  core_.add_job("ann", 5001);
  const Response wrong =
      ask("POST /v1/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer forged\r\n\r\n");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_FALSE(wrong.headers.contains("set-cookie"));
  const Response begun =
      ask("POST /v1/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n\r\n");
  ASSERT_EQ(begun.status, 200) << begun.body;
  EXPECT_EQ(parsed(begun).value("user", ""), "ann");
  const std::string set = begun.headers.at("set-cookie");
  const std::string cookie = "Cookie: " + set.substr(0, set.find(';')) + "\r\n";
  EXPECT_EQ(parsed(ask(get("/v1/jobs", "", cookie)))["jobs"].size(), 1U);
  EXPECT_EQ(ask(get("/v1/jobs", "", cookie + "Sec-Fetch-Site: cross-site\r\n")).status, 403);
  const auto submit = [&](std::string_view origin) {
    return ask(fmt::format("POST /v1/jobs HTTP/1.1\r\nHost: localhost:8443\r\n{}Origin: {}\r\n"
                           "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n"
                           R"({{"command":["true"]}})",
                           cookie, origin))
        .status;
  };
  EXPECT_EQ(submit("https://localhost:8443"), 201);
  EXPECT_EQ(submit("https://evil.example"), 403);
  EXPECT_EQ(submit("https://localhost"), 403);
  const Response ended =
      ask("DELETE /v1/session HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n" +
          cookie + "\r\n");
  EXPECT_EQ(ended.status, 204);
  EXPECT_NE(ended.headers.at("set-cookie").find("Max-Age=0"), std::string::npos);
}

TEST_F(ListenerFront, AWrongTokenIsAProblemDocument) {
  start();
  const Response refused = ask(get("/v1/jobs", "forged"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  EXPECT_EQ(refused.headers.at("content-type"), "application/problem+json");
  EXPECT_EQ(parsed(refused).value("code", ""), "UNAUTHENTICATED");
}

TEST_F(ListenerFront, RequestsWithoutATokenReachNoDaemon) {
  start();
  EXPECT_EQ(ask(get("/v1/jobs", "")).status, 401);
  EXPECT_EQ(ask(get("/v1/health", "")).status, 200);
  EXPECT_EQ(ask("nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(upstream_.opened, 0);
}

TEST_F(ListenerFront, AConnectionServesManyRequestsInOrder) {
  start();
  TlsClient client(port_);
  std::string all;
  for (int i = 0; i < 20; ++i) all += get(i % 2 == 0 ? "/v1/version" : "/v1/nodes");
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 20; ++i) {
    const auto response = client.receive();
    ASSERT_TRUE(response.has_value()) << i;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(parsed(*response).contains("nodes"), i % 2 == 1) << i;
  }
  EXPECT_EQ(upstream_.opened, 1) << "one user, one connection to the daemon";
}

TEST_F(ListenerFront, AnotherTokenOnTheSameConnectionIsAnotherUser) {
  start();
  core_.add_job("bob", 5002);
  TlsClient client(port_);
  for (const auto& [user, jobs] :
       {std::pair("ann", 0U), std::pair("bob", 1U), std::pair("ann", 0U)}) {
    ASSERT_TRUE(client.send(get("/v1/jobs", user)));
    const auto response = client.receive();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(parsed(*response)["jobs"].size(), jobs) << user;
  }
}

TEST_F(ListenerFront, SubmitsABodyHoweverItIsSent) {
  start();
  const std::string body =
      R"({"command":["true"],"labels":{"a":")" + std::string(200, 'x') + "\"}}";
  const std::string begin =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n"
      "Content-Type: application/json\r\n";
  const Response sized =
      ask(fmt::format("{}Content-Length: {}\r\n\r\n{}", begin, body.size(), body));
  EXPECT_EQ(sized.status / 100, 2) << sized.body;
  const Response chunked = ask(fmt::format(
      "{}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", begin, body.size(), body));
  EXPECT_EQ(chunked.status, sized.status) << chunked.body;
}

TEST_F(ListenerFront, AsksForTheBodyOfAClientThatWaits) {
  start();
  TlsClient client(port_);
  ASSERT_TRUE(client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n"
      "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 20\r\n\r\n"));
  EXPECT_EQ(client.receive_head()->status, 100);
  ASSERT_TRUE(client.send(R"({"command":["true"]})"));
  EXPECT_EQ(client.receive()->status / 100, 2);
}

TEST_F(ListenerFront, DeepJsonIsTheDaemonsToRefuse) {
  start();
  const std::string body(100'000, '[');
  const Response refused =
      ask(fmt::format("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\n"
                      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                      body.size(), body));
  EXPECT_EQ(refused.status, 400);
}

TEST_F(ListenerFront, EventsFlowAtOnceAndAClientThatGoesTakesItsConnectionAlong) {
  start();
  const auto job = core_.add_job("ann", 5001);
  TlsClient client(port_);
  ASSERT_TRUE(client.send(get("/v1/events")));
  const auto head = client.receive_head();
  ASSERT_TRUE(head.has_value());
  ASSERT_EQ(head->status, 200);
  core_.start_job(job);
  const auto chunk = client.receive_chunk();
  ASSERT_TRUE(chunk.has_value());
  EXPECT_NE(chunk->find("event: job"), std::string::npos) << *chunk;
  EXPECT_EQ(server_->figures().connections, 1U);
  client.close();
  EXPECT_TRUE(eventually([&] { return server_->figures().connections == 0; }));
  EXPECT_TRUE(eventually([&] { return front_->connections() == 0; }));
}

TEST_F(ListenerFront, ALargeAnswerComesWholeToASlowReader) {
  start();
  core_.add_jobs(2'000, "ann", 5001);
  TlsClient client(port_, {.receive_buffer = 4096});
  ASSERT_TRUE(client.send(get("/v1/jobs?limit=1000")));
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(parsed(*response)["jobs"].size(), 1'000U);
}

TEST_F(ListenerFront, AClientThatReadsNothingIsCutOff) {
  front_options_.times.write = std::chrono::milliseconds(200);
  start();
  core_.add_jobs(20'000, "ann", 5001);
  TlsClient client(port_, {.receive_buffer = 4096});
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += get("/v1/jobs?limit=1000");
  ASSERT_TRUE(client.send(requests));
  EXPECT_TRUE(eventually([&] { return front_->connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return server_->figures().connections == 0; }));
}

TEST_F(ListenerFront, ASlowRequestIsAnsweredAndEnded) {
  front_options_.times.request = std::chrono::milliseconds(300);
  start();
  TlsClient client(port_);
  std::thread drips([&] {
    for (const char c : get("/v1/version", "ann", "X-Long: " + std::string(1000, 'a') + "\r\n")) {
      if (!client.send({&c, 1}) || upstream_.opened > 0) return;
      if (front_->connections() == 0) return;
    }
  });
  drips.join();
  TlsClient waiting(port_);
  ASSERT_TRUE(waiting.send("GET /v1/version HT"));
  const auto response = waiting.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_TRUE(waiting.is_closed());
}

TEST_F(ListenerFront, ClientsThatSayNothingAreClosed) {
  front_options_.times.handshake = std::chrono::milliseconds(100);
  front_options_.times.first_request = std::chrono::milliseconds(100);
  start();
  TlsClient half_open(port_, {.has_tls = false});
  TlsClient silent(port_);
  EXPECT_TRUE(half_open.is_closed());
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(eventually([&] { return front_->connections() == 0; }));
}

TEST_F(ListenerFront, IdleConnectionsHoldNothingOfTheDaemon) {
  front_options_.times.upstream_idle = std::chrono::milliseconds(50);
  start();
  TlsClient client(port_);
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(client.send(get("/v1/version")));
    EXPECT_EQ(client.receive()->status, 200);
    EXPECT_TRUE(eventually([&] { return server_->figures().connections == 0; }));
    EXPECT_EQ(upstream_.opened, round);
  }
}

TEST_F(ListenerFront, OneAddressHasALimit) {
  front_options_.settings.connections_per_address = 3;
  start(false);
  std::vector<std::unique_ptr<TlsClient>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<TlsClient>(port_, plain_or_tls()));
    ASSERT_TRUE(open.back()->send(get("/v1/health", "")));
    ASSERT_EQ(open.back()->receive()->status, 200);
  }
  EXPECT_TRUE(TlsClient(port_, plain_or_tls()).is_closed());
  open.clear();
  EXPECT_TRUE(eventually([&] { return front_->connections() == 0; }));
  EXPECT_EQ(ask(get("/v1/health", "")).status, 200);
}

TEST_F(ListenerFront, SpeaksTls13Alone) {
  start();
  EXPECT_FALSE(TlsClient(port_, {.min_version = TLS1_VERSION, .max_version = TLS1_2_VERSION})
                   .is_connected());
  EXPECT_FALSE(TlsClient(port_, {.protocols = "\x02h2"}).is_connected());
  EXPECT_TRUE(TlsClient(port_, {.protocols = "\x02h2\x08http/1.1"}).is_connected());
  TlsClient plain(port_, {.has_tls = false});
  ASSERT_TRUE(plain.send(get("/v1/version")));
  const std::string answer = plain.receive_some();
  EXPECT_EQ(answer.find("HTTP"), std::string::npos) << answer;
}

TEST_F(ListenerFront, ANewCertificateIsForNewConnections) {
  start();
  TlsClient before(port_);
  EXPECT_EQ(before.server_name(), "first");
  const SelfSigned second = self_signed("second");
  EXPECT_FALSE(tls_.use(second.certificate, self_signed("other").key).has_value());
  EXPECT_EQ(TlsClient(port_).server_name(), "first") << "a wrong one changes nothing";
  ASSERT_TRUE(tls_.use(second.certificate, second.key).has_value());
  EXPECT_EQ(TlsClient(port_).server_name(), "second");
  ASSERT_TRUE(before.send(get("/v1/version")));
  EXPECT_EQ(before.receive()->status, 200);
}

TEST_F(ListenerFront, WithoutADaemonItSaysSo) {
  start();
  upstream_.server = nullptr;
  const Response answer = ask(get("/v1/jobs"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(parsed(answer).value("code", ""), "UNAVAILABLE");
}

TEST_F(ListenerFront, HeadersOfOtherHopsEndHere) {
  front_options_.settings.web_origins = {"https://console.example"};
  start();
  const Response answer = ask(get("/v1/version", "ann", "Origin: https://console.example\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://console.example");
  EXPECT_EQ(ask(get("/v1/version", "ann", "Origin: https://evil.example\r\n")).status, 403);
}

}  // namespace
}  // namespace gpu_platform::listener
