#include "kubernetes/client.h"

#include <sys/stat.h>
#include <atomic>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kubernetes/folder_fixture.h"
#include "kubernetes/scripted_server_fixture.h"
#include "os/clock.h"
#include "os/testing/eventually.h"

namespace gpu_platform::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ClusterAccess access_to(const ScriptedServer& server) {
  ClusterAccess access;
  access.server = server.address();
  access.origin = "test";
  return access;
}

std::unique_ptr<Client> client_of(ClusterAccess access, ClientOptions options = {}) {
  auto client = Client::make(std::move(access), options);
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return std::move(*client);
}

// Polls until the condition holds. False: it did not in time.
template <class Condition>
bool poll_until(Client& client, Condition&& condition) {
  const std::int64_t until = os::monotonic_ns() + kTimeout.value();
  while (!condition()) {
    if (os::monotonic_ns() >= until) return false;
    client.poll(base::milliseconds(50));
  }
  return true;
}

Answer ask(Client& client, Request request) {
  std::optional<Answer> answer;
  client.send(std::move(request), [&](const Answer& got) { answer = got; });
  EXPECT_TRUE(poll_until(client, [&] { return answer.has_value(); }));
  return answer.value_or(Answer{});
}

Answer ask(Client& client, const std::string& path) {
  return ask(client, Request{.path = path});
}

// What a stream told until it ended.
struct Told {
  int opened = 0;
  std::string bytes;
  std::optional<Answer> end;

  StreamHandlers handlers() {
    return {.on_open = [this] { ++opened; },
            .on_bytes = [this](std::string_view more) { bytes += more; },
            .on_end = [this](const Answer& answer) { end = answer; }};
  }
};

// ---- Requests ----

TEST(Client, SendsTheRequestAsItIsAndGivesTheAnswer) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(201, "{\"a\":1}"); });
  const auto client = client_of(access_to(server));
  const Answer answer = ask(*client, {.method = Method::kPatch,
                                      .path = "/api/v1/pods/a?dryRun=All",
                                      .body = "{}",
                                      .content_type = "application/merge-patch+json"});
  EXPECT_EQ(answer.status, 201);
  EXPECT_TRUE(answer.is_ok());
  EXPECT_EQ(answer.body, "{\"a\":1}");
  const SeenRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.target, "/api/v1/pods/a?dryRun=All");
  EXPECT_EQ(seen.body, "{}");
  EXPECT_EQ(seen.header("content-type"), "application/merge-patch+json");
  EXPECT_EQ(seen.header("user-agent"), "gpu-platform");
  EXPECT_EQ(seen.header("accept"), "application/json, */*");
  EXPECT_EQ(seen.header("authorization"), "");
}

TEST(Client, AsksForMetadataAloneWhereThatIsEnough) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(201, "{}"); });
  const auto client = client_of(access_to(server));
  ask(*client, {.method = Method::kPost, .path = "/pods", .body = "{}", .wants_metadata = true});
  EXPECT_THAT(server.requests().at(0).header("accept"),
              ::testing::StartsWith("application/json;as=PartialObjectMetadata;"));
}

TEST(Client, EveryMethodHasItsNameAndItsBody) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const auto client = client_of(access_to(server));
  const std::vector<std::pair<Method, std::string>> methods = {{Method::kGet, "GET"},
                                                               {Method::kPost, "POST"},
                                                               {Method::kPut, "PUT"},
                                                               {Method::kPatch, "PATCH"},
                                                               {Method::kDelete, "DELETE"}};
  for (const auto& [method, name] : methods) {
    for (const std::string body : {"", "{\"x\":2}"}) {
      if (method == Method::kGet && !body.empty()) continue;
      ASSERT_EQ(ask(*client, {.method = method, .path = "/x", .body = body}).status, 200) << name;
      const SeenRequest seen = server.requests().back();
      EXPECT_EQ(seen.method, name);
      EXPECT_EQ(seen.body, body);
      EXPECT_EQ(seen.header("content-type"), body.empty() ? "" : "application/json");
    }
  }
  EXPECT_EQ(server.connections(), 1) << "a connection is used again";
}

