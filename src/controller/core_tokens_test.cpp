#include <algorithm>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/test_support.h"

// These tests check who may make and revoke tokens, and when tokens end.

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using model::Role;
using model::TokenId;
using testing::kAdministrator;
using testing::kNoon;
using testing::kOtherUser;
using testing::kOwner;

class CoreTokens : public ::testing::Test {
 protected:
  CoreTokens() { apply({}); }
  ~CoreTokens() override { EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>()); }

  void apply(const model::Policy& policy) {
    core_.apply_policy(policy, "test", now_);
    core_.take_batch();
  }

  static model::MakeToken order(std::string name = "laptop") {
    model::MakeToken order;
    order.name = std::move(name);
    order.user = "ann";
    order.uid = 1001;
    order.gid = 1001;
    order.hash = std::string(model::kTokenHashBytes, 'h');
    return order;
  }
  static model::MakeToken order_for(const model::Caller& user, std::string name = "laptop") {
    model::MakeToken made = order(std::move(name));
    made.user = user.user;
    made.uid = user.uid;
    return made;
  }
  static model::Caller with(model::Caller caller, TokenId token) {
    caller.credential = token.value;
    return caller;
  }

  base::Result<model::CommandReply> tell(const model::Caller& by, auto body,
                                         store::Headroom headroom = store::Headroom::kAmple) {
    return core_.command({by, std::move(body)}, now_, headroom);
  }
  TokenId make(const model::Caller& by, model::MakeToken order) {
    const auto reply = tell(by, std::move(order));
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->token : TokenId();
  }
  // The refusal's code and field: "PERMISSION_DENIED role".
  std::string refusal(const model::Caller& by, auto body,
                      store::Headroom headroom = store::Headroom::kAmple) {
    const std::uint64_t before = core_.state().seq.value;
    const auto reply = tell(by, std::move(body), headroom);
    if (reply) return "accepted";
    EXPECT_EQ(core_.state().seq.value, before) << "a refusal changes nothing";
    return std::string(to_string(reply.error().code)) + " " + reply.error().field;
  }
  const model::Token* find(TokenId id) const { return core_.state().tokens.find(id.value); }
  void advance(base::Duration time) {
    now_ = now_ + time;
    core_.advance(now_);
  }
  std::vector<model::AuditedCall> audited() {
    std::vector<model::AuditedCall> calls;
    for (const auto& record : core_.take_batch().events) {
      if (auto entry = model::audit_entry(record)) calls.push_back(std::move(entry->call));
    }
    return calls;
  }

  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(CoreTokens, AUserMakesATokenOfItsOwnThatLasts90DaysUnlessToldOtherwise) {
  const TokenId id = make(kOwner, order());
  ASSERT_NE(find(id), nullptr);
  const model::Token& token = *find(id);
  EXPECT_EQ(token.name, "laptop");
  EXPECT_EQ(token.user, "ann");
  EXPECT_EQ(token.uid, 1001u);
  EXPECT_EQ(token.created_by, "ann");
  EXPECT_EQ(token.created_at, kNoon);
  EXPECT_EQ(token.expires_at, kNoon + base::hours(90 * 24));
  EXPECT_FALSE(token.made_with.valid());

  model::MakeToken other = order("for-a-day");
  other.expires_at = kNoon + base::hours(24);
  EXPECT_EQ(find(make(kOwner, other))->expires_at, kNoon + base::hours(24));
  model::MakeToken lasting = order("for-ever");
  lasting.never_expires = true;
  EXPECT_FALSE(find(make(kOwner, lasting))->expires_at.is_set());
}

TEST_F(CoreTokens, OnlyAnAdministratorMakesTokensForOthers) {
  EXPECT_EQ(refusal(kOtherUser, order()), "PERMISSION_DENIED user");
  const TokenId id = make(kAdministrator, order());
  EXPECT_EQ(find(id)->user, "ann");
  EXPECT_EQ(find(id)->created_by, "root");
}

TEST_F(CoreTokens, RootHasNone) {
  EXPECT_EQ(refusal(kAdministrator, order_for(kAdministrator)), "PERMISSION_DENIED user");
}

