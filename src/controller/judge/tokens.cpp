#include "controller/judge/tokens.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/utc.h"
#include "model/access.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Role;
using model::Token;

namespace {

// The most that the caller may hand on.
struct Bounds {
  Role role = Role::kUser;
  base::Instant end;  // unset: none
  const Token* token = nullptr;
  std::optional<model::ProvenNames> proven = std::nullopt;
};

void end_at(Bounds& bounds, base::Instant end) {
  if (!end.is_set()) return;
  bounds.end = bounds.end.is_set() ? std::min(bounds.end, end) : end;
}

base::Status check_size(const model::ProvenNames& proven) {
  std::size_t bytes = proven.issuer.size() + proven.user_claim.size() + proven.user.size();
  for (const std::string& name : proven.names) bytes += name.size();
  if (bytes <= model::kMaxProvenBytes) return {};
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("the credential that you use has names of {} bytes; a token "
                                "may be made with {} at most",
                                bytes, model::kMaxProvenBytes));
}

base::Result<Bounds> bounds_of(const State& state, const model::Caller& caller,
                               const model::MakeToken& command, base::Instant now) {
  Bounds bounds{.role = std::min(caller.role, caller.max_role), .end = {}, .token = nullptr};
  if (const base::Duration longest = state.policy->max_token_lifetime;
      longest != base::Duration()) {
    bounds.end = now + longest;
  }
  if (command.proven) {
    TRY(check_size(*command.proven));
    if (command.proven_until <= now) {
      return base::fail(ErrorCode::kUnauthenticated, "your credential has expired; log in again");
    }
    bounds.proven = command.proven;
    end_at(bounds, command.proven_until);
  }
  if (caller.credential == 0) return bounds;
  TRY(check_credential(state, caller, now));
  bounds.token = state.tokens.find(caller.credential);
  bounds.role = std::min(bounds.role, bounds.token->role);
  bounds.proven = bounds.token->proven;
  end_at(bounds, bounds.token->expires_at);
  return bounds;
}

base::Status check_user(const model::Caller& caller, const model::MakeToken& command) {
  if (command.uid == 0) {
    return base::fail(ErrorCode::kPermissionDenied,
                      "user: root has no tokens, because its rights are limited to this machine's "
                      "socket; give --user NAME",
                      "user");
  }
  if (may_touch_tokens_of(caller, command.uid)) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("user: only root may make tokens of another user; you "
                                "are {}",
                                caller.user),
                    "user");
}

base::Status check_count(const State& state, const model::MakeToken& command, bool is_by_token) {
  if (state.token_index.has_name(command.uid, command.name)) {
    return base::fail(ErrorCode::kAlreadyExists,
                      fmt::format("name: user {} already has a token '{}'; revoke it, or choose "
                                  "another name",
                                  command.user, command.name),
                      "name");
  }
  if (state.token_index.count_of(command.uid) >= model::kMaxTokensPerUser) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("user {} has {} tokens, which is the limit; revoke some",
                                  command.user, model::kMaxTokensPerUser));
  }
  const bool has_room = !is_by_token || state.token_index.count_made_with_tokens(command.uid) <
                                            model::kMaxMadeWithTokensPerUser;
  if (!has_room) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("user {} has {} tokens that were made with tokens, which is the "
                                  "most; revoke some, or make this one without a token",
                                  command.user, model::kMaxMadeWithTokensPerUser));
  }
  if (state.tokens.size() >= model::kMaxTokens) {
    return base::fail(
        ErrorCode::kResourceExhausted,
        fmt::format("there are {} tokens, which is the limit; revoke some", model::kMaxTokens));
  }
  return {};
}

// What sets the bound, in words.
std::string bound_text(const State& state, const model::MakeToken& command, const Bounds& bounds) {
  if (bounds.token != nullptr && bounds.token->expires_at == bounds.end) {
    return fmt::format("your token expires {}, and a new one cannot outlive it",
                       base::utc(bounds.end));
  }
  if (command.proven && command.proven_until == bounds.end) {
    return fmt::format("your credential expires {}, and a token cannot outlive it",
                       base::utc(bounds.end));
  }
  return fmt::format("tokens may last at most {} (api.max_token_lifetime)",
                     base::written(state.policy->max_token_lifetime));
}

base::Result<base::Instant> end_of(const State& state, const Bounds& bounds,
                                   const model::MakeToken& command, base::Instant now) {
  if (command.never_expires && command.expires_at.is_set()) {
    return base::invalid("never_expires", "never_expires: give either this or expires_at");
  }
  if (command.never_expires) {
    if (!bounds.end.is_set()) return base::Instant();
    return base::fail(ErrorCode::kFailedPrecondition,
                      "never_expires: " + bound_text(state, command, bounds), "never_expires");
  }
  if (!command.expires_at.is_set()) {
    const base::Instant end = now + model::kDefaultTokenLifetime;
    return bounds.end.is_set() ? std::min(end, bounds.end) : end;
  }
  if (command.expires_at <= now) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("expires_at: {} has passed", base::utc(command.expires_at)),
                      "expires_at");
  }
  if (bounds.end.is_set() && command.expires_at > bounds.end) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      "expires_at: " + bound_text(state, command, bounds), "expires_at");
  }
  return command.expires_at;
}

