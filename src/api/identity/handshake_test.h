#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <functional>
#include <memory>
#include <string>

// Certificates, and real handshakes in memory in which a client shows one.

namespace gpu_platform::api {

struct TestCertificate {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
  std::string pem() const;
};

struct TestCertificateOptions {
  std::string key = "P-256";           // or "RSA", "ED25519"
  std::string alternative_names = {};  // as in OpenSSL's configuration: "email:a@b,DNS:c"
  std::string extended_use = "clientAuth";
  bool is_authority = false;
  const TestCertificate* issuer = nullptr;  // null: itself
  long begins_in_s = -60;
  long ends_in_s = 3600;
};
TestCertificate make_certificate(const std::string& common_name,
                                 const TestCertificateOptions& options = {});

struct TestHandshake {
  std::string server_groups = "X25519:P-256";  // another than the client offers first: a retry
  std::string ciphers = "TLS_AES_128_GCM_SHA256";
};
// Returns the messages of the handshake in their order.
std::string handshake_of(const TestCertificate& server, const TestCertificate& client,
                         const TestHandshake& how = {});

}  // namespace gpu_platform::api
