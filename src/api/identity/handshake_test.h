#pragma once

#include <string>

#include "http/testing/certificates.h"

// Real handshakes in memory in which a client shows one.

namespace gpu_platform::api {

using http::TestCertificate;
using TestCertificateOptions = http::CertificateOptions;

// A client's certificate for this name, valid for an hour, where the options set nothing else.
TestCertificate make_certificate(const std::string& common_name,
                                 TestCertificateOptions options = {});

struct TestHandshake {
  std::string server_groups = "X25519:P-256";  // another than the client offers first: a retry
  std::string ciphers = "TLS_AES_128_GCM_SHA256";
};
// Returns the messages of the handshake in their order.
std::string handshake_of(const TestCertificate& server, const TestCertificate& client,
                         const TestHandshake& how = {});

}  // namespace gpu_platform::api
