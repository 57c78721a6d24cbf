#include "api/identity/token_authenticator.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <optional>

#include "api/fake_core_test.h"
#include "api/identity/token_text.h"

namespace gpu_platform::api {
namespace {

using base::ErrorCode;

constexpr base::Instant kSignedInAt(1'750'000'000'000'000'000);

// The users of a machine, which a test changes.
class ChangingUsers final : public host::UserDatabase {
 public:
  base::Result<host::User> find(std::uint32_t) const override {
    return base::fail(ErrorCode::kNotFound, "not asked");
  }
  base::Result<host::User> find(const std::string& name) const override {
    if (!answers) return base::fail(ErrorCode::kInternal, "no answer");
    const auto found = users.find(name);
    if (found == users.end()) return base::fail(ErrorCode::kNotFound, "no such user");
    return found->second;
  }
  bool answers = true;
  std::map<std::string, host::User> users;
};

class TokenAuthentication : public testing::Test {
 protected:
  TokenAuthentication() {
    add_user("ann", 1001);
    TokenAuthenticator::Options options;
    options.limits.failures = 3;
    options.clock = [this] { return now_; };
    options.warn = [this](const std::string& line) { lines_ += line + "\n"; };
    options.still_stand = [this](const model::ProvenNames& names) {
      return names.names == names_in_force_;
    };
    authenticator_.emplace(core_, directory_, core_, uses_, options);
  }

  void add_user(const std::string& name, std::uint32_t uid) {
    users_->users[name] = {name, uid, uid + 5000, "/home", "/bin/sh"};
  }
  // Puts a token of that user there, and returns its text.
  std::string token_of(const std::string& user, std::uint32_t uid, base::Instant expires = {}) {
    model::Token token;
    token.id = model::TokenId(++last_id_);
    token.name = "laptop";
    token.user = user;
    token.uid = uid;
    token.expires_at = expires;
    const std::string secret(model::kTokenSecretBytes, static_cast<char>('a' + last_id_));
    token.hash = hash_of(secret);
    core_.put_token(token);
    return to_text({token.id, secret});
  }
  base::Result<Peer> ask(std::string secret, std::string address = "192.0.2.7",
                         Credential::Kind kind = Credential::Kind::kBearer) {
    std::promise<base::Result<Peer>> answer;
    authenticator_->authenticate(
        {kind, std::move(secret), std::move(address)},
        [&](base::Result<Peer> peer) { answer.set_value(std::move(peer)); });
    return answer.get_future().get();
  }
  std::string refusal(std::string secret, std::string address = "192.0.2.7") {
    const auto peer = ask(std::move(secret), std::move(address));
    return peer ? "accepted" : std::string(to_string(peer.error().code));
  }
  std::size_t recorded_uses() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(core_.commands(), [](const model::Command& command) {
          return std::holds_alternative<model::RecordTokenUse>(command.body);
        }));
  }

  std::vector<std::string> names_in_force_;  // names that the site's rule has
  base::Instant now_ = kSignedInAt;
  std::string lines_;
  std::uint64_t last_id_ = 0;
  FakeCore core_;
  std::shared_ptr<ChangingUsers> users_ = std::make_shared<ChangingUsers>();
  host::UserDirectory directory_{users_};
  TokenUses uses_;
  std::optional<TokenAuthenticator> authenticator_;
};

TEST_F(TokenAuthentication, ATokenIsItsUserOnThisMachineAndNoAdministrator) {
  const auto peer = ask(token_of("ann", 1001));
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->caller.user, "ann");
  EXPECT_EQ(peer->caller.uid, 1001u);
  EXPECT_EQ(peer->gid, 6001u);
  EXPECT_EQ(peer->caller.max_role, model::Role::kUser);
  EXPECT_EQ(peer->caller.role, model::Role::kUser);
  EXPECT_EQ(peer->caller.reach, model::Reach::kOwn);
  EXPECT_EQ(peer->caller.door, model::Door::kListener);
  EXPECT_EQ(peer->caller.credential, 1u);
  EXPECT_EQ(peer->caller.credential_name->name, "laptop");
  EXPECT_TRUE(peer->is_name_known && peer->has_account);
  EXPECT_TRUE(authenticator_->check_still_holds(*peer));
  EXPECT_EQ(lines_, "");
}

TEST_F(TokenAuthentication, OneThatWasMadeWithASignedCredentialHoldsWhileItsNamesStandForItsUser) {
  const std::string text = token_of("ann", 1001);
  model::Token token = *core_.snapshot()->tokens.find(1);
  token.proven = model::ProvenNames{{"cn:ann"}, {}, {}, "ann"};
  core_.put_token(token);
  EXPECT_EQ(refusal(text), "UNAUTHENTICATED");
  EXPECT_NE(lines_.find("access.identities"), std::string::npos) << lines_;
  names_in_force_ = {"cn:ann"};
  const auto peer = ask(text);
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_TRUE(authenticator_->check_still_holds(*peer));
  names_in_force_.clear();
  EXPECT_FALSE(authenticator_->check_still_holds(*peer)) << "also on a connection that is open";
  TokenAuthenticator without_rule(core_, directory_, core_, uses_, {});
  EXPECT_FALSE(without_rule.check_still_holds(*peer));
}

TEST_F(TokenAuthentication, ATokenAllowsNoMoreThanItsRoleAndNoMoreThanItsUser) {
  const std::string text = token_of("ann", 1001);
  for (const auto role : {model::Role::kViewer, model::Role::kAdmin}) {
    model::Token token = *core_.snapshot()->tokens.find(1);
    token.role = role;
    core_.put_token(token);
    const auto peer = ask(text);
    ASSERT_TRUE(peer);
    EXPECT_EQ(peer->caller.max_role, role);
    EXPECT_EQ(peer->caller.role, std::min(role, model::Role::kUser));
    EXPECT_EQ(peer->caller.reach, model::Reach::kOwn);
  }
}

