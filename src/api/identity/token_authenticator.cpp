#include "api/identity/token_authenticator.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/identity/token_text.h"

namespace gpu_platform::api {

using base::ErrorCode;

namespace {

// Does not say which it is.
std::unexpected<base::Error> refused() {
  return base::fail(ErrorCode::kUnauthenticated,
                    "the credential is not valid: it is unknown, has expired or was revoked");
}

base::Result<Peer> peer_of(const model::Token& token, const host::User& user) {
  Peer peer;
  peer.caller.user = user.name;
  peer.caller.uid = user.uid;
  peer.caller.door = model::Door::kListener;
  peer.caller.credential = token.id.value;
  peer.caller.credential_name =
      std::make_shared<const model::CredentialName>(model::CredentialName{token.name, {}, {}});
  peer.caller.max_role = token.role;
  peer.caller.role = std::min(peer.caller.role, token.role);
  peer.gid = user.gid;
  return peer;
}

}  // namespace

struct TokenAuthenticator::Shared {
  explicit Shared(Options given) : options(std::move(given)), throttle(options.limits) {}

  const Options options;
  FailureThrottle throttle;

  void warn(const Credential& credential, std::string_view why) const {
    if (!options.warn) return;
    options.warn(fmt::format("credential refused address={} why=\"{}\"",
                             address_group(credential.address), why));
  }

  bool may_hold(const model::Token& token) const {
    return !token.proven || (options.still_stand && options.still_stand(*token.proven));
  }

  // The user may have been removed or renumbered since the token was made.
  base::Result<Peer> identify(const Credential& credential, const model::Token& token,
                              const base::Result<host::User>& found) {
    if (!found && found.error().code != ErrorCode::kNotFound) {
      return base::fail(ErrorCode::kUnavailable,
                        "the user database of the daemon's machine does not answer; try again in a "
                        "moment");
    }
    const auto refuse = [&](std::string_view why) {
      warn(credential, fmt::format("token {}: {}", token.id.value, why));
      return refused();
    };
    if (!found) return refuse("its user has no account here");
    if (found->uid != token.uid) return refuse("its user has another uid now");
    if (const std::string why = error_in_user(found->uid, options.users); !why.empty()) {
      return refuse("its user is a system account: " + why);
    }
    return peer_of(token, *found);
  }
};

TokenAuthenticator::TokenAuthenticator(const SnapshotSource& snapshots, host::UserDirectory& users,
                                       CommandSink& commands, TokenUses& uses, Options options)
    : snapshots_(snapshots),
      users_(users),
      commands_(commands),
      uses_(uses),
      shared_(std::make_shared<Shared>(std::move(options))) {}

TokenAuthenticator::~TokenAuthenticator() = default;

base::Result<model::Token> TokenAuthenticator::find(const Credential& credential,
                                                    base::Instant now) const {
  const auto refuse = [&](std::string_view why) {
    shared_->warn(credential, why);
    return refused();
  };
  if (credential.kind != Credential::Kind::kBearer) return refuse("certificates are not accepted");
  const auto text = parse_token_text(credential.secret);
  if (!text) return refuse("not a token");
  const auto snapshot = snapshots_.snapshot();
  const model::Token* token = snapshot->tokens.find(text->id.value);
  // A hash is made and compared either way.
  const std::string none(model::kTokenHashBytes, '\0');
  const bool is_same = is_same_hash(hash_of(text->secret), token == nullptr ? none : token->hash);
  if (token == nullptr || !is_same) return refuse("no such token");
  if (is_expired(*token, now)) return refuse(fmt::format("token {}: expired", token->id.value));
  if (!shared_->may_hold(*token)) {
    return refuse(
        fmt::format("token {}: access.identities has no rule any more for the names that "
                    "it was made with",
                    token->id.value));
  }
  return *token;
}

void TokenAuthenticator::authenticate(Credential credential, Done done) const {
  const base::Instant now = shared_->options.clock();
  if (!shared_->throttle.may_try(credential.address, now)) {
    return done(base::fail(ErrorCode::kResourceExhausted,
                           "too many wrong credentials came from your address; wait some seconds"));
  }
  const auto token = find(credential, now);
  if (!token) {
    shared_->throttle.failed(credential.address, now);
    return done(std::unexpected(token.error()));
  }
  shared_->throttle.succeeded(credential.address, now);
  credential.secret.clear();
  users_.find(token->user, token->uid,
              [shared = shared_, credential = std::move(credential), token = *token,
               done = std::move(done)](const base::Result<host::User>& found) {
                done(shared->identify(credential, token, found));
              });
}

base::Status TokenAuthenticator::check_still_holds(const Peer& peer) const {
  const auto snapshot = snapshots_.snapshot();
  const model::Token* token = snapshot->tokens.find(peer.caller.credential);
  const base::Instant now = shared_->options.clock();
  if (token == nullptr || token->uid != peer.caller.uid || is_expired(*token, now) ||
      !shared_->may_hold(*token)) {
    return refused();
  }
  note_use(*token, now);
  return {};
}

// What becomes of it does not matter to the request.
void TokenAuthenticator::note_use(const model::Token& token, base::Instant now) const {
  if (!uses_.note(token, now)) return;
  commands_.submit({{}, model::RecordTokenUse{token.id, uses_.last_of(token)}},
                   [](const base::Result<model::CommandReply>&) {});
}

}  // namespace gpu_platform::api
