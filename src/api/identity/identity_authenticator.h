#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/identity/authenticator.h"
#include "api/identity/failure_throttle.h"
#include "host/user_directory.h"
#include "model/token.h"
#include "model/user_range.h"
#include "os/clock.h"

namespace gpu_platform::api {

// The users of proven names: "email:ada@example.org" -> "ada". "email:*@example.org" -> "*" maps
// all names of that domain to the user before the '@', and so does "openid:*@example.org".
using IdentityUsers = std::map<std::string, std::string, std::less<>>;

// Returns nothing if no name stands for a user, or two for different ones.
std::optional<std::string> user_of(const std::vector<std::string>& names,
                                   const IdentityUsers& users);

// Whose names count, beside the rule.
struct TrustedSigners {
  bool has_authorities = false;  // of client certificates
  std::string issuer;            // of OpenID Connect tokens; empty: none
  std::string user_claim;
};
// Returns whether the names, of a signer that still counts, stand for the same user as they did.
bool still_stand(const model::ProvenNames& proven, const TrustedSigners& signers,
                 const IdentityUsers& users);

// Credentials that others have signed (docs/security.md): client certificates and the tokens of an
// OpenID Connect issuer. What they prove is mapped to a user by the site's rule alone, never to
// root or a system account.
//
// `users` outlives it.
class IdentityAuthenticator final : public Authenticator {
 public:
  struct Options {
    model::UserRange users = {};  // that they may stand for
    FailureThrottle::Limits limits = {};
    std::function<base::Instant()> clock = os::wall_now;
    // What the credential proves; kUnauthenticated with a reason for the log. From any thread.
    std::function<base::Result<ProvenIdentity>(const Credential&, base::Instant)> prove;
    // The site's rule in force. Safe from any thread.
    std::function<std::shared_ptr<const IdentityUsers>()> rule;
    // Takes one line for the administrator about a refused credential. Null: no lines.
    std::function<void(const std::string& line)> warn;
  };
  IdentityAuthenticator(host::UserDirectory& users, Options options);
  ~IdentityAuthenticator() override;

  void authenticate(Credential credential, Done done) const override;
  base::Status check_still_holds(const Peer& peer) const override;

 private:
  struct Shared;  // with answers of the user database that are on their way

  host::UserDirectory& users_;
  std::shared_ptr<Shared> shared_;
};

// Each credential to what knows its kind.
class Authenticators final : public Authenticator {
 public:
  // Both outlive it.
  Authenticators(const Authenticator& tokens, const Authenticator& identities)
      : tokens_(tokens), identities_(identities) {}

  void authenticate(Credential credential, Done done) const override;
  base::Status check_still_holds(const Peer& peer) const override;

 private:
  const Authenticator& tokens_;
  const Authenticator& identities_;
};

}  // namespace gpu_platform::api
