#include "client/client.h"

#include <future>

#include <gtest/gtest.h>

#include "base/percent.h"
#include "client/exit_code.h"
#include "client/fake_server_test.h"
#include "client/process_fixture_test.h"
#include "client/profiles.h"

namespace gpu_platform::client {
namespace {

http::Server socket_at(const std::string& path) {
  return {.kind = http::Server::Kind::kSocket, .path = path};
}

TEST(AboutField, SplitsValueAndSentence) {
  const auto with_value = about_field("gpus 9: the largest node has 8 GPUs", "gpus");
  ASSERT_TRUE(with_value);
  EXPECT_EQ(told_of_option("--gpus", *with_value), "--gpus 9: the largest node has 8 GPUs");
  const auto without = about_field("teams[0]: there is no team 'x'", "teams[0]");
  ASSERT_TRUE(without);
  EXPECT_EQ(told_of_option("--team", *without), "--team: there is no team 'x'");
  EXPECT_FALSE(about_field("gpus_per_node: too many", "gpus"));
  EXPECT_FALSE(about_field("the queue is full: 5 jobs wait", "array"));
  EXPECT_FALSE(about_field("user ann has 5 jobs waiting: too many", "user"));
  EXPECT_FALSE(about_field("no field", ""));
}

TEST(ServersToTry, AreTheUsersDaemonBeforeRoots) {
  ProcessEnvironment around;
  const http::Server of_root = socket_at("/run/gpu-platform/gpu-platform.sock");
  EXPECT_EQ(servers_to_try({}, around).value(), std::vector<http::Server>{of_root});
  around.uid = 7;
  const std::vector<http::Server> both = {socket_at("/run/user/7/gpu-platform.sock"), of_root};
  EXPECT_EQ(servers_to_try({}, around).value(), both);
  around.environment = {"XDG_RUNTIME_DIR=/run/user/7"};
  EXPECT_EQ(servers_to_try({}, around).value(), both);
}

TEST(ServersToTry, TakeTheOptionBeforeTheVariable) {
  ProcessEnvironment around;
  around.environment = {"GPU_PLATFORM_SERVER=unix:/a", "XDG_RUNTIME_DIR=/run/user/7"};
  EXPECT_EQ(servers_to_try({}, around).value(), std::vector<http::Server>{socket_at("/a")});
  EXPECT_EQ(servers_to_try({.server = "unix:/b"}, around).value(),
            std::vector<http::Server>{socket_at("/b")});
  EXPECT_FALSE(servers_to_try({.server = "unix:"}, around).has_value());
  EXPECT_FALSE(servers_to_try({.server = "/b"}, around).has_value());
}

TEST(Client, GoesOnToTheNextPlaceOnlyWhereNothingListens) {
  FakeServer good([](const FakeServer::Request&) { return json_answer("{}"); });
  FakeServer silent([](const FakeServer::Request&) { return std::string(); });
  Client first({socket_at("/nonexistent/s"), good.server()});
  EXPECT_EQ(first.get("/v1/status").value(), "{}");
  Client second({silent.server(), good.server()});
  EXPECT_EQ(second.get("/v1/status").error().kind, Failure::Kind::kBroken);
}

struct ProblemCase {
  int status;
  std::string_view code;
  int exit_code;
};

TEST(Client, MakesAnExitCodeOfEveryProblem) {
  const ProblemCase cases[] = {
      {400, "INVALID_ARGUMENT", kUsage},    {404, "NOT_FOUND", kNotFound},
      {403, "PERMISSION_DENIED", kRefused}, {409, "FAILED_PRECONDITION", kRefused},
      {409, "ALREADY_EXISTS", kRefused},    {429, "RESOURCE_EXHAUSTED", kRefused},
      {503, "UNAVAILABLE", kNoDaemon},      {500, "INTERNAL", kFailure},
      {500, "DATA_LOSS", kFailure}};
  for (const auto& [status, code, expected] : cases) {
    FakeServer server([&](const FakeServer::Request&) {
      return json_answer(fmt::format(R"({{"detail":"because","code":"{}","field":"gpus"}})", code),
                         status);
    });
    Client client({server.server()});
    const auto answer = client.get("/v1/x");
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(exit_code_of(answer.error()), expected) << code;
    EXPECT_EQ(answer.error().message, "because");
    EXPECT_EQ(answer.error().field, "gpus");
  }
}

TEST(Client, SurvivesAnswersThatAreNone) {
  const std::string_view answers[] = {
      "SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 500 X\r\nContent-Length: 5\r\n\r\n<htm>", "HTTP/1.1 200"};
  for (const std::string_view text : answers) {
    FakeServer server([&](const FakeServer::Request&) { return std::string(text); });
    Client client({server.server()});
    const auto answer = client.get("/v1/x");
    ASSERT_FALSE(answer.has_value()) << text;
    EXPECT_EQ(exit_code_of(answer.error()), kFailure) << text;
    EXPECT_FALSE(answer.error().message.empty());
  }
}

TEST(Client, ReadsABodyOfAnyFramingHoweverItIsCut) {
  const std::string body = "{\"text\":\"" + std::string(100'000, 'x') + "\"}";
  const std::string answers[] = {
      json_answer(body), "HTTP/1.1 200 OK\r\n\r\n" + body,
      fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                  7, body.substr(0, 7), body.size() - 7, body.substr(7))};
  for (const std::string& answer : answers) {
    FakeServer server([&](const FakeServer::Request& request) {
      for (std::size_t at = 0; at < 200; ++at) send_text(request.fd, answer.substr(at, 1));
      return answer.substr(200);
    });
    Client client({server.server()});
    EXPECT_EQ(client.get("/v1/x").value(), body);
  }
}

TEST(Client, SendsRequestsThatNeedNoGuessing) {
  std::string head;
  FakeServer server([&](const FakeServer::Request& request) {
    head = request.head;
    return json_answer("{}");
  });
  Client client({server.server()});
  EXPECT_TRUE(client.post("/v1/jobs", "{\"a\":1}").has_value());
  EXPECT_TRUE(begins(head, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"));
  EXPECT_TRUE(has(head, "\r\nContent-Type: application/json\r\nContent-Length: 7"));
  EXPECT_TRUE(has(head, "\r\nConnection: close\r\n"));
  EXPECT_TRUE(client.post("/v1/jobs/1/cancel").has_value());
  EXPECT_TRUE(has(head, "\r\nContent-Length: 0"));
}

TEST(EventStream, GivesWhatHasComeWithoutWaiting) {
  std::promise<void> goes_on;
  FakeServer server([&](const FakeServer::Request& request) {
    send_text(request.fd, stream_head());
    goes_on.get_future().wait();
    return stream_event("a") + stream_event("b") + stream_end();
  });
  Client client({server.server()});
  auto stream = client.stream("/v1/readings?follow=true");
  const bool is_empty =
      stream && stream->ready().value_or(std::vector(1, api::ServerEvent())).empty();
  goes_on.set_value();
  EXPECT_TRUE(is_empty);
  ASSERT_TRUE(stream);
  std::vector<std::string> got;
  while (const auto events = stream->ready()) {
    for (const api::ServerEvent& event : *events) got.push_back(event.data);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(stream->ready().error().kind, Failure::Kind::kBroken) << "it has ended";
}

TEST(PercentEncoded, LeavesNothingThatAPathOrQueryWouldRead) {
  EXPECT_EQ(base::percent_encoded("40_3"), "40_3");
  EXPECT_EQ(base::percent_encoded("a/b?c&d=e f%"), "a%2Fb%3Fc%26d%3De%20f%25");
  EXPECT_EQ(base::percent_encoded("\xc3\xbc\r\n"), "%C3%BC%0D%0A");
}

}  // namespace
}  // namespace gpu_platform::client
