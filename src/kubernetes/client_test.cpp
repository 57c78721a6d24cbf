#include "kubernetes/client_fixture.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::kubernetes {
namespace {

using ::testing::HasSubstr;

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
