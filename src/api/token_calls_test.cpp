#include <gtest/gtest.h>

#include <future>
#include <map>

#include "api/call_context.h"
#include "api/fake_core_test.h"
#include "api/identity/token_text.h"
#include "api/identity/token_uses.h"
#include "api/peers_test.h"
#include "api/token_calls.h"

namespace gpu_platform::api {
namespace {

using base::ErrorCode;

class FewAccounts final : public host::UserDatabase {
 public:
  base::Result<host::User> find(std::uint32_t) const override {
    return base::fail(ErrorCode::kNotFound, "not asked");
  }
  base::Result<host::User> find(const std::string& name) const override {
    const std::map<std::string, std::uint32_t> uids = {
        {"ada", 1000}, {"bob", 1001}, {"backup", 34}, {"root", 0}};
    const auto found = uids.find(name);
    if (found == uids.end()) return base::fail(ErrorCode::kNotFound, "no such user");
    return host::User{name, found->second, found->second, "/", "/bin/sh"};
  }
};

class TokenCallsTest : public testing::Test {
 protected:
  static v1::CreateTokenRequest named(const std::string& name, const std::string& user = {}) {
    v1::CreateTokenRequest request;
    request.set_name(name);
    request.set_user(user);
    return request;
  }
  base::Result<Created<v1::CreatedToken>> create(const v1::CreateTokenRequest& request,
                                                 const Peer& peer) {
    std::promise<base::Result<Created<v1::CreatedToken>>> answer;
    calls_.create(
        request, peer, [](auto work) { work(); },
        [&](base::Result<Created<v1::CreatedToken>> made) { answer.set_value(std::move(made)); });
    return answer.get_future().get();
  }
  std::string made(const v1::CreateTokenRequest& request, const Peer& peer) {
    const auto answer = create(request, peer);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? answer->answer.token().id() : std::string();
  }
  // The refusal's code and field.
  template <class T>
  static std::string refusal(const base::Result<T>& result) {
    if (result) return "accepted";
    return std::string(to_string(result.error().code)) + " " + result.error().field;
  }
  base::Result<v1::Token> revoke(const std::string& token, const Peer& peer,
                                 const std::string& user = {}) {
    v1::RevokeTokenRequest request;
    request.set_token(token);
    if (!user.empty()) request.set_user(user);
    std::promise<base::Result<v1::Token>> answer;
    calls_.revoke(
        request, peer, [](auto work) { work(); },
        [&](base::Result<v1::Token> revoked) { answer.set_value(std::move(revoked)); });
    return answer.get_future().get();
  }
  std::string listed(const v1::ListTokensRequest& request, const Peer& peer) {
    const auto page = calls_.list(request, peer);
    if (!page) return refusal(page);
    std::string names;
    for (const v1::Token& token : page->tokens()) names += token.name() + " ";
    return names + page->next_page();
  }

  FakeCore core_;
  host::UserDirectory users_{std::make_shared<FewAccounts>()};
  TokenUses uses_;
  CoreAccess access_{.commands = core_,
                     .snapshots = core_,
                     .archive = core_,
                     .outputs = core_,
                     .users = users_,
                     .token_uses = &uses_};
  CallContext context_{access_, {.version = "1"}};
  TokenCalls calls_{context_};
};

TEST_F(TokenCallsTest, TheAnswerHasTheSecretOnceAndTheCoreItsHashAlone) {
  v1::CreateTokenRequest request = named("laptop");
  request.set_request_id("key");
  const auto first = create(request, kAda);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->is_repeat);
  const auto text = parse_token_text(first->answer.secret());
  ASSERT_TRUE(text) << first->answer.secret();
  const model::Token* token = core_.snapshot()->tokens.find(text->id.value);
  ASSERT_NE(token, nullptr);
  EXPECT_EQ(token->hash, hash_of(text->secret));
  EXPECT_EQ(token->user, "ada");
  EXPECT_EQ(token->uid, 1000u);

  const auto again = create(request, kAda);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->is_repeat);
  EXPECT_EQ(again->answer.token().id(), first->answer.token().id());
  EXPECT_FALSE(again->answer.has_secret());
}

