#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

// Certificates for tests, made in memory.

namespace gpu_platform::http {

struct TestCertificate {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  std::string pem() const;
  std::string key_pem() const;
};

// The names of a server on this machine.
inline constexpr const char* kThisMachine = "IP:127.0.0.1,DNS:localhost";

struct CertificateOptions {
  std::string common_name = {};        // empty: "test N", another each time
  std::string key = "P-256";           // or "RSA", "ED25519"
  std::string alternative_names = {};  // as in OpenSSL's configuration: "email:a@b,DNS:c"
  std::string extended_use = {};       // "clientAuth"; empty: any
  bool is_authority = false;
  const TestCertificate* issuer = nullptr;  // null: it signs itself
  long begins_in_s = -3600;
  long ends_in_s = 365 * 86'400;
};

TestCertificate make_certificate(const CertificateOptions& options = {});

// An authority that signs itself.
TestCertificate make_authority();

}  // namespace gpu_platform::http