TEST_F(CoreTokens, NoTokenIsOfARoleAboveItsMakers) {
  model::MakeToken above = order();
  above.role = Role::kOperator;
  EXPECT_EQ(refusal(kOwner, above), "PERMISSION_DENIED role");
  above.role = Role::kAdmin;
  EXPECT_EQ(refusal(kOwner, above), "PERMISSION_DENIED role");
  EXPECT_EQ(find(make(kAdministrator, above))->role, Role::kAdmin);
  model::MakeToken below = order("dashboard");
  below.role = Role::kViewer;
  EXPECT_EQ(find(make(kOwner, below))->role, Role::kViewer);
}

TEST_F(CoreTokens, OneThatWasMadeWithATokenMayNeitherDoMoreNorLastLongerAndEndsWithIt) {
  model::MakeToken parent = order("parent");
  parent.role = Role::kViewer;
  parent.expires_at = kNoon + base::hours(2);
  const TokenId parent_id = make(kOwner, parent);
  const model::Caller ann = with(kOwner, parent_id);

  model::MakeToken child = order("child");
  child.role = Role::kUser;
  EXPECT_EQ(refusal(ann, child), "PERMISSION_DENIED role");
  child.role.reset();
  child.expires_at = kNoon + base::hours(3);
  EXPECT_EQ(refusal(ann, child), "FAILED_PRECONDITION expires_at");
  child.expires_at = {};
  child.never_expires = true;
  EXPECT_EQ(refusal(ann, child), "FAILED_PRECONDITION never_expires");
  child.never_expires = false;
  const TokenId child_id = make(ann, child);
  EXPECT_EQ(find(child_id)->expires_at, kNoon + base::hours(2)) << "as late as it may";
  EXPECT_EQ(find(child_id)->role, Role::kViewer) << "as much as it may";
  EXPECT_EQ(find(child_id)->made_with, parent_id);
  child.name = "grandchild";
  const TokenId grandchild_id = make(with(kOwner, child_id), child);
  const TokenId unrelated = make(kOwner, order("unrelated"));
  audited();

  ASSERT_TRUE(tell(kOwner, model::RevokeToken{parent_id}));
  for (const TokenId id : {parent_id, child_id, grandchild_id}) EXPECT_EQ(find(id), nullptr);
  EXPECT_NE(find(unrelated), nullptr);
  std::vector<std::string> names;
  for (const auto& call : audited()) names.push_back(call.target);
  EXPECT_EQ(names, (std::vector<std::string>{"grandchild", "child", "parent"}));
}

TEST_F(CoreTokens, OneThatWasMadeWithASignedCredentialEndsWithItAndCarriesItsNames) {
  const model::ProvenNames names{{"openid:ann", "x"}, "https://sso.example", "sub", "ann"};
  model::MakeToken made = order("long");
  made.proven = names;
  made.proven_until = kNoon + base::seconds(20);
  made.never_expires = true;
  EXPECT_EQ(refusal(kOwner, made), "FAILED_PRECONDITION never_expires");
  made.never_expires = false;
  made.expires_at = kNoon + base::seconds(21);
  EXPECT_EQ(refusal(kOwner, made), "FAILED_PRECONDITION expires_at");
  made.expires_at = {};
  const TokenId id = make(kOwner, made);
  EXPECT_EQ(find(id)->expires_at, kNoon + base::seconds(20));
  EXPECT_EQ(find(id)->proven, names);
  // And so do all of its line.
  const TokenId child = make(with(kOwner, id), order("child"));
  const TokenId grandchild = make(with(kOwner, child), order("grandchild"));
  EXPECT_EQ(find(grandchild)->expires_at, kNoon + base::seconds(20));
  EXPECT_EQ(find(grandchild)->proven, names);
  EXPECT_FALSE(find(make(kOwner, order("own")))->proven.has_value());

  made.name = "later";
  made.proven_until = kNoon;
  EXPECT_EQ(refusal(kOwner, made), "UNAUTHENTICATED ");
  made.proven_until = {};
  EXPECT_EQ(refusal(kOwner, made), "UNAUTHENTICATED ");
  made.proven_until = kNoon + base::seconds(20);
  made.proven->names = {std::string(model::kMaxProvenBytes, 'x')};
  EXPECT_EQ(refusal(kOwner, made), "FAILED_PRECONDITION ");
}