TEST(Client, ALargeBodyIsSentWithoutAsking) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    wire.answer(200, std::to_string(seen.body.size()));
  });
  const auto client = client_of(access_to(server));
  const std::string body(3'000'000, 'x');
  EXPECT_EQ(ask(*client, {.method = Method::kPost, .path = "/", .body = body}).body, "3000000");
  EXPECT_EQ(server.requests().at(0).header("expect"), "");
}

TEST(Client, AServerBelowAPathKeepsIt) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  ClusterAccess access = access_to(server);
  access.server += "/k8s/clusters/c-1/";
  EXPECT_EQ(ask(*client_of(access), "/api").status, 200);
  EXPECT_EQ(server.requests().at(0).target, "/k8s/clusters/c-1/api");
}

TEST(Client, FollowsNoRedirect) {
  ScriptedServer server(
      [](const SeenRequest&, Wire& wire) { wire.answer(302, "", "Location: /elsewhere\r\n"); });
  EXPECT_EQ(ask(*client_of(access_to(server)), "/a").status, 302);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(Client, ADeadServerIsAnAnswerWithoutStatus) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.drop(); });
  const auto client = client_of(access_to(server));
  const Answer dropped = ask(*client, "/");
  EXPECT_EQ(dropped.status, 0);
  EXPECT_THAT(dropped.failure, HasSubstr("Empty reply"));
  server.stop();
  const Answer refused = ask(*client, "/");
  EXPECT_EQ(refused.status, 0);
  EXPECT_THAT(refused.failure, HasSubstr("127.0.0.1"));
  EXPECT_EQ(error_message_of(refused), refused.failure);
}

TEST(Client, ASlowServerIsGivenUpAfterTheTimeoutAndOthersAreAnswered) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    seen.has("slow") ? wire.hold() : wire.answer(200, "");
  });
  const auto client = client_of(access_to(server));
  std::optional<Answer> slow;
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  client->send({.path = "/slow", .timeout = base::milliseconds(300)},
               [&](const Answer& answer) { slow = answer; });
  EXPECT_EQ(ask(*client, "/quick").status, 200);
  ASSERT_TRUE(poll_until(*client, [&] { return slow.has_value(); }));
  EXPECT_EQ(slow->status, 0);
  EXPECT_EQ(slow->failure, "the server did not answer within 0.3 s");
  EXPECT_EQ(client->pending(), 0U);
}

TEST(Client, AServerThatDripsIsGivenUpAfterTheTimeout) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    while (!wire.is_dropped()) wire.piece("x");
  });
  const auto client = client_of(access_to(server), {.max_body = std::size_t{8} << 30});
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  EXPECT_EQ(ask(*client, {.path = "/", .timeout = base::milliseconds(200)}).status, 0);
}

TEST(Client, AnAnswerThatIsTooLargeIsGivenUp) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    wire.answer(200, std::string(seen.has("fits") ? 1000 : 1001, 'x'));
  });
  const auto client = client_of(access_to(server), {.max_body = 1000});
  EXPECT_EQ(ask(*client, "/fits").body.size(), 1000U);
  EXPECT_EQ(ask(*client, "/not").failure, "the answer is larger than 1000 bytes");
}

TEST(Client, APathThatIsNoneIsAFailureAndNotSent) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(200, ""); });
  const auto client = client_of(access_to(server));
  EXPECT_EQ(ask(*client, "/a b\r\nX: y").status, 0);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Client, HasAtMostSoManyRequestsInFlightAndKeepsTheirOrder) {
  std::atomic<int> now = 0;
  std::atomic<int> highest = 0;
  ScriptedServer server([&](const SeenRequest&, Wire& wire) {
    const int count = ++now;
    for (int seen = highest; seen < count && !highest.compare_exchange_weak(seen, count);) {
    }
    --now;  // before the answer: the next request comes after it
    wire.answer(200, "");
  });
  const auto client = client_of(access_to(server), {.max_in_flight = 3});
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) {
    client->send({.path = fmt::format("/{}", i)}, [&, i](const Answer&) { order.push_back(i); });
  }
  EXPECT_EQ(client->pending(), 50U);
  ASSERT_TRUE(poll_until(*client, [&] { return order.size() == 50; }));
  EXPECT_LE(highest, 3);
  EXPECT_LE(server.connections(), 3);
  EXPECT_EQ(client->pending(), 0U);
  const auto requests = server.requests();
  EXPECT_THAT(requests.at(0).target, ::testing::AnyOf("/0", "/1", "/2"));
}

