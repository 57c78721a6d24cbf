#include "http/tls.h"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include "client/client.h"
#include "client/exit_code.h"
#include "client/fake_server_test.h"
#include "client/fake_tls_server_test.h"
#include "client/process_fixture_test.h"
#include "client/profiles.h"

namespace gpu_platform::client {
namespace {

const http::CertificateOptions kOfThisMachine{.alternative_names = http::kThisMachine};

// An authority and a server that shows a certificate of it, and a folder for files.
class Tls : public Process {
 protected:
  Tls() : authority_(make_authority()) {
    std::string name = (std::filesystem::temp_directory_path() / "gp-tls-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    around_.uid = ::getuid();
    around_.environment.push_back("XDG_CONFIG_HOME=" + folder_);
  }
  ~Tls() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name) << content;
    return folder_ + "/" + name;
  }
  std::string authority_file() const { return file("ca.pem", authority_.pem()); }
  TestCertificate certificate(http::CertificateOptions options = kOfThisMachine) const {
    options.issuer = &authority_;
    return make_certificate(options);
  }
  // What GET /v1/x comes to at the address.
  Called<std::string> get(const std::string& address, const ServerChoice& more = {}) {
    ServerChoice choice = more;
    choice.server = address;
    if (!choice.authorities) choice.authorities = authority_file();
    auto servers = servers_to_try(choice, around_);
    if (!servers) {
      return std::unexpected(
          Failure{Failure::Kind::kProblem, servers.error().message, {}, {}, servers.error().code});
    }
    return Client(*servers).get("/v1/x");
  }
  static std::string ok(const std::string&) { return json_answer("{\"a\":1}"); }

