#include "api/identity/certificate_prover.h"

#include <utility>

namespace gpu_platform::api {

void CertificateProver::trust(ClientAuthorities authorities) {
  const std::lock_guard lock(mutex_);
  authorities_ = std::move(authorities);
}

void CertificateProver::note_own(const std::string& pem) {
  std::string digest = certificate_digest(pem);
  const std::lock_guard lock(mutex_);
  own_.insert(std::move(digest));
}

base::Result<ProvenIdentity> CertificateProver::prove(std::string_view messages,
                                                      base::Instant now) const {
  std::optional<ClientAuthorities> trusted;
  {
    const std::lock_guard lock(mutex_);
    trusted = authorities_;
  }
  if (!trusted) {
    return base::fail(base::ErrorCode::kUnauthenticated, "certificates are not accepted");
  }
  const auto is_ours = [this](std::string_view digest) {
    const std::lock_guard lock(mutex_);
    return own_.contains(digest);
  };
  TRY_ASSIGN(ProvenCertificate proven, check_handshake(messages, *trusted, is_ours, now));
  return ProvenIdentity{
      .names = std::move(proven.names), .not_after = proven.not_after, .ends_at = proven.not_after};
}

}  // namespace gpu_platform::api
