#include <sys/socket.h>

#include <vector>

#include <gtest/gtest.h>

#include "api/rest/server_fixture_test.h"

// These tests check how much of the server one user may have, and what its refusals say.

namespace gpu_platform::api {
namespace {

class ServerBudgets : public ServerTest {
 protected:
  ServerBudgets() {
    options_.is_privileged = [](std::uint32_t) { return false; };
    options_.budgets.percent_for_root = 10;
  }

  static void expect_refusal(const std::optional<RawResponse>& response, int status,
                             const std::vector<std::string>& words) {
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, status) << response->body;
    const std::string detail = parsed(*response).value("detail", "");
    for (const std::string& word : words) {
      EXPECT_NE(detail.find(word), std::string::npos) << "'" << word << "' in: " << detail;
    }
  }
  std::string user() const { return "user " + user_; }
  // A job whose specification is large.
  void add_large_jobs(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) core_.add_job(user_, uid_, std::string(bytes, 'n'));
  }
};

TEST_F(ServerBudgets, ConnectionsOfOneUserAreRefusedWithTheirReason) {
  options_.budgets.connections_per_user = 3;
  start();
  std::vector<std::unique_ptr<RawClient>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<RawClient>(options_.socket_path));
    ASSERT_TRUE(open.back()->request("GET", "/v1/health").has_value());
  }
  RawClient more(options_.socket_path);
  expect_refusal(more.receive(), 429,
                 {user(), "3 connections open", "api.max_connections_per_user", "close some"});
  open.pop_back();
  EXPECT_TRUE(eventually([&] { return ask("GET", "/v1/health").status == 200; }));
}

TEST_F(ServerBudgets, ConnectionsOfAllLeaveSomeForRoot) {
  options_.budgets.connections = 4;
  start();
  std::vector<std::unique_ptr<RawClient>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<RawClient>(options_.socket_path));
    ASSERT_TRUE(open.back()->request("GET", "/v1/health").has_value());
  }
  RawClient more(options_.socket_path);
  expect_refusal(more.receive(), 503, {"api.max_connections: 4, of which 1 are kept for root"});
}

TEST_F(ServerBudgets, AnswersThatGoOnAreCounted) {
  options_.budgets.streams_per_user = 2;
  start();
  const auto job = core_.add_job(user_, uid_);
  const std::string id = std::to_string(job.value);
  RawClient events(options_.socket_path);
  ASSERT_TRUE(events.send(request_text("GET", "/v1/events")));
  ASSERT_EQ(events.receive_head()->status, 200);
  RawClient wait(options_.socket_path);
  ASSERT_TRUE(wait.send(request_text("GET", "/v1/jobs/" + id + "/wait?timeout_seconds=60")));
  const auto is_refused = [&] { return ask("GET", "/v1/jobs/" + id + "/events").status == 429; };
  ASSERT_TRUE(eventually([&] {
    RawClient probe(options_.socket_path);
    if (!probe.send(request_text("GET", "/v1/jobs/" + id + "/events"))) return false;
    const auto head = probe.receive_head();
    return head.has_value() && head->status == 429;
  }));
  RawClient more(options_.socket_path);
  expect_refusal(more.request("GET", "/v1/jobs/" + id + "/output?follow=true"), 429,
                 {user(), "2 long answers", "api.max_streams_per_user", "end some"});
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(ask("GET", "/v1/jobs/" + id).status, 200) << "one answer is not a stream";
  core_.start_job(job);
  core_.end_job(job, 0);
  ASSERT_TRUE(wait.receive().has_value());
  EXPECT_TRUE(eventually([&] {
    RawClient again(options_.socket_path);
    return again.send(request_text("GET", "/v1/events")) && again.receive_head()->status == 200;
  }));
}