TEST_F(TokenCallsTest, AreForUsersOfThisMachineWhoAreNeitherRootNorTheSystem) {
  EXPECT_EQ(refusal(create(named("x", "bob"), kAda)), "PERMISSION_DENIED user");
  EXPECT_EQ(refusal(create(named("x", "gone"), kAda)), "PERMISSION_DENIED user")
      << "says nothing of who exists";
  EXPECT_EQ(refusal(create(named("x", "gone"), kRoot)), "NOT_FOUND user");
  EXPECT_EQ(refusal(create(named("x", "backup"), kRoot)), "PERMISSION_DENIED user");
  EXPECT_EQ(refusal(create(named("x"), kRoot)), "PERMISSION_DENIED user");
  EXPECT_EQ(refusal(create(named("x", "bob"), kRoot)), "accepted");
  Peer without_account = kAda;
  without_account.has_account = false;
  EXPECT_EQ(refusal(create(named("x"), without_account)), "PERMISSION_DENIED user");
  Peer unknown = kAda;
  unknown.is_name_known = false;
  EXPECT_EQ(refusal(create(named("x"), unknown)), "UNAVAILABLE ");
}

TEST_F(TokenCallsTest, AListHasTheCallersOwnAndForAdministratorsAll) {
  made(named("a1"), kAda);
  made(named("b1"), kBob);
  made(named("a2"), kAda);
  v1::ListTokensRequest request;
  EXPECT_EQ(listed(request, kAda), "a2 a1 ");
  EXPECT_EQ(listed(request, kRoot), "");
  request.set_all_users(true);
  EXPECT_EQ(listed(request, kAda), "PERMISSION_DENIED all_users");
  EXPECT_EQ(listed(request, kRoot), "a2 b1 a1 ");
  request.set_all_users(false);
  request.set_user("bob");
  EXPECT_EQ(listed(request, kAda), "PERMISSION_DENIED user");
  EXPECT_EQ(listed(request, kBob), "b1 ");
  EXPECT_EQ(listed(request, kRoot), "b1 ");
}

TEST_F(TokenCallsTest, AListComesInPages) {
  for (int i = 1; i <= 5; ++i) made(named("t" + std::to_string(i)), i == 3 ? kBob : kAda);
  v1::ListTokensRequest request;
  request.set_limit(2);
  EXPECT_EQ(listed(request, kAda), "t5 t4 4");
  request.set_page_token("4");
  EXPECT_EQ(listed(request, kAda), "t2 t1 ");
  request.set_page_token("x");
  EXPECT_EQ(listed(request, kAda), "INVALID_ARGUMENT page_token");
}

TEST_F(TokenCallsTest, AListShowsTheLastUseThatIsKnown) {
  const std::string id = made(named("a1"), kAda);
  EXPECT_FALSE(calls_.list({}, kAda)->tokens(0).has_last_used_at());
  const base::Instant minute(1'700'000'040'000'000'000);
  uses_.note(*core_.snapshot()->tokens.find(std::stoull(id)), minute + base::seconds(7));
  EXPECT_EQ(calls_.list({}, kAda)->tokens(0).last_used_at().seconds(), 1'700'000'040);
}

TEST_F(TokenCallsTest, AreRevokedByIdOrNameAndThoseOfOthersAreUnknown) {
  const std::string id = made(named("laptop"), kAda);
  made(named("laptop"), kBob);
  EXPECT_EQ(refusal(revoke(id, kBob)), "NOT_FOUND token");
  EXPECT_EQ(refusal(revoke("laptop", kBob, "ada")), "NOT_FOUND token");
  EXPECT_EQ(refusal(revoke("laptop", kRoot)), "NOT_FOUND token");
  const auto revoked = revoke("laptop", kAda);
  ASSERT_TRUE(revoked) << revoked.error().message;
  EXPECT_EQ(revoked->id(), id);
  EXPECT_EQ(refusal(revoke(id, kAda)), "NOT_FOUND token");
  EXPECT_EQ(refusal(revoke("laptop", kRoot, "bob")), "accepted");
  EXPECT_TRUE(core_.snapshot()->tokens.empty());
}

}  // namespace
}  // namespace gpu_platform::api