TEST_F(CoreTokens, OneEndsItselfAndItsLineAndOthersOnlyIfItMayDoAsMuch) {
  model::MakeToken weak = order("weak");
  weak.role = Role::kViewer;
  const TokenId viewer = make(kOwner, weak);
  weak.name = "weak-too";
  const TokenId other_viewer = make(kOwner, weak);
  const TokenId user = make(kOwner, order("user"));
  model::MakeToken strong = order("strong");
  strong.role = Role::kOperator;
  const TokenId operators = make(kAdministrator, strong);

  for (const TokenId id : {other_viewer, user, operators}) {
    EXPECT_EQ(refusal(with(kOwner, viewer), model::RevokeToken{id}), "PERMISSION_DENIED token");
  }
  EXPECT_EQ(refusal(with(kOwner, user), model::RevokeToken{operators}), "PERMISSION_DENIED token");
  EXPECT_TRUE(tell(with(kOwner, user), model::RevokeToken{other_viewer}));
  EXPECT_TRUE(tell(with(kOwner, operators), model::RevokeToken{user}));
  const TokenId child = make(with(kOwner, viewer), order("child"));
  EXPECT_EQ(refusal(with(kOwner, child), model::RevokeToken{viewer}), "PERMISSION_DENIED token");
  EXPECT_TRUE(tell(with(kOwner, viewer), model::RevokeToken{child}));
  EXPECT_TRUE(tell(with(kOwner, viewer), model::RevokeToken{viewer}));
  EXPECT_TRUE(tell(kOwner, model::RevokeToken{operators})) << "the user without a token may";
}

TEST_F(CoreTokens, ThoseThatWereMadeWithTokensLeaveRoomForTheirUser) {
  const TokenId stolen = make(kOwner, order("stolen"));
  for (std::size_t i = 0; i < model::kMaxMadeWithTokensPerUser; ++i) {
    make(with(kOwner, stolen), order("t" + std::to_string(i)));
  }
  EXPECT_EQ(refusal(with(kOwner, stolen), order("more")), "RESOURCE_EXHAUSTED ");
  make(kOwner, order("own"));
  ASSERT_TRUE(tell(kOwner, model::RevokeToken{stolen}));
  make(with(kOwner, make(kOwner, order("next"))), order("again"));
}

TEST_F(CoreTokens, ACallerWhoseTokenHasEndedDoesNothingMore) {
  model::MakeToken soon = order("soon");
  soon.expires_at = kNoon + base::hours(1);
  const model::Caller ann = with(kOwner, make(kOwner, soon));
  now_ = now_ + base::hours(1);  // and the core has not looked at its clock yet
  EXPECT_EQ(refusal(ann, model::RevokeToken{TokenId(1)}), "UNAUTHENTICATED ");
  EXPECT_EQ(refusal(ann, model::ActOnJob{model::JobId(1)}), "UNAUTHENTICATED ");
  EXPECT_EQ(refusal(ann, model::SubmitJob{}), "UNAUTHENTICATED ");
  core_.advance(now_);
}

TEST_F(CoreTokens, ACallerWhoseTokenIsGoneMakesNone) {
  const TokenId id = make(kOwner, order());
  ASSERT_TRUE(tell(kOwner, model::RevokeToken{id}));
  EXPECT_EQ(refusal(with(kOwner, id), order("next")), "UNAUTHENTICATED ");
}

TEST_F(CoreTokens, ThePolicyBoundsHowLongTheyLast) {
  model::Policy policy;
  policy.max_token_lifetime = base::hours(24);
  apply(policy);
  EXPECT_EQ(find(make(kOwner, order()))->expires_at, kNoon + base::hours(24));
  model::MakeToken longer = order("longer");
  longer.expires_at = kNoon + base::hours(25);
  EXPECT_EQ(refusal(kOwner, longer), "FAILED_PRECONDITION expires_at");
  EXPECT_EQ(refusal(kAdministrator, longer), "FAILED_PRECONDITION expires_at");
  longer.expires_at = {};
  longer.never_expires = true;
  EXPECT_EQ(refusal(kOwner, longer), "FAILED_PRECONDITION never_expires");
}