TEST(Client, ACallbackMaySendAndCancel) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    seen.has("never") ? wire.hold() : wire.answer(200, "");
  });
  const auto client = client_of(access_to(server));
  bool has_never = false;
  const RequestId never =
      client->send({.path = "/never"}, [&](const Answer&) { has_never = true; });
  int answered = 0;
  client->send({.path = "/a"}, [&](const Answer&) {
    ++answered;
    client->cancel(never);
    client->cancel(12345);
    client->send({.path = "/b"}, [&](const Answer&) { ++answered; });
  });
  ASSERT_TRUE(poll_until(*client, [&] { return answered == 2; }));
  EXPECT_FALSE(has_never);
  EXPECT_EQ(client->pending(), 0U);
}

TEST(Client, WakeEndsPollFromAnotherThread) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.hold(); });
  const auto client = client_of(access_to(server));
  std::thread other([&] { client->wake(); });
  const std::int64_t begin = os::monotonic_ns();
  client->poll(kTimeout);
  other.join();
  EXPECT_LT(os::monotonic_ns() - begin, kTimeout.value());
}

// ---- 429 ----

TEST(Client, ARefusalForLoadIsTriedAgainAfterItsTime) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    seen.number == 1 ? wire.answer(429, "", "Retry-After: 1\r\n") : wire.answer(200, "later");
  });
  const auto client = client_of(access_to(server));
  const std::int64_t begin = os::monotonic_ns();
  EXPECT_EQ(ask(*client, "/a").body, "later");
  EXPECT_GE(os::monotonic_ns() - begin, base::seconds(1).value());
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST(Client, ARefusalForLoadIsAnsweredWhereItsTimeIsTooLongOrMissing) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    wire.answer(429, "", seen.has("long") ? "Retry-After: 3600\r\n" : "");
  });
  const auto client = client_of(access_to(server));
  EXPECT_EQ(ask(*client, "/long").status, 429);
  EXPECT_EQ(ask(*client, "/eviction").status, 429);
  EXPECT_EQ(ask(*client, {.path = "/long", .timeout = base::seconds(5)}).status, 429);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(Client, ARefusalForLoadIsAnsweredAtTheLatestWithinTheTimeout) {
  ScriptedServer server(
      [](const SeenRequest&, Wire& wire) { wire.answer(429, "busy", "Retry-After: 1\r\n"); });
  const auto client = client_of(access_to(server));
  const Answer answer = ask(*client, {.path = "/", .timeout = base::milliseconds(3500)});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "busy");
  // Four where no time is lost; a slow machine has time for two.
  EXPECT_GE(server.requests().size(), 2U);
  EXPECT_LE(server.requests().size(), 4U);
  EXPECT_EQ(client->pending(), 0U);
}

// ---- Streams ----

TEST(ClientStream, TellsBytesAsTheyComeAndItsEnd) {
  std::atomic<int> may_go_on = 0;
  ScriptedServer server([&](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    EXPECT_TRUE(os::eventually([&] { return may_go_on >= 1; }));
    wire.piece("one\n");
    EXPECT_TRUE(os::eventually([&] { return may_go_on >= 2; }));
    wire.piece("two\n");
    wire.end_stream();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.opened == 1; }));
  EXPECT_EQ(told.bytes, "");
  may_go_on = 1;
  ASSERT_TRUE(poll_until(*client, [&] { return told.bytes == "one\n"; }));
  EXPECT_FALSE(told.end.has_value());
  may_go_on = 2;
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "one\ntwo\n");
  EXPECT_EQ(told.opened, 1);
  EXPECT_EQ(told.end->status, 200);
  EXPECT_EQ(client->pending(), 0U);
}

