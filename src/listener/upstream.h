#pragma once

#include <string>

#include "base/result.h"

namespace gpu_platform::listener {

// What a client has shown of itself. The daemon checks it: this process believes nothing.
struct Credential {
  enum class Kind {
    kBearer,       // the text behind "Bearer"
    kCertificate,  // the messages of a TLS handshake in which the client has shown a certificate
  };
  Kind kind = Kind::kBearer;
  std::string secret;   // never logged
  std::string address;  // of the client: "192.0.2.7"
  friend bool operator==(const Credential&, const Credential&) = default;
};

// The way to the daemon. Safe from any thread; returns at once.
class Upstream {
 public:
  virtual ~Upstream() = default;
  // Opens a connection on which the daemon serves HTTP/1.1 (docs/api.md) to the user behind the
  // credential alone. If the credential is refused, the daemon answers the first request with a
  // problem document [401, 429, 503] and closes. The caller owns the descriptor: a non-blocking
  // stream socket. kUnavailable: the daemon is gone or takes no more.
  virtual base::Result<int> open(const Credential& credential) = 0;
};

}  // namespace gpu_platform::listener