TEST_F(CoreTokens, ARepeatedRequestMakesNoOtherWhileTheFirstHolds) {
  model::MakeToken once = order();
  once.request_id = "key-1";
  const TokenId id = make(kOwner, once);
  once.hash = std::string(model::kTokenHashBytes, 'x');
  const auto again = tell(kOwner, once);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->changed);
  EXPECT_EQ(again->token, id);
  EXPECT_EQ(core_.state().tokens.size(), 1u);
  EXPECT_EQ(find(id)->hash, std::string(model::kTokenHashBytes, 'h'))
      << "the secret that the first answer had is the one that holds";

  model::MakeToken of_bob = order_for(kOtherUser);
  of_bob.request_id = "key-1";
  EXPECT_NE(make(kOtherUser, of_bob), id) << "the keys of others are others";
  ASSERT_TRUE(tell(kOwner, model::RevokeToken{id}));
  EXPECT_NE(make(kOwner, once), id) << "revoked: the way to a new secret";
}

TEST_F(CoreTokens, ANameIsOneTokenOfItsUser) {
  make(kOwner, order());
  EXPECT_EQ(refusal(kOwner, order()), "ALREADY_EXISTS name");
  make(kOtherUser, order_for(kOtherUser));
  for (const std::string name : {"", "7", "-x", "a b", "a/b", "\xc3\xa4"}) {
    EXPECT_EQ(refusal(kOwner, order(name)), "INVALID_ARGUMENT name") << name;
  }
  EXPECT_EQ(refusal(kOwner, order(std::string(65, 'a'))), "INVALID_ARGUMENT name");
}

TEST_F(CoreTokens, AUserHasSoManyAtMostAndSoHaveAll) {
  for (std::size_t i = 0; i < model::kMaxTokensPerUser; ++i) {
    make(kOwner, order("t" + std::to_string(i)));
  }
  EXPECT_EQ(refusal(kOwner, order("more")), "RESOURCE_EXHAUSTED ");
  make(kOtherUser, order_for(kOtherUser));
  model::Caller someone = kOwner;
  while (core_.state().tokens.size() < model::kMaxTokens) {
    ++someone.uid;
    someone.user = "u" + std::to_string(someone.uid);
    for (std::size_t i = 0; i < model::kMaxTokensPerUser; ++i) {
      if (core_.state().tokens.size() == model::kMaxTokens) break;
      (void)tell(someone, order_for(someone, "t" + std::to_string(i)));
    }
  }
  model::Caller last = kOwner;
  last.uid = 99'999;
  EXPECT_EQ(refusal(last, order_for(last)), "RESOURCE_EXHAUSTED ");
}

TEST_F(CoreTokens, AreNotMadeOnAFullDiskAndAreRevokedThereAllTheSame) {
  const TokenId id = make(kOwner, order());
  EXPECT_EQ(refusal(kOwner, order("next"), store::Headroom::kReserved), "RESOURCE_EXHAUSTED ");
  EXPECT_TRUE(tell(kOwner, model::RevokeToken{id}, store::Headroom::kReserved));
}

TEST_F(CoreTokens, AreRevokedByTheirUserAndAdministratorsAndUnknownToOthers) {
  const TokenId first = make(kOwner, order("first"));
  const TokenId second = make(kOwner, order("second"));
  EXPECT_EQ(refusal(kOtherUser, model::RevokeToken{first}), "NOT_FOUND token");
  EXPECT_EQ(refusal(kOtherUser, model::RevokeToken{TokenId(99)}), "NOT_FOUND token");
  EXPECT_TRUE(tell(kOwner, model::RevokeToken{first}));
  EXPECT_EQ(refusal(kOwner, model::RevokeToken{first}), "NOT_FOUND token");
  EXPECT_TRUE(tell(kAdministrator, model::RevokeToken{second}));
  EXPECT_TRUE(core_.state().tokens.empty());
}

