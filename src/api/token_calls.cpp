#include "api/token_calls.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/accounts.h"
#include "api/call_context.h"
#include "api/convert/token.h"
#include "api/identity/token_text.h"
#include "api/identity/token_uses.h"
#include "base/parse.h"
#include "model/access.h"

namespace gpu_platform::api {

using base::ErrorCode;

namespace {

bool may_touch_tokens_of_all(const Peer& peer) {
  return peer.caller.reach == model::Reach::kAll;
}

base::Status check_own(const Peer& peer, const std::string& user, std::string_view verb) {
  if (user == peer.caller.user || may_touch_tokens_of_all(peer)) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("user: you may not {} tokens of another user; you "
                                "are {}",
                                verb, peer.caller.user),
                    "user");
}

// What a token that is made with the credential holds by.
void add_proven(const Peer& peer, model::MakeToken& command) {
  if (peer.identity == nullptr) return;
  const ProvenIdentity& identity = *peer.identity;
  command.proven = model::ProvenNames{.names = identity.names,
                                      .issuer = identity.issuer,
                                      .user_claim = identity.claim,
                                      .user = peer.caller.user};
  command.proven_until = identity.ends_at;
}

v1::Token described(const CallContext& context, const model::Token& token) {
  v1::Token out;
  api::to_proto(
      token,
      context.core.token_uses == nullptr ? token.used_at : context.core.token_uses->last_of(token),
      out);
  return out;
}

// Finds the user of a new token, which is none of the system's. The name is looked up as it will
// be when the token is used.
void find_token_user(const CallContext& context, const std::string& name, const Peer& peer,
                     const Resume& resume, AccountFound done) {
  const auto refuse = [&done](base::Error error) { done(std::unexpected(std::move(error))); };
  if (!peer.has_account) {
    return done(base::fail(ErrorCode::kPermissionDenied,
                           fmt::format("user: uid {} has no account on this machine, and only "
                                       "users with an account may have tokens",
                                       peer.caller.uid),
                           "user"));
  }
  if (const auto named = check_named(peer); !named) return refuse(named.error());
  const std::string user = name.empty() ? peer.caller.user : name;
  if (const auto own = check_own(peer, user, "make"); !own) return refuse(own.error());
  find_account(
      context, user, peer.caller.uid, resume,
      [user, range = context.options.users, done = std::move(done)](base::Result<Account> found) {
        if (!found) return done(std::move(found));
        // The core refuses root.
        const std::string why = found->uid == 0 ? std::string() : error_in_user(found->uid, range);
        if (why.empty()) return done(std::move(found));
        done(base::fail(ErrorCode::kPermissionDenied,
                        fmt::format("user: system accounts cannot have tokens: {}: {}", user, why),
                        "user"));
      });
}

// Hands the command to the core with a new secret.
void make_token(const CallContext& context, model::MakeToken command, const model::Caller& caller,
                Resume resume, Done<Created<v1::CreatedToken>> done) {
  auto secret = random_secret();
  if (!secret) return done(std::unexpected(std::move(secret).error()));
  command.hash = hash_of(*secret);
  context.send({caller, std::move(command)}, std::move(resume),
               [&context, secret = *std::move(secret),
                done = std::move(done)](base::Result<model::CommandReply> reply) {
                 if (!reply) return done(std::unexpected(std::move(reply).error()));
                 const auto snapshot = context.core.snapshots.snapshot();
                 const model::Token* token = snapshot->tokens.find(reply->token.value);
                 if (token == nullptr) {
                   return done(base::fail(ErrorCode::kNotFound, "the token was revoked at once"));
                 }
                 Created<v1::CreatedToken> made{.answer = {}, .is_repeat = !reply->changed};
                 *made.answer.mutable_token() = described(context, *token);
                 // Of a repetition the secret that was just made is of no token.
                 if (!made.is_repeat) made.answer.set_secret(to_text({token->id, secret}));
                 done(std::move(made));
               });
}

// Finds a token by its id, or by the name that it has for its user.
base::Result<model::Token> token_of(const CallContext& context,
                                    const v1::RevokeTokenRequest& request, const Peer& peer) {
  const std::string& user = request.has_user() ? request.user() : peer.caller.user;
  const auto id = base::parse_count(request.token(), 1, INT64_MAX);
  const auto is_meant = [&](const model::Token& token) {
    return id ? token.id.value == *id : token.name == request.token() && token.user == user;
  };
  std::optional<model::Token> found;
  const auto snapshot = context.core.snapshots.snapshot();
  snapshot->tokens.for_each_while([&](std::uint64_t, const model::Token& token) {
    const bool may_see = may_touch_tokens_of(peer.caller, token.uid);
    if (may_see && is_meant(token)) found = token;
    return !found;
  });
  if (found) return *std::move(found);
  return base::fail(ErrorCode::kNotFound,
                    fmt::format("user {1} has no valid token '{0}'", request.token(), user),
                    "token");
}

}  // namespace

void TokenCalls::create(const v1::CreateTokenRequest& request, const Peer& peer, Resume resume,
                        Done<Created<v1::CreatedToken>> done) const {
  model::MakeToken order = to_model(request);
  add_proven(peer, order);
  find_token_user(context_, request.user(), peer, resume,
                  [&context = context_, command = std::move(order), caller = peer.caller, resume,
                   done = std::move(done)](base::Result<Account> account) mutable {
                    if (!account) return done(std::unexpected(std::move(account).error()));
                    command.user = account->user;
                    command.uid = account->uid;
                    command.gid = account->gid;
                    make_token(context, std::move(command), caller, std::move(resume),
                               std::move(done));
                  });
}

base::Result<v1::ListTokensResponse> TokenCalls::list(const v1::ListTokensRequest& request,
                                                      const Peer& peer) const {
  constexpr std::uint32_t kDefaultTokens = 100;
  if (request.all_users() && !may_touch_tokens_of_all(peer)) {
    return base::fail(ErrorCode::kPermissionDenied,
                      "all_users: only an administrator sees the tokens of all users", "all_users");
  }
  if (request.has_user()) TRY(check_own(peer, request.user(), "see"));
  std::uint64_t before = UINT64_MAX;
  if (request.has_page_token()) {
    const auto given = base::parse_count(request.page_token(), 1, INT64_MAX);
    if (!given) {
      return base::invalid("page_token", "page_token: must be the next_page of an earlier answer");
    }
    before = *given;
  }
  const auto is_wanted = [&](const model::Token& token) {
    if (request.has_user()) return token.user == request.user();
    return request.all_users() || token.uid == peer.caller.uid;
  };
  const int limit = static_cast<int>(request.has_limit() ? request.limit() : kDefaultTokens);
  v1::ListTokensResponse out;
  const auto snapshot = context_.core.snapshots.snapshot();
  snapshot->tokens.for_each_descending_while([&](std::uint64_t id, const model::Token& token) {
    if (id >= before || !is_wanted(token)) return true;
    if (out.tokens_size() == limit) {
      out.set_next_page(out.tokens(limit - 1).id());
      return false;
    }
    *out.add_tokens() = described(context_, token);
    return true;
  });
  return out;
}

void TokenCalls::revoke(const v1::RevokeTokenRequest& request, const Peer& peer, Resume resume,
                        Done<v1::Token> done) const {
  auto before = token_of(context_, request, peer);
  if (!before) return done(std::unexpected(std::move(before).error()));
  context_.send({peer.caller, model::RevokeToken{before->id}}, std::move(resume),
                [answer = described(context_, *before),
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done(answer);
                });
}

}  // namespace gpu_platform::api
