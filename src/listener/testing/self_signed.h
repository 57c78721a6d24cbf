#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

// Certificates for tests.

namespace gpu_platform::listener {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

inline std::string text_of_bio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

// For that name, valid for so many seconds from now; `age_s` seconds old.
inline SelfSigned self_signed(const std::string& name, long valid_s = 86'400 * 365,
                              long age_s = 60) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -age_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), valid_s);
  X509_set_pubkey(certificate, key);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key, EVP_sha256());
  BIO* const certificate_text = BIO_new(BIO_s_mem());
  BIO* const key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  SelfSigned made{text_of_bio(certificate_text), text_of_bio(key_text)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace gpu_platform::listener