  TestCertificate authority_;
  std::string folder_;
};

TEST_F(Tls, ReadsAnAnswerFromAServerWhoseCertificateItTrusts) {
  FakeTlsServer server({.shown = certificate()}, ok);
  const auto answer = get(server.address());
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(*answer, "{\"a\":1}");
  EXPECT_TRUE(
      has(server.requests().front(), fmt::format("\r\nHost: 127.0.0.1:{}\r\n", server.port())));
  // By name, too.
  EXPECT_TRUE(get(server.address("localhost")).has_value());
}

TEST_F(Tls, SaysThatAPortMaySpeakTlsWhenPlainHttpFails) {
  FakeTlsServer server({.shown = certificate()}, ok);
  const auto answer = get(fmt::format("http://127.0.0.1:{}", server.port()));
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(has(answer.error().message, "write https://")) << answer.error().message;
}

TEST_F(Tls, SendsTheTokenInAHeaderAndNowhereElse) {
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_s3cret");
  FakeTlsServer server({.shown = certificate()},
                       [](const std::string&) { return json_answer("{\"detail\":\"no\"}", 500); });
  const auto answer = get(server.address());
  ASSERT_FALSE(answer.has_value());
  const std::string request = server.requests().front();
  EXPECT_TRUE(has(request, "\r\nAuthorization: Bearer gpt_s3cret\r\n"));
  EXPECT_FALSE(has(request.substr(0, request.find('\r')), "s3cret"));
  EXPECT_FALSE(has(answer.error().message + answer.error().document, "s3cret"));
}

TEST_F(Tls, SendsNoTokenToASocket) {
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_s3cret");
  std::string head;
  FakeServer server([&](const FakeServer::Request& request) {
    head = request.head;
    return json_answer("{}");
  });
  EXPECT_TRUE(get("unix:" + server.path()).has_value());
  EXPECT_FALSE(has(head, "Authorization"));
}

TEST_F(Tls, RefusesAnUnknownAuthorityAndSaysWhatToDo) {
  FakeTlsServer server({.shown = certificate()}, ok);
  const TestCertificate other = make_authority();
  const auto foreign = get(server.address(), {.authorities = file("other.pem", other.pem())});
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(exit_code_of(foreign.error()), kFailure);
  EXPECT_TRUE(has(foreign.error().message, "other.pem")) << foreign.error().message;
  EXPECT_FALSE(foreign.error().is_passing());
  // With the system's authorities.
  const auto unknown = Client({*http::parse_server(server.address())}).get("/v1/x");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_TRUE(has(unknown.error().message, "--ca-file FILE")) << unknown.error().message;
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Tls, RefusesACertificateThatSignedItself) {
  FakeTlsServer server({.shown = make_certificate(kOfThisMachine)}, ok);
  const auto answer = get(server.address());
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(has(answer.error().message, "authority")) << answer.error().message;
}

TEST_F(Tls, RefusesACertificateForAnotherNameAndNamesBoth) {
  FakeTlsServer server(
      {.shown = certificate({.alternative_names = "DNS:gpus.example.org,IP:192.0.2.7"})}, ok);
  const auto answer = get(server.address());
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(exit_code_of(answer.error()), kFailure);
  EXPECT_TRUE(has(answer.error().message, "not for '127.0.0.1'")) << answer.error().message;
  EXPECT_TRUE(has(get(server.address("localhost")).error().message, "not for 'localhost'"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Tls, RefusesACertificateOutsideItsTime) {
  FakeTlsServer expired(
      {.shown = certificate(
           {.alternative_names = http::kThisMachine, .begins_in_s = -7200, .ends_in_s = -3600})},
      ok);
  const auto past = get(expired.address());
  ASSERT_FALSE(past.has_value());
  EXPECT_TRUE(has(past.error().message, "expired")) << past.error().message;
  FakeTlsServer early(
      {.shown = certificate(
           {.alternative_names = http::kThisMachine, .begins_in_s = 3600, .ends_in_s = 7200})},
      ok);
  EXPECT_TRUE(has(get(early.address()).error().message, "not valid yet"));
}

TEST_F(Tls, SpeaksNothingOlderThanTls13) {
  FakeTlsServer server({.shown = certificate(), .highest_version = TLS1_2_VERSION}, ok);
  const auto answer = get(server.address());
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(has(answer.error().message, "TLS 1.3")) << answer.error().message;
  EXPECT_EQ(exit_code_of(answer.error()), kFailure);
}

TEST_F(Tls, SaysWhatIsWrongWhereNothingSpeaksTls) {
  FakeTlsServer plain({}, ok);
  const auto answer = get(fmt::format("https://127.0.0.1:{}", plain.port()));
  ASSERT_FALSE(answer.has_value());
  EXPECT_FALSE(answer.error().message.empty());
}

TEST_F(Tls, ShowsACertificateOfItsOwnWhereOneIsGiven) {
  FakeTlsServer server({.shown = certificate(), .clients_from = authority_.pem()}, ok);
  const auto without = get(server.address());
  ASSERT_FALSE(without.has_value());
  EXPECT_TRUE(has(without.error().message, "--cert FILE")) << without.error().message;
  const TestCertificate mine = certificate({.alternative_names = "DNS:ada"});
  const std::string pem = file("cert.pem", mine.pem());
  const std::string key = file("key.pem", mine.key_pem());
  const auto with = get(server.address(), {.certificate = pem, .key = key});
  EXPECT_TRUE(with.has_value()) << with.error().message;
  // The wrong key, no key, no file.
  const std::string other = file("other.pem", certificate().key_pem());
  EXPECT_TRUE(has(get(server.address(), {.certificate = pem, .key = other}).error().message,
                  "other.pem cannot be used"));
  EXPECT_TRUE(has(get(server.address(), {.certificate = pem}).error().message, "go together"));
  EXPECT_TRUE(has(get(server.address(), {.certificate = "/nowhere", .key = key}).error().message,
                  "/nowhere cannot be used"));
}

TEST_F(Tls, TakesATruncatedAnswerForNone) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\""),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\""),
        std::string("HTTP/1.1 200"), std::string()}) {
    FakeTlsServer server({.shown = certificate()}, [&](const std::string&) { return answer; });
    const auto called = get(server.address());
    ASSERT_FALSE(called.has_value()) << answer;
    EXPECT_EQ(called.error().kind, Failure::Kind::kBroken) << answer;
    EXPECT_EQ(exit_code_of(called.error()), kFailure);
  }
}

TEST_F(Tls, RefusesHeadersWithoutEnd) {
  FakeTlsServer server({.shown = certificate()}, [](const std::string&) {
    return "HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\n\r\n";
  });
  const auto answer = get(server.address());
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind, Failure::Kind::kBadAnswer);
}

TEST_F(Tls, FollowsNoRedirect) {
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_s3cret");
  for (const int status : {301, 302, 307, 308}) {
    FakeTlsServer server({.shown = certificate()}, [&](const std::string&) {
      return fmt::format(
          "HTTP/1.1 {} X\r\nLocation: https://evil.example\r\nContent-Length: 0\r\n\r\n", status);
    });
    const auto answer = get(server.address());
    ASSERT_FALSE(answer.has_value());
    EXPECT_TRUE(has(answer.error().message, "evil.example")) << answer.error().message;
    EXPECT_TRUE(has(answer.error().message, "not followed"));
    EXPECT_EQ(server.requests().size(), 1U);
    EXPECT_EQ(exit_code_of(answer.error()), kFailure);
  }
}

