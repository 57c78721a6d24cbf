#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "listener/link.h"

namespace gpu_platform::listener {

struct CertificateFiles {
  std::string certificate;  // PEM: the server's own, then those of its issuers
  std::string key;          // PEM
};

struct CheckedCertificate {
  CertificateTexts texts;
  base::Instant ends_at;
  std::string warning;  // it has ended, or ends soon; empty: none
};

// Reads both files and checks them: the key is closed to other users and fits the certificate. An
// error names the key of the configuration and what helps.
base::Result<CheckedCertificate> read_certificate(const CertificateFiles& files, base::Instant now);

// Changes when one of the files does, also behind links. Costs two system calls.
std::string stamp_of(const CertificateFiles& files);

}  // namespace gpu_platform::listener