TEST_F(TokenAuthentication, WrongOnesAreRefusedAlikeAndNoSecretIsLogged) {
  const std::string good = token_of("ann", 1001);
  const std::string expired = token_of("ann", 1001, kSignedInAt);
  const std::string wrong = to_text({model::TokenId(1), std::string(32, 'x')});
  const std::string unknown = to_text({model::TokenId(99), std::string(32, 'x')});
  std::optional<base::Error> first;
  int address = 0;
  for (const std::string& text : {wrong, unknown, expired, std::string("gpt_"), std::string()}) {
    const auto peer = ask(text, "192.0.2." + std::to_string(++address));
    ASSERT_FALSE(peer) << text;
    if (!first) first = peer.error();
    EXPECT_EQ(peer.error(), *first);
    EXPECT_EQ(peer.error().code, ErrorCode::kUnauthenticated);
    if (text.size() <= 4) continue;
    EXPECT_EQ(lines_.find(text.substr(6)), std::string::npos);
  }
  EXPECT_NE(lines_.find("address=192.0.2.3 why=\"token 2: expired\""), std::string::npos) << lines_;
  EXPECT_FALSE(ask(good, "192.0.2.9", Credential::Kind::kCertificate));
  EXPECT_TRUE(ask(good));
}

TEST_F(TokenAuthentication, OneOfAUserWhoIsGoneRenumberedOrOfTheSystemIsRefused) {
  add_user("old", 1002);
  add_user("root", 0);
  add_user("backup", 34);
  EXPECT_EQ(refusal(token_of("gone", 1009)), "UNAUTHENTICATED");
  EXPECT_EQ(refusal(token_of("old", 1003)), "UNAUTHENTICATED");
  EXPECT_EQ(refusal(token_of("root", 0)), "UNAUTHENTICATED");
  EXPECT_EQ(refusal(token_of("backup", 34)), "UNAUTHENTICATED");
  EXPECT_EQ(refusal(token_of("ann", 1001)), "accepted")
      << "these had the right secret: they are no failures of the address";
}

TEST_F(TokenAuthentication, ADatabaseThatDoesNotAnswerIsNoRefusal) {
  users_->answers = false;
  EXPECT_EQ(refusal(token_of("ann", 1001)), "UNAVAILABLE");
}

TEST_F(TokenAuthentication, AnAddressThatGuessesIsNotLookedAtUntilItHasWaited) {
  const std::string good = token_of("ann", 1001);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal("gpt_guess"), "UNAUTHENTICATED");
  EXPECT_EQ(refusal("gpt_guess"), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(refusal(good), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(refusal(good, "192.0.2.8"), "accepted");
  now_ = now_ + base::seconds(3);
  EXPECT_EQ(refusal(good), "accepted");
}

TEST_F(TokenAuthentication, AConnectionEndsWithItsToken) {
  const auto revoked = ask(token_of("ann", 1001));
  const auto expiring = ask(token_of("ann", 1001, kSignedInAt + base::seconds(10)));
  ASSERT_TRUE(revoked && expiring);
  EXPECT_TRUE(authenticator_->check_still_holds(*revoked));
  EXPECT_TRUE(authenticator_->check_still_holds(*expiring));
  core_.remove_token(model::TokenId(1));
  now_ = kSignedInAt + base::seconds(10);
  for (const auto& peer : {revoked, expiring}) {
    const base::Status holds = authenticator_->check_still_holds(*peer);
    ASSERT_FALSE(holds);
    EXPECT_EQ(holds.error().code, ErrorCode::kUnauthenticated);
  }
}

TEST_F(TokenAuthentication, UsesAreKnownToTheMinuteAndToldToTheCoreEveryTenMinutes) {
  const auto peer = ask(token_of("ann", 1001));
  ASSERT_TRUE(peer);
  const auto token = [&] { return *core_.snapshot()->tokens.find(1); };
  EXPECT_FALSE(uses_.last_of(token()).is_set());
  const base::Instant minute(kSignedInAt.unix_ns() / 60'000'000'000 * 60'000'000'000);
  const auto use_after = [&](base::Duration time) {
    now_ = minute + time;
    EXPECT_TRUE(authenticator_->check_still_holds(*peer));
  };
  use_after(base::seconds(59));
  EXPECT_EQ(uses_.last_of(token()), minute);
  EXPECT_EQ(recorded_uses(), 1u);
  use_after(base::seconds(61));
  EXPECT_EQ(uses_.last_of(token()), minute + base::seconds(60));
  use_after(base::seconds(599));
  EXPECT_EQ(recorded_uses(), 1u);
  use_after(base::seconds(600));
  EXPECT_EQ(recorded_uses(), 2u);
  EXPECT_EQ(uses_.last_of(token()), minute + base::seconds(600));
}

TEST_F(TokenAuthentication, AfterARestartTheUseThatTheJournalHasIsTheLast) {
  const std::string text = token_of("ann", 1001);
  model::Token token = *core_.snapshot()->tokens.find(1);
  token.used_at = base::Instant(kSignedInAt.unix_ns() - base::minutes(1).value());
  core_.put_token(token);
  EXPECT_EQ(uses_.last_of(token), token.used_at);
  const auto peer = ask(text);
  ASSERT_TRUE(peer && authenticator_->check_still_holds(*peer));
  EXPECT_EQ(recorded_uses(), 0u) << "the journal has one of less than ten minutes ago";
}

}  // namespace
}  // namespace gpu_platform::api
