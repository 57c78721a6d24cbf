#include "api/identity/certificate_prover.h"

#include <utility>

namespace gpu_platform::api {

void CertificateProver::trust(ClientAuthorities authorities) {
  const std::lock_guard lock(mutex_);
  trusted_ = {std::move(authorities), trusted_.turn + 1};
}

void CertificateProver::note_own(const std::string& pem) {
  std::string digest = certificate_digest(pem);
  const std::lock_guard lock(mutex_);
  own_.insert(std::move(digest));
}

CertificateProver::Trusted CertificateProver::trusted() const {
  const std::lock_guard lock(mutex_);
  return trusted_;
}

// The chain is checked once for each set of authorities, not for each request.
std::function<bool(base::Instant)> CertificateProver::asking_again(const ProvenCertificate& proven,
                                                                   std::uint64_t turn) const {
  struct Known {
    std::mutex mutex;
    std::uint64_t turn = 0;
    std::optional<base::Instant> end;  // by these authorities; nothing: refused by them
  };
  const auto known = std::make_shared<Known>();
  known->turn = turn;
  known->end = proven.not_after;
  return [this, known, chain = proven.chain](base::Instant now) {
    const Trusted trusted = this->trusted();
    const std::lock_guard lock(known->mutex);
    if (known->turn != trusted.turn) {
      known->turn = trusted.turn;
      known->end = trusted.authorities ? end_of_chain(*chain, *trusted.authorities, now)
                                       : std::optional<base::Instant>();
    }
    return known->end && now < *known->end;
  };
}

base::Result<ProvenIdentity> CertificateProver::prove(std::string_view messages,
                                                      base::Instant now) const {
  const Trusted trusted = this->trusted();
  if (!trusted.authorities) {
    return base::fail(base::ErrorCode::kUnauthenticated, "certificates are not accepted");
  }
  const auto is_ours = [this](std::string_view digest) {
    const std::lock_guard lock(mutex_);
    return own_.contains(digest);
  };
  TRY_ASSIGN(ProvenCertificate proven,
             check_handshake(messages, *trusted.authorities, is_ours, now));
  auto is_still_signed = asking_again(proven, trusted.turn);
  return ProvenIdentity{.names = std::move(proven.names),
                        .not_after = proven.not_after,
                        .ends_at = proven.not_after,
                        .is_still_signed = std::move(is_still_signed)};
}

}  // namespace gpu_platform::api