// The token and all that were made with it, each after the one that it was made with.
std::vector<model::TokenId> line_of(const State& state, model::TokenId token) {
  std::vector<model::TokenId> line{token};
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto children = state.token_index.made_with(line[i]);
    line.insert(line.end(), children.begin(), children.end());
  }
  return line;
}

// A token ends itself and what was made with it. Beyond that a viewer's changes nothing, and one of
// another role ends none that may do more: so a thief of a weak token does not lock its user out.
base::Status check_may_end(const State& state, const model::Caller& caller, const Token& token) {
  if (caller.credential == 0) return {};
  const Token* const own = state.tokens.find(caller.credential);
  const auto line = line_of(state, own->id);
  if (std::ranges::find(line, token.id) != line.end()) return {};
  if (own->role > Role::kViewer && own->role >= token.role) return {};
  return base::fail(
      ErrorCode::kPermissionDenied,
      fmt::format(
          "token: your token has the role {}, and can revoke only itself and the tokens that "
          "were made with it",
          to_string(own->role)),
      "token");
}

model::TokenRevoked end_of(const Token& token, std::string by) {
  return {token.id, token.name, {token.user, token.uid}, std::move(by)};
}

}  // namespace

base::Status check_credential(const State& state, const model::Caller& caller, base::Instant now) {
  if (caller.credential == 0) return {};
  const Token* const token = state.tokens.find(caller.credential);
  if (token != nullptr && !is_expired(*token, now)) return {};
  return base::fail(ErrorCode::kUnauthenticated,
                    "the token of this connection is no longer valid; log in again");
}

base::Result<TokenMade> judge_token(const State& state, const model::Caller& caller,
                                    const model::MakeToken& command, base::Instant now,
                                    store::Headroom headroom) {
  if (!command.request_id.empty()) {
    const auto earlier = state.token_index.of_request(caller.user, command.request_id);
    if (earlier && !is_expired(*state.tokens.find(earlier->value), now)) {
      return TokenMade{*earlier, {}};
    }
  }
  TRY(check_user(caller, command));
  TRY_ASSIGN(Bounds bounds, bounds_of(state, caller, command, now));
  if (headroom != store::Headroom::kAmple) {
    return base::fail(ErrorCode::kResourceExhausted,
                      "the disk of the data directory is full: no tokens are made until space is "
                      "freed");
  }
  if (!model::is_token_name(command.name)) {
    return base::invalid("name",
                         "name: 1 to 64 letters, digits, '-', '_' and '.', the first a letter");
  }
  const Role role = command.role.value_or(std::min(Role::kUser, bounds.role));
  if (role > bounds.role) {
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("role: {} is above your own, which is {} here", to_string(role),
                                  to_string(bounds.role)),
                      "role");
  }
  TRY(check_count(state, command, bounds.token != nullptr));
  Token token;
  TRY_ASSIGN(token.expires_at, end_of(state, bounds, command, now));
  token.id = model::TokenId(state.last_token_id + 1);
  token.name = command.name;
  token.user = command.user;
  token.uid = command.uid;
  token.gid = command.gid;
  token.role = role;
  token.created_at = now;
  token.created_by = caller.user;
  token.hash = command.hash;
  token.made_with = model::TokenId(caller.credential);
  token.request_id = command.request_id;
  token.proven = std::move(bounds.proven);
  return TokenMade{token.id, model::TokenCreated{std::move(token)}};
}

base::Result<Events> judge_revocation(const State& state, const model::Caller& caller,
                                      const model::RevokeToken& command) {
  const Token* token = state.tokens.find(command.token.value);
  if (token == nullptr || !may_touch_tokens_of(caller, token->uid)) {
    return base::fail(ErrorCode::kNotFound,
                      fmt::format("you have no valid token '{}'", command.token.value), "token");
  }
  TRY(check_may_end(state, caller, *token));
  std::vector<model::TokenId> ending = line_of(state, token->id);
  std::ranges::reverse(ending);  // none outlives the token that it was made with
  Events events;
  for (const model::TokenId id : ending) {
    events.push_back(end_of(*state.tokens.find(id.value), caller.user));
  }
  return events;
}

std::optional<model::Event> judge_token_use(const State& state,
                                            const model::RecordTokenUse& command,
                                            store::Headroom headroom) {
  const Token* token = state.tokens.find(command.token.value);
  if (token == nullptr || headroom != store::Headroom::kAmple) return std::nullopt;
  const bool is_news =
      !token->used_at.is_set() || command.at >= token->used_at + model::kTokenUseInterval;
  if (!is_news) return std::nullopt;
  return model::TokenUsed{token->id, command.at};
}

std::optional<model::Event> next_expired_token(const State& state, base::Instant now) {
  const auto next = state.token_index.next_to_expire();
  if (!next || next->first > now) return std::nullopt;
  model::TokenId ending = next->second;
  // Those that were made with it have ended by then, too, and go first.
  for (;;) {
    const auto children = state.token_index.made_with(ending);
    if (children.empty()) break;
    ending = children.front();
  }
  return end_of(*state.tokens.find(ending.value), {});
}

}  // namespace gpu_platform::controller
