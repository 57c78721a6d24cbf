#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "api/identity/authenticator.h"
#include "api/identity/failure_throttle.h"
#include "api/identity/handshake_proof.h"
#include "host/user_directory.h"
#include "os/clock.h"

namespace gpu_platform::api {

// Whom the names of certificates stand for: "email:ada@example.org" -> "ada". The name
// "email:*@example.org" -> "*" stands for all of that domain, each as the user before the '@'.
using CertificateUsers = std::map<std::string, std::string, std::less<>>;

// Returns nothing if no name stands for a user, or two for different ones.
std::optional<std::string> user_of(const std::vector<std::string>& names,
                                   const CertificateUsers& users);

// Client certificates as credentials (docs/security.md): proven by the messages of the TLS
// handshake, mapped by the site's rule alone, never to root or a system account.
//
// `users` outlives it.
class CertificateAuthenticator final : public Authenticator {
 public:
  struct Options {
    std::uint32_t min_uid = 1000;  // of users that certificates may stand for (execution.min_uid)
    FailureThrottle::Limits limits = {};
    std::function<base::Instant()> clock = os::wall_now;
    // The site's rule in force. Safe from any thread.
    std::function<std::shared_ptr<const CertificateUsers>()> rule;
    // Takes one line for the administrator about a refused certificate. Null: no lines.
    std::function<void(const std::string& line)> warn;
  };
  CertificateAuthenticator(host::UserDirectory& users, Options options);
  ~CertificateAuthenticator() override;

  // Takes authorities from now on. Without any, every certificate is refused.
  void trust(ClientAuthorities authorities);
  // Takes the server's own certificate (PEM). Handshakes that showed an earlier one still count:
  // their connections may be open.
  void note_own(const std::string& pem);

  void authenticate(Credential credential, Done done) const override;
  base::Status check_still_holds(const Peer& peer) const override;

 private:
  struct Shared;  // with answers of the user database that are on their way

  host::UserDirectory& users_;
  std::shared_ptr<Shared> shared_;
};

// Each kind of credential to what knows it.
class Authenticators final : public Authenticator {
 public:
  // Both outlive it.
  Authenticators(const Authenticator& tokens, const Authenticator& certificates)
      : tokens_(tokens), certificates_(certificates) {}

  void authenticate(Credential credential, Done done) const override {
    const bool is_bearer = credential.kind == Credential::Kind::kBearer;
    (is_bearer ? tokens_ : certificates_).authenticate(std::move(credential), std::move(done));
  }
  base::Status check_still_holds(const Peer& peer) const override {
    return (peer.certificate == nullptr ? tokens_ : certificates_).check_still_holds(peer);
  }

 private:
  const Authenticator& tokens_;
  const Authenticator& certificates_;
};

}  // namespace gpu_platform::api
