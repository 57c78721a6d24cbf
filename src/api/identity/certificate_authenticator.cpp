#include "api/identity/certificate_authenticator.h"

#include <utility>

#include <fmt/format.h>

namespace gpu_platform::api {

using base::ErrorCode;

namespace {

constexpr std::string_view kEmail = "email:";
// Whom a certificate stands for is not known before the lookup: all of these share one limit.
constexpr std::uint32_t kUnknownAsker = 65534;

// Does not say which it is.
std::unexpected<base::Error> certificate_refused() {
  return base::fail(
      ErrorCode::kUnauthenticated,
      "the client certificate is not accepted: no authority of this server has signed "
      "it, it has expired, or it stands for no user");
}

std::string user_of_name(const std::string& name, const CertificateUsers& users) {
  if (const auto found = users.find(name); found != users.end()) return found->second;
  const std::size_t at = name.rfind('@');
  if (!name.starts_with(kEmail) || at == std::string::npos) return {};
  const auto domain = users.find(fmt::format("{}*{}", kEmail, name.substr(at)));
  if (domain == users.end() || domain->second != "*") return {};
  return name.substr(kEmail.size(), at - kEmail.size());
}

}  // namespace

std::optional<std::string> user_of(const std::vector<std::string>& names,
                                   const CertificateUsers& users) {
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

struct CertificateAuthenticator::Shared {
  explicit Shared(Options given) : options(std::move(given)), throttle(options.limits) {}

  const Options options;
  FailureThrottle throttle;
  std::mutex mutex;
  std::optional<ClientAuthorities> authorities;
  std::set<std::string> own;  // digests of the server's certificates since the start

  std::unexpected<base::Error> refuse(const std::string& address, std::string_view why) {
    throttle.failed(address, options.clock());
    if (options.warn) {
      options.warn(
          fmt::format("credential refused address={} why=\"{}\"", address_group(address), why));
    }
    return certificate_refused();
  }

  base::Result<CertificatePeer> prove(const Credential& credential, base::Instant now) {
    std::optional<ClientAuthorities> trusted;
    {
      const std::lock_guard lock(mutex);
      trusted = authorities;
    }
    if (!trusted) {
      return base::fail(ErrorCode::kUnauthenticated, "certificates are not accepted");
    }
    const auto is_ours = [this](std::string_view digest) {
      const std::lock_guard lock(mutex);
      return own.contains(std::string(digest));
    };
    TRY_ASSIGN(ProvenCertificate proven,
               check_handshake(credential.secret, *trusted, is_ours, now));
    return CertificatePeer{std::move(proven.names), proven.not_after};
  }

  base::Result<Peer> identify(const std::string& address, const CertificatePeer& certificate,
                              const base::Result<host::User>& found) {
    if (!found && found.error().code != ErrorCode::kNotFound) {
      return base::fail(ErrorCode::kUnavailable,
                        "the user database of the daemon's machine does not answer; try again in a "
                        "moment");
    }
    if (!found) return refuse(address, "its user has no account here");
    if (found->uid == 0 || found->uid < options.min_uid) {
      return refuse(address, "its user is a system account");
    }
    throttle.succeeded(address, options.clock());
    Peer peer;
    peer.caller.user = found->name;
    peer.caller.uid = found->uid;
    peer.caller.door = model::Door::kListener;
    peer.gid = found->gid;
    peer.certificate = std::make_shared<const CertificatePeer>(certificate);
    return peer;
  }
};

CertificateAuthenticator::CertificateAuthenticator(host::UserDirectory& users, Options options)
    : users_(users), shared_(std::make_shared<Shared>(std::move(options))) {}

CertificateAuthenticator::~CertificateAuthenticator() = default;

void CertificateAuthenticator::trust(ClientAuthorities authorities) {
  const std::lock_guard lock(shared_->mutex);
  shared_->authorities = std::move(authorities);
}

void CertificateAuthenticator::note_own(const std::string& pem) {
  std::string digest = certificate_digest(pem);
  const std::lock_guard lock(shared_->mutex);
  shared_->own.insert(std::move(digest));
}

void CertificateAuthenticator::authenticate(Credential credential, Done done) const {
  const base::Instant now = shared_->options.clock();
  const std::string& address = credential.address;
  if (!shared_->throttle.may_try(address, now)) {
    return done(base::fail(ErrorCode::kResourceExhausted,
                           "too many wrong credentials came from your address; wait some seconds"));
  }
  auto proven = shared_->prove(credential, now);
  if (!proven) return done(shared_->refuse(address, proven.error().message));
  const auto user = user_of(proven->names, *shared_->options.rule());
  if (!user) {
    return done(shared_->refuse(address, fmt::format("certificate of {}: it stands for no user",
                                                     fmt::join(proven->names, ", "))));
  }
  users_.find(*user, kUnknownAsker,
              [shared = shared_, address, certificate = *std::move(proven),
               done = std::move(done)](const base::Result<host::User>& found) {
                done(shared->identify(address, certificate, found));
              });
}

base::Status CertificateAuthenticator::check_still_holds(const Peer& peer) const {
  const CertificatePeer& certificate = *peer.certificate;
  const auto user = user_of(certificate.names, *shared_->options.rule());
  const bool holds = user == peer.caller.user && shared_->options.clock() < certificate.not_after;
  if (!holds) return certificate_refused();
  return {};
}

}  // namespace gpu_platform::api
