#include "api/identity/identity_authenticator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::api {

using base::ErrorCode;

namespace {

// The user of a certificate is not known before the lookup: all of these share one limit.
constexpr std::uint32_t kUnknownAsker = 65534;

// Does not say which it is.
std::unexpected<base::Error> identity_refused() {
  return base::fail(
      ErrorCode::kUnauthenticated,
      "the credential is not accepted: it has expired, no authority or issuer of this "
      "server has signed it, or it has no user in access.identities");
}

std::string user_of_name(const std::string& name, const IdentityUsers& users) {
  if (const auto found = users.find(name); found != users.end()) return found->second;
  const std::size_t colon = name.find(':');
  const std::size_t at = name.rfind('@');
  const bool has_domain = name.starts_with("email:") || name.starts_with("openid:");
  if (!has_domain || at == std::string::npos || at < colon) return {};
  const auto domain = users.find(fmt::format("{}*{}", name.substr(0, colon + 1), name.substr(at)));
  if (domain == users.end() || domain->second != "*") return {};
  return name.substr(colon + 1, at - colon - 1);
}

}  // namespace

std::optional<std::string> user_of(const std::vector<std::string>& names,
                                   const IdentityUsers& users) {
  std::string found;
  for (const std::string& name : names) {
    std::string user = user_of_name(name, users);
    if (user.empty() || user == found) continue;
    if (!found.empty()) return std::nullopt;
    found = std::move(user);
  }
  if (found.empty()) return std::nullopt;
  return found;
}

bool still_stand(const model::ProvenNames& proven, const TrustedSigners& signers,
                 const IdentityUsers& users) {
  const bool counts = proven.issuer.empty() ? signers.has_authorities
                                            : proven.issuer == signers.issuer &&
                                                  proven.user_claim == signers.user_claim;
  return counts && user_of(proven.names, users) == proven.user;
}

namespace {

// The first of the names that stands for the user.
model::CredentialName credential_name_of(const ProvenIdentity& identity, const std::string& user,
                                         const IdentityUsers& users) {
  const auto named = std::ranges::find_if(
      identity.names, [&](const std::string& name) { return user_of_name(name, users) == user; });
  const auto clean = [](const std::string& text) {
    return model::one_line(text, model::kMaxCredentialNameBytes);
  };
  return {named == identity.names.end() ? std::string() : clean(*named), clean(identity.issuer),
          clean(identity.claim)};
}

}  // namespace

struct IdentityAuthenticator::Shared {
  explicit Shared(Options given) : options(std::move(given)), throttle(options.limits) {}

  const Options options;
  FailureThrottle throttle;

  std::unexpected<base::Error> refuse(const std::string& address, std::string_view why) const {
    if (options.warn) {
      options.warn(
          fmt::format("credential refused address={} why=\"{}\"", address_group(address), why));
    }
    return identity_refused();
  }

  base::Result<Peer> identify(const std::string& address, const ProvenIdentity& identity,
                              model::CredentialName name,
                              const base::Result<host::User>& found) const {
    if (!found && found.error().code != ErrorCode::kNotFound) {
      return base::fail(ErrorCode::kUnavailable,
                        "the user database of the daemon's machine does not answer; try again in a "
                        "moment");
    }
    if (!found) return refuse(address, "its user has no account here");
    if (const std::string why = error_in_user(found->uid, options.users); !why.empty()) {
      return refuse(address, "its user is a system account: " + why);
    }
    Peer peer;
    peer.caller.user = found->name;
    peer.caller.uid = found->uid;
    peer.caller.door = model::Door::kListener;
    peer.gid = found->gid;
    peer.caller.credential_name = std::make_shared<const model::CredentialName>(std::move(name));
    peer.identity = std::make_shared<const ProvenIdentity>(identity);
    return peer;
  }
};

IdentityAuthenticator::IdentityAuthenticator(host::UserDirectory& users, Options options)
    : users_(users), shared_(std::make_shared<Shared>(std::move(options))) {}

IdentityAuthenticator::~IdentityAuthenticator() = default;

void IdentityAuthenticator::authenticate(Credential credential, Done done) const {
  const base::Instant now = shared_->options.clock();
  const std::string& address = credential.address;
  if (!shared_->throttle.may_try(address, now)) {
    return done(base::fail(ErrorCode::kResourceExhausted,
                           "too many wrong credentials came from your address; wait some seconds"));
  }
  auto proven = shared_->options.prove(credential, now);
  if (!proven) {
    shared_->throttle.failed(address, now);
    return done(shared_->refuse(address, proven.error().message));
  }
  // From here on it is not a guess: the site maps it to a user.
  shared_->throttle.succeeded(address, now);
  const auto rule = shared_->options.rule();
  const auto user = user_of(proven->names, *rule);
  if (!user) {
    return done(shared_->refuse(address, fmt::format("{} has no user in access.identities",
                                                     fmt::join(proven->names, ", "))));
  }
  users_.find(*user, kUnknownAsker,
              [shared = shared_, address, name = credential_name_of(*proven, *user, *rule),
               identity = *std::move(proven),
               done = std::move(done)](const base::Result<host::User>& found) {
                done(shared->identify(address, identity, name, found));
              });
}

base::Status IdentityAuthenticator::check_still_holds(const Peer& peer) const {
  const ProvenIdentity& identity = *peer.identity;
  const auto user = user_of(identity.names, *shared_->options.rule());
  const base::Instant now = shared_->options.clock();
  const bool holds = user == peer.caller.user && now < identity.not_after &&
                     (!identity.is_still_signed || identity.is_still_signed(now));
  if (!holds) return identity_refused();
  return {};
}

void Authenticators::authenticate(Credential credential, Done done) const {
  // A token of an issuer has three parts; all other texts are, or are meant as, tokens of ours.
  const bool is_token = credential.kind == Credential::Kind::kBearer &&
                        std::ranges::count(credential.secret, '.') != 2;
  (is_token ? tokens_ : identities_).authenticate(std::move(credential), std::move(done));
}

base::Status Authenticators::check_still_holds(const Peer& peer) const {
  return (peer.identity == nullptr ? tokens_ : identities_).check_still_holds(peer);
}

}  // namespace gpu_platform::api
