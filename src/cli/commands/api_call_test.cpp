#include <fstream>

#include "cli/cli_fixture_test.h"

namespace gpu_platform::cli {
namespace {

TEST_F(Cli, ApiPrintsTheAnswerOfAnyCall) {
  std::string body;
  FakeServer server([&](const FakeServer::Request& request) {
    body = request.body;
    return json_answer(R"({"id":"42"})");
  });
  EXPECT_EQ(call(server, {"api", "/v1/jobs/42?fields=id"}), 0);
  EXPECT_EQ(server.requests().back(), "GET /v1/jobs/42?fields=id");
  EXPECT_EQ(out(), "{\"id\":\"42\"}\n");
  EXPECT_EQ(call(server, {"api", "delete", "/v1/jobs/42"}), 0);
  EXPECT_EQ(server.requests().back(), "DELETE /v1/jobs/42");
  EXPECT_EQ(call(server, {"api", "/v1/jobs", "--data", R"({"gpus":1})"}), 0);
  EXPECT_EQ(server.requests().back(), "POST /v1/jobs");
  EXPECT_EQ(body, R"({"gpus":1})");
}

TEST_F(Cli, ApiPrintsAStreamAsItComes) {
  FakeServer server([&](const FakeServer::Request& request) {
    send_text(request.fd, stream_head() + stream_event("one") + stream_event("two") + stream_end());
    return std::string();
  });
  EXPECT_EQ(call(server, {"api", "/v1/jobs/42?watch=true"}), 0);
  EXPECT_TRUE(has(out(), "data: one\n")) << out();
  EXPECT_TRUE(has(out(), "data: two\n")) << out();
}

TEST_F(Cli, ApiPassesARefusalOn) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(
        R"({"type":"about:blank","title":"Not found","status":404,"detail":"there is no job 9","code":"NOT_FOUND"})",
        404);
  });
  EXPECT_EQ(call(server, {"api", "/v1/jobs/9"}), 3);
  EXPECT_TRUE(has(err(), "there is no job 9")) << err();
  EXPECT_EQ(out(), "");
}

TEST_F(Cli, ApiSendsNoSecondRequestInAPath) {
  FakeServer server([](const FakeServer::Request&) { return json_answer("{}"); });
  for (const char* path :
       {"v1/jobs", "/v1/jobs HTTP/1.1\r\nX: y", "/v1/j obs", "/v1/jobs#a", "/v1/\xc3\xa4"}) {
    EXPECT_EQ(call(server, {"api", path}), 2) << path;
  }
  EXPECT_EQ(call(server, {"api", "BREW", "/v1/jobs"}), 2);
  EXPECT_EQ(call(server, {"api", "/v1/jobs", "--data", "@/nonexistent"}), 2);
  EXPECT_TRUE(has(err(), "--data: /nonexistent: it cannot be read")) << err();
  EXPECT_EQ(call(server, {"api", "/v1/jobs", "--data", "@/"}), 2) << "a folder is no text";
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace gpu_platform::cli