TEST(ClientStream, ARefusalComesWithItsBodyAndWithoutBytes) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(410, "gone"); });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.end->status, 410);
  EXPECT_EQ(told.end->body, "gone");
  EXPECT_EQ(told.opened, 0);
  EXPECT_EQ(told.bytes, "");
}

TEST(ClientStream, SilenceEndsItButBytesKeepItAlive) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    wire.piece("a");
    wire.hold();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch", .timeout = base::seconds(2)}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "a");
  EXPECT_EQ(told.end->status, 0);
  EXPECT_EQ(told.end->failure, "nothing came for 2 s");
}

TEST(ClientStream, IsGivenUpWithAllConnectionsWhenTheServerHasFallenSilent) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    if (seen.has("watch")) {
      wire.begin_stream();
      wire.piece("a");
    }
    wire.hold();
  });
  for (const bool is_long : {true, false}) {
    const base::Duration dead_after = is_long ? base::milliseconds(200) : base::seconds(5);
    const auto client = client_of(access_to(server), {.dead_after = dead_after});
    Told told;
    client->open_stream({.path = "/watch", .timeout = base::minutes(5)}, told.handlers());
    ASSERT_TRUE(poll_until(*client, [&] { return !told.bytes.empty(); }));
    // layers allow expires: it is to pass; what is to succeed does not wait for it
    EXPECT_EQ(ask(*client, {.path = "/", .timeout = base::milliseconds(200)}).status, 0);
    if (is_long) {
      ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
      EXPECT_EQ(told.end->status, 0);
    }
    client->poll(base::milliseconds(50));
    EXPECT_EQ(told.end.has_value(), is_long);
  }
}

TEST(ClientStream, AConnectionThatBreaksIsAnEndWithoutStatus) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    wire.piece("a");
    wire.drop();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "a");
  EXPECT_EQ(told.end->status, 0);
  EXPECT_NE(told.end->failure, "");
}

TEST(ClientStream, ClosedByItsOwnHandlerItTellsNothingMore) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    while (!wire.is_dropped()) wire.piece(std::string(10'000, 'x'));
  });
  const auto client = client_of(access_to(server));
  int told = 0;
  bool has_ended = false;
  StreamId stream = 0;
  stream =
      client->open_stream({.path = "/watch"}, {.on_bytes =
                                                   [&](std::string_view) {
                                                     ++told;
                                                     client->close_stream(stream);
                                                   },
                                               .on_end = [&](const Answer&) { has_ended = true; }});
  ASSERT_TRUE(poll_until(*client, [&] { return told > 0; }));
  client->poll(base::milliseconds(50));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(has_ended);
}

TEST(ClientStream, StreamsDoNotCountAsRequestsInFlight) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    if (!seen.has("watch")) return wire.answer(200, "");
    wire.begin_stream();
    wire.hold();
  });
  const auto client = client_of(access_to(server), {.max_in_flight = 1});
  Told told;
  for (int i = 0; i < 5; ++i) client->open_stream({.path = "/watch"}, told.handlers());
  EXPECT_EQ(ask(*client, "/a").status, 200);
}

// ---- TLS ----

struct Pki {
  TestCertificate authority = make_authority();
  TestCertificate server =
      make_certificate({.alternative_names = "IP:127.0.0.1", .issuer = &authority});
};

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

// ---- Credentials ----

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

// ---- Error messages ----

TEST(ErrorMessage, IsTheServersMessageOrTheBeginningOfTheBody) {
  EXPECT_EQ(error_message_of({.status = 403, .body = R"({"kind":"Status","message":"no\nway"})"}),
            "no way");
  EXPECT_EQ(error_message_of({.status = 403, .body = R"({"kind":"Status","reason":"Forbidden"})"}),
            "Forbidden");
  EXPECT_EQ(error_message_of({.status = 502, .body = "<html>\x1b[1m"}), "HTTP 502: <html>?[1m");
  EXPECT_EQ(error_message_of({.status = 500}), "HTTP 500");
  EXPECT_EQ(error_message_of({.failure = "gone"}), "gone");
  EXPECT_LT(error_message_of({.status = 500, .body = std::string(10'000, 'x')}).size(), 400U);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
