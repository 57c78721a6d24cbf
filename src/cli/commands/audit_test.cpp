#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kCancelled =
    R"({"id":"9","at":"2026-07-01T12:00:00.000Z","user":"root","uid":0,"pid":77,"door":"UNIX_SOCKET","action":"CANCEL","outcome":"OK","code":null,"reason":null,"owner":"ada","owner_uid":1001,"jobs":["40","41","42","43"],"job_count":120,"gpus":[],"gpu_count":0,"target":null,"request_id":null,"calls":1,"since":null})";
constexpr std::string_view kRefusedEntry =
    R"({"id":"7","at":"2026-07-01T11:00:00.000Z","user":"eve\u001b[2J","uid":1002,"pid":null,"door":"UNIX_SOCKET","action":"PORT_FORWARD","outcome":"REFUSED","code":"NOT_FOUND","reason":"there is no job 9","owner":null,"owner_uid":null,"jobs":["9"],"job_count":1,"gpus":[],"gpu_count":0,"target":null,"request_id":null,"calls":812,"since":"2026-07-01T10:59:00.000Z"})";

class AuditList : public Cli {};

TEST_F(AuditList, FiltersAreSentAsTheDaemonKnowsThem) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(R"({"entries":[],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"audit", "list", "--user", "eve", "--for", "ada", "--job", "40_3",
                          "--action", "port-forward", "--outcome", "refused", "--since", "1h",
                          "--until", "2026-07-01T12:03:00Z", "--limit", "5"}),
            0)
      << err();
  EXPECT_EQ(target,
            "/v1/audit?user=eve&owner=ada&job=40_3"
            "&since=2026-07-01T11%3A03%3A12.000Z&until=2026-07-01T12%3A03%3A00.000Z"
            "&action=PORT_FORWARD&outcome=REFUSED&limit=5");
  EXPECT_EQ(call(server, {"audit", "list", "--outcome", "permission-denied"}), 0);
  EXPECT_NE(target.find("code=PERMISSION_DENIED"), std::string::npos) << target;
}

TEST_F(AuditList, OneLineForEachEntryWithNothingThatATerminalWouldObey) {
  FakeServer server([](const Request&) {
    return json_answer(
        fmt::format(R"({{"entries":[{},{}],"next_page":null}})", kCancelled, kRefusedEntry));
  });
  EXPECT_EQ(call(server, {"audit", "list"}), 0) << err();
  EXPECT_NE(out().find("job 40, 41, 42 and 117 more"), std::string::npos) << out();
  EXPECT_NE(out().find("unix socket, pid 77"), std::string::npos) << out();
  EXPECT_NE(out().find("NOT_FOUND (812 calls, the last): there is no job 9"), std::string::npos)
      << out();
  EXPECT_EQ(out().find('\x1b'), std::string::npos);
}

TEST_F(AuditList, JsonJoinsPagesAlsoThoseThatAreEmpty) {
  int page = 0;
  FakeServer server([&](const Request&) {
    ++page;
    if (page == 1) {
      return json_answer(fmt::format(R"({{"entries":[{}],"next_page":"9"}})", kCancelled));
    }
    if (page == 2) return json_answer(R"({"entries":[],"next_page":"8"})");
    return json_answer(fmt::format(R"({{"entries":[{}],"next_page":null}})", kRefusedEntry));
  });
  EXPECT_EQ(call(server, {"audit", "list", "--json"}), 0) << err();
  const Json list = Json::parse(out());
  EXPECT_EQ(list["entries"].size(), 2u);
  EXPECT_TRUE(list["next_page"].is_null());
}

TEST_F(AuditList, JsonLinesAreTheEntriesAloneOfAllPages) {
  int page = 0;
  FakeServer server([&](const Request&) {
    if (++page == 1) {
      return json_answer(fmt::format(R"({{"entries":[{}],"next_page":"9"}})", kCancelled));
    }
    return json_answer(fmt::format(R"({{"entries":[{}],"next_page":null}})", kRefusedEntry));
  });
  EXPECT_EQ(call(server, {"audit", "list", "--json-lines"}), 0) << err();
  const std::size_t end = out().find('\n');
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(Json::parse(out().substr(0, end)), Json::parse(kCancelled));
  EXPECT_EQ(Json::parse(out().substr(end + 1)), Json::parse(kRefusedEntry));
  EXPECT_EQ(out().back(), '\n');
}

TEST_F(AuditList, JsonLinesOfNothingAreNothing) {
  FakeServer server(
      [](const Request&) { return json_answer(R"({"entries":[],"next_page":null})"); });
  EXPECT_EQ(call(server, {"audit", "list", "--json-lines"}), 0);
  EXPECT_EQ(out(), "");
}

TEST_F(AuditList, CallIsAnotherNameOfAction) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(R"({"entries":[],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"audit", "list", "--user", "eve", "--call", "cancel", "--since", "1h"}),
            0);
  EXPECT_NE(target.find("user=eve&since="), std::string::npos) << target;
  EXPECT_NE(target.find("&action=CANCEL"), std::string::npos) << target;
}

TEST_F(AuditList, MembersOfArraysHaveTheirNames) {
  FakeServer server([](const Request&) {
    Json entry = Json::parse(kCancelled);
    entry["names"] = {{"41", "40_1"}, {"42", "40_2"}};
    return json_answer(Json{{"entries", Json::array({entry})}, {"next_page", nullptr}}.dump());
  });
  EXPECT_EQ(call(server, {"audit", "list"}), 0) << err();
  EXPECT_NE(out().find("job 40, 40_1, 40_2 and 117 more"), std::string::npos) << out();
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"audit", "list", "--json"}), 0) << err();
  EXPECT_EQ(Json::parse(out().substr(before))["entries"][0]["names"]["41"], "40_1");
}

TEST_F(AuditList, ARaiseIsCalledAsItsCommand) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    Json entry = Json::parse(kCancelled);
    entry["action"] = "TOP";
    return json_answer(Json{{"entries", Json::array({entry})}, {"next_page", nullptr}}.dump());
  });
  for (const char* word : {"raise", "top"}) {
    EXPECT_EQ(call(server, {"audit", "list", "--action", word}), 0) << err();
    EXPECT_NE(target.find("action=TOP"), std::string::npos) << target;
    EXPECT_NE(out().find(" raise "), std::string::npos) << out();
  }
}

TEST_F(AuditList, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(R"({"entries":[]})"); });
  EXPECT_EQ(call(server, {"audit", "list", "--since", "yesterday-ish"}), 2);
  EXPECT_NE(err().find("--since"), std::string::npos) << err();
  EXPECT_EQ(call(server, {"audit", "list", "--limit", "0"}), 2);
  EXPECT_EQ(call(server, {"audit", "list", "--json-lines", "-o", "yaml"}), 2);
  EXPECT_NE(err().find("--json-lines"), std::string::npos) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
