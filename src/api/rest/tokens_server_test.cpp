#include <sys/socket.h>

#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/identity/token_authenticator.h"
#include "api/identity/token_text.h"
#include "api/rest/server_fixture_test.h"

// These tests check the calls about tokens over HTTP, from this machine and by bearers of tokens.

namespace gpu_platform::api {
namespace {

// Of an account of every Debian. It may have tokens where the site lets accounts of the system.
constexpr std::uint32_t kBearerUid = 34;

class TokensOverHttp : public ServerTest {
 protected:
  TokensOverHttp() {
    options_.authenticator = &authenticator_;
    options_.users.min_uid = 1;
    has_account_ = host::system_users()->find(kBearerUid).has_value();
  }

  // Puts a token of the bearer there, and returns its text.
  std::string put_token() {
    model::Token token;
    token.id = model::TokenId(7);
    token.name = "laptop";
    token.user = bearer_;
    token.uid = kBearerUid;
    const std::string secret(model::kTokenSecretBytes, 's');
    token.hash = hash_of(secret);
    core_.put_token(token);
    return to_text({token.id, secret});
  }
  std::unique_ptr<RawClient> bearer(const std::string& text) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    server_->adopt(pair[1], {Credential::Kind::kBearer, text, "192.0.2.7"});
    return std::make_unique<RawClient>(pair[0]);
  }

  TokenUses uses_;
  TokenAuthenticator authenticator_{core_, core_.users, core_, uses_, {.users = {.min_uid = 1}}};
  std::string bearer_ = name_of(kBearerUid);
  bool has_account_ = false;
};

TEST_F(TokensOverHttp, ABearerIsItsUserAndMakesAndRevokesTokensOfItsOwn) {
  ASSERT_TRUE(has_account_);
  const std::string text = put_token();
  start();
  const auto client = bearer(text);
  const auto made = client->request("POST", "/v1/tokens", R"({"name":"child"})");
  ASSERT_TRUE(made.has_value());
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(made->headers.at("cache-control"), "no-store");
  const auto document = parsed(*made);
  EXPECT_EQ(document["token"].value("user", ""), bearer_);
  EXPECT_TRUE(parse_token_text(document.value("secret", "")).has_value()) << made->body;
  const model::Command command = core_.commands().back();
  EXPECT_EQ(command.caller.credential, 7u);
  EXPECT_EQ(command.caller.door, model::Door::kListener);

  const auto list = client->request("GET", "/v1/tokens");
  ASSERT_EQ(list->status, 200) << list->body;
  EXPECT_EQ(parsed(*list)["tokens"].size(), 2u);
  EXPECT_EQ(list->body.find(document.value("secret", "-")), std::string::npos);
  EXPECT_EQ(client->request("DELETE", "/v1/tokens/child")->status, 200);
  EXPECT_EQ(client->request("DELETE", "/v1/tokens/child")->status, 404);
}

TEST_F(TokensOverHttp, ARevokedTokenIsRefusedOnTheConnectionThatIsOpen) {
  ASSERT_TRUE(has_account_);
  const std::string text = put_token();
  start();
  const auto client = bearer(text);
  EXPECT_EQ(client->request("GET", "/v1/tokens")->status, 200);
  core_.remove_token(model::TokenId(7));
  EXPECT_EQ(client->request("GET", "/v1/tokens")->status, 401);
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(bearer(text)->request("GET", "/v1/tokens")->status, 401);
}

TEST_F(TokensOverHttp, ARepeatedRequestIsAnsweredWithoutASecret) {
  start();
  const std::string body =
      fmt::format(R"({{"name":"ci","user":"{}","request_id":"k"}})", uid_ == 0 ? bearer_ : user_);
  const auto first = ask("POST", "/v1/tokens", body);
  const auto again = ask("POST", "/v1/tokens", body);
  ASSERT_EQ(first.status, 201) << first.body;
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(parsed(again)["token"], parsed(first)["token"]);
  EXPECT_TRUE(parsed(first)["secret"].is_string());
  EXPECT_TRUE(parsed(again)["secret"].is_null());
}

}  // namespace
}  // namespace gpu_platform::api
