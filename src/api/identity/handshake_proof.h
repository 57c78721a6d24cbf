#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// What a client proves when it shows a certificate in a TLS 1.3 handshake (RFC 8446, section 4.4).
//
// The listener passes the handshake's messages on as they were. Here is checked that the client's
// signature covers them, that the server in them is this one, and that an authority of the site has
// signed the client's certificate. So a captured listener can act for no client whose handshake it
// has not seen, and a handshake with another server is worth nothing here.

namespace gpu_platform::api {

// The authorities that sign the certificates of clients. Safe from any thread.
class ClientAuthorities {
 public:
  // kInvalidArgument: the text has no certificate, or one that cannot be read.
  static base::Result<ClientAuthorities> from_pem(const std::string& text);

 private:
  friend class ClientChain;
  std::shared_ptr<void> store_;  // X509_STORE
};

class ClientChain;  // a client's certificate with those that came with it

struct ProvenCertificate {
  // "cn:ada", "email:ada@example.org", "dns:build.example.org", "uri:spiffe://example.org/ci"
  std::vector<std::string> names;
  base::Instant not_after;  // of it and of those that have signed it
  std::shared_ptr<const ClientChain> chain;
};

// Returns the end of the first of its chain that ends; nothing: none of the authorities has signed
// it, or it does not hold at that time.
std::optional<base::Instant> end_of_chain(const ClientChain& chain,
                                          const ClientAuthorities& authorities, base::Instant now);

// `messages`: those of the handshake from ClientHello to the client's CertificateVerify, each with
// its header; more may follow. `is_ours` is asked with the SHA-256 of the certificate that the
// server showed (DER). kUnauthenticated: nothing is proven; the message says what is wrong, for the
// site's log alone.
base::Result<ProvenCertificate> check_handshake(
    std::string_view messages, const ClientAuthorities& authorities,
    const std::function<bool(std::string_view digest)>& is_ours, base::Instant now);

// The SHA-256 of the first certificate of a PEM text, as DER; empty: there is none.
std::string certificate_digest(const std::string& pem);

}  // namespace gpu_platform::api
