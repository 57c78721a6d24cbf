#include "http/testing/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <atomic>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::http {

namespace {

template <class Write>
std::string in_pem(Write&& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  CHECK(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

std::shared_ptr<EVP_PKEY> new_key(const std::string& kind) {
  EVP_PKEY* const key = kind == "RSA"       ? EVP_RSA_gen(2048)
                        : kind == "ED25519" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                            : EVP_EC_gen(kind.c_str());
  CHECK(key != nullptr);
  return {key, EVP_PKEY_free};
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

std::string TestCertificate::pem() const {
  return in_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
}

std::string TestCertificate::key_pem() const {
  return in_pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

TestCertificate make_certificate(const CertificateOptions& options) {
  static std::atomic<long> serial{1};
  const long number = serial++;
  TestCertificate made{{X509_new(), X509_free}, new_key(options.key)};
  X509* const certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), number);
  X509_gmtime_adj(X509_getm_notBefore(certificate), options.begins_in_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), options.ends_in_s);
  X509_set_pubkey(certificate, made.key.get());
  const std::string name =
      options.common_name.empty() ? fmt::format("test {}", number) : options.common_name;
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const TestCertificate& signer = options.issuer == nullptr ? made : *options.issuer;
  X509* const issuer = signer.certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  add_extension(certificate, issuer, NID_basic_constraints,
                options.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  add_extension(certificate, issuer, NID_ext_key_usage, options.extended_use);
  add_extension(certificate, issuer, NID_subject_alt_name, options.alternative_names);
  const bool is_edwards = EVP_PKEY_get_base_id(signer.key.get()) == EVP_PKEY_ED25519;
  CHECK(X509_sign(certificate, signer.key.get(), is_edwards ? nullptr : EVP_sha256()) > 0);
  return made;
}

TestCertificate make_authority() {
  return make_certificate({.is_authority = true});
}

}  // namespace gpu_platform::http
