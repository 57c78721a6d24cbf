#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "api/identity/handshake_proof.h"
#include "api/peer.h"

namespace gpu_platform::api {

// What client certificates prove here. Safe from any thread. It outlives what it has proven, which
// asks it whether the authorities still count.
class CertificateProver {
 public:
  // Takes authorities from now on, also for what was proven before. Without any, every certificate
  // is refused.
  void trust(ClientAuthorities authorities);
  // Takes the server's own certificate (PEM). Handshakes that showed an earlier one still count:
  // their connections may be open.
  void note_own(const std::string& pem);

  // `messages`: those of the handshake. Errors are those of check_handshake().
  base::Result<ProvenIdentity> prove(std::string_view messages, base::Instant now) const;

 private:
  struct Trusted {
    std::optional<ClientAuthorities> authorities;
    std::uint64_t turn = 0;  // grows with each trust()
  };
  Trusted trusted() const;
  std::function<bool(base::Instant)> asking_again(const ProvenCertificate& proven,
                                                  std::uint64_t turn) const;

  mutable std::mutex mutex_;
  Trusted trusted_;
  std::set<std::string, std::less<>> own_;  // digests of the server's certificates since the start
};

}  // namespace gpu_platform::api
