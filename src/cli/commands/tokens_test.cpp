#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kNewToken =
    R"({"id":"7","name":"laptop","user":"ann","uid":1001,"role":"USER","created_at":"2026-07-01T12:00:00.000Z","created_by":"ann","expires_at":"2026-07-31T12:00:00.000Z","last_used_at":null,"made_with":null})";
constexpr std::string_view kSecret = "gpt_7_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

class Tokens : public Cli {
 protected:
  Tokens() {
    char folder[] = "/tmp/tokens_test.XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~Tokens() override { std::filesystem::remove_all(folder_); }

  std::string folder_;

  static std::string created() {
    return fmt::format(R"({{"token":{},"secret":"{}"}})", kNewToken, kSecret);
  }
  static std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }
};

TEST_F(Tokens, CreateSendsWhatWasAskedForAndPrintsTheSecretOnceToStdout) {
  Json body;
  FakeServer server([&](const Request& request) {
    EXPECT_EQ(request.method + " " + request.target, "POST /v1/tokens");
    body = Json::parse(request.body);
    return json_answer(created());
  });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "--expires", "30d", "--role",
                          "viewer", "--user", "ann", "--request-id", "k"}),
            0)
      << err();
  EXPECT_EQ(body["name"], "laptop");
  EXPECT_EQ(body["expires_at"], "2026-07-31T12:03:12.000Z");
  EXPECT_EQ(body["role"], "VIEWER");
  EXPECT_EQ(body["user"], "ann");
  EXPECT_EQ(body["request_id"], "k");
  EXPECT_EQ(count(out(), kSecret), 1u) << out();
  EXPECT_EQ(count(err(), kSecret), 0u) << err();
  EXPECT_TRUE(has(err(), "shown only once")) << err();
}

TEST_F(Tokens, QuietPrintsTheSecretAndNothingElse) {
  FakeServer server([&](const Request&) { return json_answer(created()); });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "-q"}), 0) << err();
  EXPECT_EQ(out(), std::string(kSecret) + "\n");
  EXPECT_EQ(err(), "");
}

TEST_F(Tokens, TheSecretGoesIntoANewFileThatOnlyItsOwnerReads) {
  const std::string path = folder_ + "/token";
  int asked = 0;
  FakeServer server([&](const Request&) {
    ++asked;
    return json_answer(created());
  });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "--output-file", path}), 0)
      << err();
  EXPECT_EQ(count(out() + err(), kSecret), 0u) << out() << err();
  EXPECT_TRUE(has(out(), "Secret        in " + path)) << out();
  struct stat about{};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, kSecret);
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "--output-file", path}), 2);
  EXPECT_TRUE(has(err(), "it exists already")) << err();
  EXPECT_EQ(asked, 1) << "no token is made for which there is no file";
}

TEST_F(Tokens, ASecretThatIsInAFileIsInNoDocument) {
  FakeServer server([&](const Request&) { return json_answer(created()); });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "-o", "json", "--output-file",
                          folder_ + "/token"}),
            0)
      << err();
  EXPECT_EQ(count(out() + err(), kSecret), 0u) << out();
  EXPECT_EQ(Json::parse(out())["token"]["name"], "laptop");
}

TEST_F(Tokens, NoFileIsLeftWithoutAToken) {
  const std::string path = folder_ + "/refused";
  FakeServer server([&](const Request&) {
    return json_answer(R"({"detail":"no","status":403,"code":"PERMISSION_DENIED"})", 403);
  });
  EXPECT_NE(call(server, {"token", "create", "--name", "x", "--output-file", path}), 0);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Tokens, CreateSendsNoEndNoRoleAndNoUserUnlessTold) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(created());
  });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop"}), 0) << err();
  EXPECT_EQ(body, Json({{"name", "laptop"}}));
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "--expires", "never"}), 0);
  EXPECT_EQ(body, Json({{"name", "laptop"}, {"never_expires", true}}));
  EXPECT_EQ(call(server, {"token", "create", "--name", "l", "--expires", "2026-12-31T00:00:00Z"}),
            0);
  EXPECT_EQ(body["expires_at"], "2026-12-31T00:00:00.000Z");
}

TEST_F(Tokens, ARepetitionWhoseSecretIsGoneIsAnErrorThatSaysWhatToDo) {
  FakeServer server([&](const Request&) {
    return json_answer(fmt::format(R"({{"token":{},"secret":null}})", kNewToken));
  });
  EXPECT_EQ(call(server, {"token", "create", "--name", "laptop", "--request-id", "k", "-q"}), 4);
  EXPECT_EQ(out(), "");
  EXPECT_TRUE(has(err(), "token revoke 7")) << err();
}

TEST_F(Tokens, AMistakeNamesTheOption) {
  FakeServer server([](const Request&) { return json_answer(created()); });
  EXPECT_EQ(call(server, {"token", "create"}), 2);
  EXPECT_TRUE(has(err(), "--name")) << err();
  EXPECT_EQ(call(server, {"token", "create", "--name", "x", "--role", "operatr"}), 2);
  EXPECT_TRUE(has(err(), "--role") && has(err(), "operator")) << err();
  EXPECT_EQ(call(server, {"token", "create", "--name", "x", "--expires", "soon"}), 2);
  EXPECT_TRUE(has(err(), "--expires")) << err();
  EXPECT_EQ(call(server, {"token", "revoke"}), 2);
}

TEST_F(Tokens, AListShowsEndsAndLastUses) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(fmt::format(R"({{"tokens":[{}],"next_page":null}})", kNewToken));
  });
  EXPECT_EQ(call(server, {"token", "list", "--all-users"}), 0) << err();
  EXPECT_TRUE(has(target, "all_users=true")) << target;
  EXPECT_TRUE(has(out(), "LAST USED")) << out();
  EXPECT_TRUE(has(out(), "laptop")) << out();
  EXPECT_TRUE(has(out(), "never")) << out();
  const std::size_t before = out().size();
  EXPECT_EQ(call(server, {"token", "list", "-o", "name", "--user", "ann"}), 0) << err();
  EXPECT_TRUE(has(target, "user=ann")) << target;
  EXPECT_EQ(out().substr(before), "laptop\n");
}

TEST_F(Tokens, AListShowsWhatTheyWereMadeWith) {
  constexpr std::string_view kList =
      R"({"tokens":[{"id":"9","name":"a","made_with":"7","identities":[]},{"id":"8","name":"b","made_with":"7","identities":["cn:ada"]}],"next_page":null})";
  FakeServer server([&](const Request&) { return json_answer(std::string(kList)); });
  EXPECT_EQ(call(server, {"token", "list"}), 0) << err();
  for (const char* text : {"MADE WITH", "token 7", "cn:ada"})
    EXPECT_TRUE(has(out(), text)) << out();
}

TEST_F(Tokens, RevokeNamesTheTokenAndItsUser) {
  std::string asked;
  FakeServer server([&](const Request& request) {
    asked = request.method + " " + request.target;
    return json_answer(std::string(kNewToken));
  });
  EXPECT_EQ(call(server, {"token", "revoke", "laptop"}), 0) << err();
  EXPECT_EQ(asked, "DELETE /v1/tokens/laptop");
  EXPECT_EQ(out(), "token laptop of ann is revoked\n");
  EXPECT_EQ(call(server, {"token", "revoke", "laptop", "--user", "ann"}), 0) << err();
  EXPECT_EQ(asked, "DELETE /v1/tokens/laptop?user=ann");
}

}  // namespace
}  // namespace gpu_platform::cli
