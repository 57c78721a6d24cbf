#pragma once

#include <functional>
#include <string>

#include "api/peer.h"
#include "base/result.h"

namespace gpu_platform::api {

// What a client from outside this machine shows of itself.
struct Credential {
  enum class Kind {
    kBearer,       // the text behind "Authorization: Bearer"
    kCertificate,  // the messages of a TLS handshake in which the client has shown a certificate
  };
  Kind kind = Kind::kBearer;
  std::string secret;   // never logged
  std::string address;  // of the client: "192.0.2.7", for the limit of failures and for log lines
};

// Finds the user behind a credential. Safe from any thread.
class Authenticator {
 public:
  using Done = std::function<void(base::Result<Peer>)>;

  virtual ~Authenticator() = default;
  // Calls `done` once, at once or on another thread: with the user that the credential is mapped
  // to, or with kUnauthenticated (unknown, expired or revoked: the message does not say which),
  // kResourceExhausted (too many failures from the address) or kUnavailable (the user database does
  // not answer). The user is never root, and never below the site's lowest uid for jobs.
  virtual void authenticate(Credential credential, Done done) const = 0;
  // Returns kUnauthenticated when the credential that `peer` came with holds no longer. Called for
  // each request: costs O(log tokens), and never waits.
  virtual base::Status check_still_holds(const Peer& peer) const = 0;
};

}  // namespace gpu_platform::api