TEST_F(ServerBudgets, BytesOfRequestsUnderWayAreCounted) {
  options_.budgets.body_bytes_per_user = base::Bytes(1'000'000);
  start();
  const std::string body = R"({"command":["true",")" + std::string(700'000, 'x') + R"("]})";
  const std::string whole = request_text("POST", "/v1/jobs", body);
  RawClient slow(options_.socket_path);
  ASSERT_TRUE(slow.send(whole.substr(0, 600'000)));
  RawClient second(options_.socket_path);
  ASSERT_TRUE(eventually([&] {
    RawClient probe(options_.socket_path);
    (void)probe.send(whole);
    const auto answer = probe.receive();
    if (!answer.has_value() || answer->status != 429) return false;
    expect_refusal(answer, 429,
                   {user(), "bytes of unanswered requests", "1000000",
                    "api.max_body_bytes_per_user", "one after the other"});
    return true;
  }));
  EXPECT_EQ(ask("GET", "/v1/health").status, 200) << "a small request is always read";
  ASSERT_TRUE(slow.send(whole.substr(600'000)));
  EXPECT_EQ(slow.receive()->status, 201);
  EXPECT_EQ(ask("POST", "/v1/jobs", body).status, 201) << "what is answered counts no more";
}

TEST_F(ServerBudgets, AClientThatReadsNothingGetsNothingMoreMade) {
  options_.budgets.answer_bytes_per_user = base::Bytes(1'000'000);
  options_.limits.write_time = std::chrono::minutes(10);  // no client is given up, however slow
  start();
  add_large_jobs(40, 100'000);
  std::vector<std::unique_ptr<RawClient>> slow;
  // Each has what the socket takes and one piece that waits.
  std::optional<RawResponse> refused;
  ASSERT_TRUE(eventually([&] {
    if (slow.size() < 20) {
      slow.push_back(std::make_unique<RawClient>(options_.socket_path));
      (void)slow.back()->send(request_text("GET", "/v1/queue"));
    }
    refused = RawClient(options_.socket_path).request("GET", "/v1/health");
    return refused.has_value() && refused->status == 429;
  }));
  expect_refusal(
      refused, 429,
      {user(), "bytes of unread answers", "api.max_answer_bytes_per_user", "read them, or close"});
  // A client that reads gets all of it, one answer after the other.
  for (auto& client : slow) {
    const auto whole = client->receive();
    if (whole.has_value() && whole->status == 429) continue;
    ASSERT_TRUE(whole.has_value() && whole->is_complete);
    // Found and not parsed, which takes a sanitized test a second for each.
    EXPECT_NE(whole->body.find("\"total\":40"), std::string::npos);
  }
  EXPECT_TRUE(eventually([&] { return ask("GET", "/v1/health").status == 200; }));
}

TEST_F(ServerBudgets, APageIsBoundedInBytes) {
  options_.page_bytes = 250'000;
  start();
  add_large_jobs(7, 100'000);
  std::string token;
  std::vector<std::string> seen;
  for (int pages = 0; pages < 7; ++pages) {
    const auto page =
        parsed(ask("GET", "/v1/jobs" + (token.empty() ? token : "?page_token=" + token)));
    EXPECT_LE(page["jobs"].size(), 3U);
    for (const auto& job : page["jobs"]) seen.push_back(job["id"]);
    if (page["next_page"].is_null()) break;
    token = page["next_page"];
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"7", "6", "5", "4", "3", "2", "1"}));
  const auto queue = parsed(ask("GET", "/v1/queue"));
  EXPECT_EQ(queue["jobs"].size(), 3U);
  EXPECT_EQ(queue["total"], 7) << "the total says that there are more";
}

TEST_F(ServerBudgets, HeadersHaveALimitOfFields) {
  start();
  std::string fields;
  for (int i = 0; i < 120; ++i) fields += "a:\r\n";
  expect_refusal(ask("GET", "/v1/health", {}, fields), 431, {"fields; the limit is 100"});
}

// A large list whose reader stops holds no snapshot: what has left meanwhile is left out, and
// what follows is there.
TEST_F(ServerBudgets, ASlowReaderOfAListGetsTheRestOfIt) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.slow_after = std::chrono::milliseconds(1);
  options_.page_bytes = std::size_t{64} << 20;
  start();
  add_large_jobs(30, 100'000);
  std::size_t waiting = 30;
  // The last ones of each list, which no socket has taken when its first piece is read.
  for (const auto& [path, last] : {std::pair("/v1/jobs", 1U), std::pair("/v1/queue", 30U)}) {
    SCOPED_TRACE(path);
    RawClient slow(options_.socket_path);
    ASSERT_TRUE(slow.send(request_text("GET", path)));
    ASSERT_TRUE(slow.receive_head().has_value());
    const std::weak_ptr<const controller::Snapshot> shown = core_.snapshot();
    core_.start_job(model::JobId(last));
    core_.end_job(model::JobId(last), 0);
    // The books that all answers share are those of the latest snapshot that was asked about.
    EXPECT_EQ(ask("GET", "/v1/queue").status, 200);
    EXPECT_TRUE(eventually([&] { return shown.expired(); }));
    std::string body;
    while (auto piece = slow.receive_chunk()) body += *piece;
    ASSERT_TRUE(slow.is_at_end());
    const auto list = nlohmann::json::parse(body, nullptr, false);
    ASSERT_FALSE(list.is_discarded()) << body.size();
    ASSERT_EQ(list["jobs"].size(), --waiting);
  }
}

// The interim answer to "Expect: 100-continue" is written without waiting, and a client that reads
// nothing must not make the thread wait for it.
TEST_F(ServerBudgets, AClientThatReadsNothingDoesNotHoldTheThread) {
  options_.io_threads = 1;
  start();
  const auto job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.print(job, std::string(400'000, 'x'));
  const std::string target = "/v1/jobs/" + std::to_string(job.value) + "/output?limit=";
  std::vector<std::unique_ptr<RawClient>> deaf;
  // One of these fills the socket's buffer to its brim.
  for (std::size_t bytes = 100'000; bytes < 400'000; bytes += 6'000) {
    deaf.push_back(std::make_unique<RawClient>(options_.socket_path));
    ASSERT_TRUE(deaf.back()->send(request_text("GET", target + std::to_string(bytes), {},
                                               "Accept: application/octet-stream\r\n")));
    ASSERT_EQ(ask("GET", "/v1/health").status, 200);
    ASSERT_TRUE(
        deaf.back()->send("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          "Expect: 100-continue\r\nContent-Length: 20\r\n\r\n"));
    ASSERT_EQ(ask("GET", "/v1/health").status, 200) << "after " << bytes << " bytes not read";
  }
}

}  // namespace
}  // namespace gpu_platform::api
