#include <set>
#include <thread>

#include "listener/front_fixture.h"

namespace gpu_platform::listener {
namespace {

using Response = TlsClient::Response;

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

// A body behind the head of an answer to HEAD would be read as the next answer.
TEST_F(ListenerFront, HeadAndOptionsPassAndHaveNoBody) {
  core_.add_job("ann", 5001);
  start();
  TlsClient client(port_, plain_or_tls());
  const auto head_of = [&](std::string_view method, std::string_view target) {
    std::string request = get(target);
    request.replace(0, 3, method);
    EXPECT_TRUE(client.send(request));
    return client.receive_head().value_or(TlsClient::Response{});
  };
  EXPECT_EQ(head_of("HEAD", "/v1/version").status, 200);
  EXPECT_EQ(head_of("HEAD", "/v1/jobs").status, 200);
  EXPECT_EQ(head_of("HEAD", "/v1/events").status, 200);
  EXPECT_EQ(head_of("HEAD", "/v1/jobs/99").status, 404);
  const auto options = head_of("OPTIONS", "/v1/jobs/1");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(head_of("OPTIONS", "/v1/session").headers.at("allow"), "POST, DELETE, OPTIONS");
  ASSERT_TRUE(client.send(get("/v1/version")));
  EXPECT_EQ(client.receive()->status, 200);
  // Refused at the door, too.
  TlsClient unknown(port_, plain_or_tls());
  ASSERT_TRUE(unknown.send("HEAD /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(unknown.receive_head()->status, 401);
  EXPECT_TRUE(unknown.is_closed()) << "no body came";
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
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  front_options_.times.request = std::chrono::milliseconds(300);
  start();
  // One that sends a byte now and then, and never all of them.
  TlsClient drips(port_);
  ASSERT_TRUE(drips.send("GET /v1/version HTTP/1.1\r\nX-Long: "));
  EXPECT_TRUE(eventually([&] { return !drips.send("a") || front_->connections() == 0; }));
  const auto answer = drips.receive();  // lost where bytes were under way
  EXPECT_TRUE(!answer || answer->status == 408);
  EXPECT_EQ(upstream_.opened, 0);
  TlsClient waiting(port_);
  ASSERT_TRUE(waiting.send("GET /v1/version HT"));
  const auto response = waiting.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_TRUE(waiting.is_closed());
}

TEST_F(ListenerFront, AClientDoesNotTakeSilenceForAClosedConnection) {
  start();
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  EXPECT_FALSE(TlsClient(port_, {.timeout = std::chrono::milliseconds(50)}).is_closed());
}

TEST_F(ListenerFront, ClientsThatSayNothingAreClosed) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  front_options_.times.handshake = std::chrono::milliseconds(100);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  front_options_.times.first_request = std::chrono::milliseconds(100);
  start();
  TlsClient half_open(port_, {.has_tls = false});
  TlsClient silent(port_);
  EXPECT_TRUE(half_open.is_closed());
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(eventually([&] { return front_->connections() == 0; }));
}

TEST_F(ListenerFront, IdleConnectionsHoldNothingOfTheDaemon) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
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
  const auto second = http::make_certificate({.common_name = "second"});
  EXPECT_FALSE(tls_.use(second.pem(), http::make_certificate().key_pem()).has_value());
  EXPECT_EQ(TlsClient(port_).server_name(), "first") << "a wrong one changes nothing";
  ASSERT_TRUE(tls_.use(second.pem(), second.key_pem()).has_value());
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
