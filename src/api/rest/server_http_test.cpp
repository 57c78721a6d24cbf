#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/rest/server_fixture_test.h"

namespace gpu_platform::api {
namespace {

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  core_.add_job(user_, uid_, "first");
  core_.add_job(user_, uid_, "second");
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs/1") +
              request_text("POST", "/v1/jobs", R"({"command":["third"]})") +
              request_text("GET", "/v1/jobs?limit=1") + request_text("GET", "/v1/jobs/2"));
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "first");
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "third");
  EXPECT_EQ(parsed(client.receive().value())["jobs"].size(), 1U);
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "second");
}

TEST_F(ServerTest, ReadsARequestThatComesByteByByte) {
  start();
  RawClient client(options_.socket_path);
  for (const char c : request_text("POST", "/v1/jobs", R"({"command":["true"]})")) {
    ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  }
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, ReadsAChunkedBody) {
  start();
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"command\r\nb\r\n\":[\"true\"]}\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, TellsAClientThatItHasTheAnswerAlready) {
  start();
  const RawResponse first = ask("GET", "/v1/version");
  const std::string tag = first.headers.at("etag");
  RawClient client(options_.socket_path);
  const auto again = [&](const std::string& tags) {
    return client.request("GET", "/v1/version", {}, "If-None-Match: " + tags + "\r\n");
  };
  for (const std::string& tags : {tag, "W/" + tag, "\"0123\", " + tag, std::string("*")}) {
    const auto same = again(tags);
    ASSERT_TRUE(same.has_value()) << tags;
    EXPECT_EQ(same->status, 304) << tags;
    EXPECT_EQ(same->headers.at("etag"), tag);
    EXPECT_FALSE(same->headers.contains("content-length"));
    EXPECT_EQ(same->body, "");
  }
  const auto other = again("\"0123456789abcdef\"");
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->status, 200);
  EXPECT_EQ(other->body, first.body);
  EXPECT_FALSE(ask("GET", "/v1/nothing").headers.contains("etag"));
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  start();
  RawClient client(options_.socket_path);
  client.send("GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, SpeaksToOldClients) {
  core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send("GET /v1/jobs HTTP/1.0\r\n\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_FALSE(response->headers.contains("transfer-encoding"));
  EXPECT_EQ(parsed(*response)["jobs"].size(), 1U);
}

TEST_F(ServerTest, AnswersAClientThatOnlyStoppedSending) {
  for (int i = 0; i < 300; ++i) core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs"));
  client.finish_sending();
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_TRUE(response->is_complete);
  EXPECT_EQ(parsed(*response)["jobs"].size(), 300U);
}

TEST_F(ServerTest, RefusesABodyThatIsTooLargeSoThatTheClientSeesIt) {
  start();
  const std::string body = "{\"command\":[\"" + std::string((1 << 20) + 1, 'x') + "\"]}";
  const RawResponse refused = ask("POST", "/v1/jobs", body);
  EXPECT_EQ(refused.status, 413);
  // Announced, and not sent at all.
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "2000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 413);
}

TEST_F(ServerTest, TellsAWaitingClientToGoOn) {
  start();
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "20\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive_head()->status, 100);
  client.send(R"({"command":["true"]})");
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, RefusesAHeaderThatIsTooLarge) {
  start();
  const RawResponse refused =
      ask("GET", "/v1/health", {}, "X: " + std::string(20'000, 'x') + "\r\n");
  EXPECT_EQ(refused.status, 431);
}

TEST_F(ServerTest, RefusesWhatIsNoHttp) {
  start();
  for (const std::string& bytes :
       {std::string("hello\r\n\r\n"), std::string("\0\0\0\0\r\n\r\n", 8),
        std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n")}) {
    RawClient client(options_.socket_path);
    client.send(bytes);
    const auto response = client.receive();
    ASSERT_TRUE(response.has_value()) << bytes;
    EXPECT_EQ(response->status, 400) << bytes;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST_F(ServerTest, RefusesOtherContent) {
  start();
  const std::string body = R"({"command":["true"]})";
  for (const char* type :
       {"Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n", ""}) {
    RawClient client(options_.socket_path);
    client.send(fmt::format("POST /v1/jobs HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}",
                            type, body.size(), body));
    EXPECT_EQ(client.receive()->status, 415) << type;
  }
}

TEST_F(ServerTest, NamesTheMethodsOfAPath) {
  start();
  const RawResponse refused = ask("DELETE", "/v1/jobs");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1/jobs/1/cancel").headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1").status, 404);
  EXPECT_EQ(ask("GET", "/").status, 404);
}

TEST_F(ServerTest, GivesUpOnASlowRequest) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.request_time = std::chrono::milliseconds(50);
  start();
  RawClient client(options_.socket_path);
  client.send("POST /v1/jobs HTTP/1.1\r\nHost: x\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, GivesUpOnAnIdleConnection) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.idle_time = std::chrono::milliseconds(50);
  start();
  RawClient client(options_.socket_path);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, GivesUpOnAClientThatReadsNothing) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.write_time = std::chrono::milliseconds(100);
  core_.add_jobs(3'000, user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs?limit=10000"));
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 1; }));
  EXPECT_TRUE(all_connections_gone());
  const auto cut = client.receive();
  ASSERT_TRUE(cut.has_value());
  EXPECT_FALSE(cut->is_complete);
}

TEST_F(ServerTest, HeadHasTheHeadOfGetAndNoBody) {
  core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  for (const char* target : {"/v1/jobs/1", "/v1/version", "/v1/openapi.json", "/metrics",
                             "/v1/jobs/99", "/no/such/path", "/v1/jobs/1/exec?command=true"}) {
    const RawResponse whole = client.request("GET", target).value();
    ASSERT_TRUE(client.send(request_text("HEAD", target)));
    const auto head = client.receive_head();
    ASSERT_TRUE(head.has_value()) << target;
    EXPECT_EQ(head->status, whole.status) << target;
    EXPECT_EQ(head->headers.at("content-type"), whole.headers.at("content-type")) << target;
    // Request ids and times have no fixed length.
    EXPECT_GT(std::stoul(head->headers.at("content-length")), 0U) << target;
    if (whole.headers.contains("etag") && std::string_view(target) == "/v1/version") {
      EXPECT_EQ(head->headers.at("etag"), whole.headers.at("etag"));
    }
  }
  // Lists and streams are begun for no reader.
  for (const char* target : {"/v1/jobs", "/v1/queue", "/v1/events", "/v1/jobs/1/events"}) {
    ASSERT_TRUE(client.send(request_text("HEAD", target)));
    const auto head = client.receive_head();
    ASSERT_TRUE(head.has_value()) << target;
    EXPECT_EQ(head->status, 200) << target;
    EXPECT_FALSE(head->headers.contains("transfer-encoding")) << target;
  }
  EXPECT_EQ(client.request("GET", "/v1/version")->status, 200) << "no body was left behind";
}

TEST_F(ServerTest, OptionsNamesTheMethodsOfAPath) {
  core_.add_job(user_, uid_);
  start();
  const std::pair<const char*, const char*> expected[] = {
      {"/v1/jobs", "GET, HEAD, POST, OPTIONS"},
      {"/v1/jobs/1", "GET, HEAD, OPTIONS"},
      {"/v1/jobs/1/cancel", "POST, OPTIONS"},
      {"/v1/jobs/bulk", "POST, OPTIONS"},
      {"/v1/teams/vision", "GET, HEAD, DELETE, OPTIONS"},
      {"/metrics", "GET, HEAD, OPTIONS"},
      {"/gpu_platform.v1.JobService/GetJob", "POST, OPTIONS"}};
  RawClient client(options_.socket_path);
  for (const auto& [path, methods] : expected) {
    const RawResponse answer = client.request("OPTIONS", path).value();
    EXPECT_EQ(answer.status, 204) << path;
    EXPECT_EQ(answer.headers.at("allow"), methods) << path;
    EXPECT_TRUE(answer.body.empty()) << path;
    EXPECT_FALSE(answer.headers.contains("content-length")) << path;
    const RawResponse refused = client.request("PUT", path).value();
    EXPECT_EQ(refused.status, 405) << path;
    EXPECT_EQ(refused.headers.at("allow"), methods) << path;
  }
  EXPECT_EQ(client.request("OPTIONS", "/no/such/path")->status, 404);
}

// Disconnects at every byte of a conversation, and all that was under way goes with the client.

}  // namespace
}  // namespace gpu_platform::api