TEST_F(Tls, MakesASentenceOfEachRefusalAlsoOfProxies) {
  struct Case {
    int status;
    std::string body;
    int exit_code;
    std::string said;
  };
  const Case cases[] = {
      {401, R"({"code":"UNAUTHENTICATED","detail":"the token has expired"})", kRefused,
       "the token has expired; log in with 'gpu-platform login https://127.0.0.1:"},
      {401, "<html>", kRefused, "log in with"},
      {403, R"({"code":"PERMISSION_DENIED","detail":"your role is VIEWER"})", kRefused,
       "your role is VIEWER"},
      {403, "<html>", kRefused, "403 Forbidden"},
      {429, "<html>", kRefused, "429 Too Many Requests"},
      {503, "<html>", kNoDaemon, "503 Service Unavailable"},
      {502, "<html>", kFailure, "502"}};
  for (const Case& c : cases) {
    FakeTlsServer server({.shown = certificate()},
                         [&](const std::string&) { return json_answer(c.body, c.status); });
    const auto answer = get(server.address());
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(exit_code_of(answer.error()), c.exit_code) << c.status << c.body;
    EXPECT_TRUE(has(answer.error().message, c.said)) << answer.error().message;
  }
}

TEST_F(Tls, ExitsWith5WhereNothingListens) {
  std::string address;
  {
    FakeTlsServer server({.shown = certificate()}, ok);
    address = server.address();
  }
  const auto answer = get(address);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(exit_code_of(answer.error()), kNoDaemon);
  EXPECT_TRUE(answer.error().is_refused);
  EXPECT_TRUE(has(answer.error().message, address)) << answer.error().message;
  EXPECT_FALSE(has(answer.error().message, "gpu-platform serve"));
  const auto nowhere = get("https://host.invalid:8443");
  EXPECT_EQ(exit_code_of(nowhere.error()), kNoDaemon);
  EXPECT_TRUE(has(nowhere.error().message, "host.invalid")) << nowhere.error().message;
}

TEST_F(Tls, AnInterruptEndsAWaitForASlowServer) {
  std::mutex gate;
  std::unique_lock closed(gate);
  FakeTlsServer server(
      {.shown = certificate(), .before_answer = [&] { std::scoped_lock wait(gate); }}, ok);
  auto servers =
      servers_to_try({.server = server.address(), .authorities = authority_file()}, around_);
  ASSERT_TRUE(servers.has_value());
  interrupt();
  const auto answer = Client(*servers).get_slow("/v1/x", base::minutes(5), interrupts_[0]);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind, Failure::Kind::kInterrupted);
  closed.unlock();
}

TEST_F(Tls, ReadsAStreamOfEventsAsItComes) {
  FakeTlsServer server({.shown = certificate()}, [](const std::string&) {
    return stream_head() + stream_event("one") + stream_event("two") + stream_end();
  });
  auto servers =
      servers_to_try({.server = server.address(), .authorities = authority_file()}, around_);
  auto stream = Client(*servers).stream("/v1/events");
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ((*stream->next(-1))->data, "one");
  EXPECT_EQ((*stream->next(-1))->data, "two");
  EXPECT_FALSE((*stream->next(-1)).has_value());
}

TEST_F(Tls, MovesALargeBodyBothWays) {
  const std::string large(3'000'000, 'x');
  FakeTlsServer server({.shown = certificate()}, [&](const std::string& request) {
    return json_answer(request.substr(request.find("\r\n\r\n") + 4));
  });
  auto servers =
      servers_to_try({.server = server.address(), .authorities = authority_file()}, around_);
  EXPECT_EQ(Client(*servers).post("/v1/x", large).value(), large);
}

TEST_F(Tls, PlainHttpGoesToThisMachineAlone) {
  FakeTlsServer plain({}, ok);
  EXPECT_TRUE(get(plain.address()).has_value());
  EXPECT_TRUE(get(plain.address("localhost")).has_value());
  const auto elsewhere = get("http://192.0.2.1:8080");
  ASSERT_FALSE(elsewhere.has_value());
  EXPECT_TRUE(has(elsewhere.error().message, "write https://192.0.2.1"))
      << elsewhere.error().message;
}

}  // namespace
}  // namespace gpu_platform::client
