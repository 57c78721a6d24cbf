#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/core_access.h"
#include "api/identity/authenticator.h"
#include "api/identity/failure_throttle.h"
#include "api/identity/token_uses.h"
#include "model/user_range.h"
#include "os/clock.h"

namespace gpu_platform::api {

// Tokens as credentials (docs/security.md). The id in the text finds the token in the published
// snapshot, and hashes are compared in constant time, so an answer tells nothing of a secret.
//
// `snapshots`, `users`, `commands` and `uses` outlive it.
class TokenAuthenticator final : public Authenticator {
 public:
  struct Options {
    model::UserRange users = {};  // that may have tokens
    FailureThrottle::Limits limits = {};
    std::function<base::Instant()> clock = os::wall_now;
    // Whether the names still stand for the user that they stood for, by the site's rule in force;
    // asked at each look. From any thread. Null: none do.
    std::function<bool(const model::ProvenNames&)> still_stand = {};
    // Takes one line for the administrator about a refused credential. Null: no lines.
    std::function<void(const std::string& line)> warn;
  };
  TokenAuthenticator(const SnapshotSource& snapshots, host::UserDirectory& users,
                     CommandSink& commands, TokenUses& uses, Options options);
  ~TokenAuthenticator() override;

  void authenticate(Credential credential, Done done) const override;
  base::Status check_still_holds(const Peer& peer) const override;

 private:
  struct Shared;  // with answers of the user database that are on their way

  base::Result<model::Token> find(const Credential& credential, base::Instant now) const;
  void note_use(const model::Token& token, base::Instant now) const;

  const SnapshotSource& snapshots_;
  host::UserDirectory& users_;
  CommandSink& commands_;
  TokenUses& uses_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace gpu_platform::api