TEST_F(CoreTokens, LeaveTheStateWhenTheirTimeIsOver) {
  model::MakeToken soon = order("soon");
  soon.expires_at = kNoon + base::hours(1);
  const TokenId id = make(kOwner, soon);
  make(kOwner, order("later"));
  soon.name = "child";
  make(with(kOwner, id), soon);
  advance(base::seconds(1));
  ASSERT_TRUE(core_.next_wakeup());
  EXPECT_EQ(*core_.next_wakeup(), kNoon + base::hours(1));
  audited();
  advance(base::hours(1));
  EXPECT_EQ(find(id), nullptr);
  EXPECT_EQ(core_.state().tokens.size(), 1u);
  EXPECT_TRUE(audited().empty()) << "time is not a person";
  make(kOwner, order("soon"));
}

TEST_F(CoreTokens, TheTrailHasWhoMadeAndRevokedThemForWhomAndWithWhichToken) {
  model::MakeToken made = order();
  made.request_id = "key-1";
  const TokenId id = make(kAdministrator, made);
  make(kAdministrator, made);
  auto calls = audited();
  ASSERT_EQ(calls.size(), 1u) << "a repetition is none";
  EXPECT_EQ(calls[0].action, model::AuditAction::kCreateToken);
  EXPECT_EQ(calls[0].by.user, "root");
  EXPECT_EQ(calls[0].owner, (model::JobOwner{"ann", 1001}));
  EXPECT_EQ(calls[0].target, "laptop");
  EXPECT_EQ(calls[0].request_id, "key-1");
  EXPECT_FALSE(calls[0].by.token.valid());
  ASSERT_TRUE(tell(with(kOwner, id), model::RevokeToken{id}));
  calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, model::AuditAction::kRevokeToken);
  EXPECT_EQ(calls[0].by.user, "ann");
  EXPECT_EQ(calls[0].by.token, id);
}

TEST_F(CoreTokens, AUseIsWrittenOncePerTenMinutesAndGoesIntoNoTrail) {
  const TokenId id = make(kOwner, order());
  audited();
  const auto used = [&](base::Duration after) {
    const auto reply = tell(kOwner, model::RecordTokenUse{id, kNoon + after});
    EXPECT_TRUE(reply);
    return reply && reply->changed;
  };
  EXPECT_TRUE(used(base::seconds(60)));
  EXPECT_FALSE(used(base::seconds(120)));
  EXPECT_FALSE(used(base::seconds(60 + 599)));
  EXPECT_TRUE(used(base::seconds(60 + 600)));
  EXPECT_EQ(find(id)->used_at, kNoon + base::seconds(660));
  EXPECT_TRUE(audited().empty());
  const auto unknown = tell(kOwner, model::RecordTokenUse{TokenId(99), kNoon});
  EXPECT_TRUE(unknown && !unknown->changed);
}

TEST_F(CoreTokens, AreInSnapshotsAndAStateThatEndsBeforeThemHasNone) {
  model::MakeToken made = order();
  made.request_id = "key-1";
  make(kOwner, made);
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->tokens, core_.state().tokens);
  EXPECT_EQ(again->last_token_id, 1u);
  EXPECT_EQ(differences(*again, core_.state()), std::vector<std::string_view>());
  EXPECT_EQ(core_.snapshot()->tokens, core_.state().tokens);

  const std::string before = encode_state(State());
  // An older state has neither the number of the last token nor those of tokens, teams and errors
  // of predictions, and no money.
  const std::size_t later =
      3 + scheduling::kDepths * scheduling::kStartBounds + testing::money_bytes(State());
  const auto older = decode_state(std::string_view(before).substr(0, before.size() - later));
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_TRUE(older->tokens.empty());
}

TEST_F(CoreTokens, NoneOutlivesTheRepairOfAStoreBecauseItsRevocationMayBeMissing) {
  make(kOwner, order());
  core_.replay({model::EventSeq(core_.state().seq.value + 1), now_, model::StoreRepaired{}});
  EXPECT_TRUE(core_.state().tokens.empty());
}

}  // namespace
}  // namespace gpu_platform::controller
