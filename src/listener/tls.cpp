#include "listener/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::listener {

namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

std::unexpected<base::Error> refuse_pem(std::string_view what) {
  char reason[256] = "";
  const unsigned long code = ERR_peek_last_error();
  if (code != 0) ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  return base::fail(base::ErrorCode::kFailedPrecondition, fmt::format("{}: {}", what, reason));
}

Bio reader_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key with a passphrase is refused, rather than asked for.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

base::Status use_chain(SSL_CTX& context, const std::string& text) {
  const Bio reader = reader_of(text);
  const Certificate own(PEM_read_bio_X509(reader.get(), nullptr, no_passphrase, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(&context, own.get()) != 1) {
    return refuse_pem("the certificate cannot be used");
  }
  while (Certificate next{PEM_read_bio_X509(reader.get(), nullptr, no_passphrase, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(&context, next.get()) != 1) {
      return refuse_pem("the certificate's chain cannot be used");
    }
    (void)next.release();
  }
  ERR_clear_error();
  return {};
}

base::Status use_key(SSL_CTX& context, const std::string& text) {
  const Bio reader = reader_of(text);
  const Key key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_passphrase, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(&context, key.get()) != 1 ||
      SSL_CTX_check_private_key(&context) != 1) {
    return refuse_pem("the key cannot be used");
  }
  return {};
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void* wanted) {
  const auto& name = *static_cast<const std::string*>(wanted);
  for (unsigned at = 0; at < offered_size; at += offered[at] + 1U) {
    const unsigned size = offered[at];
    if (at + 1 + size > offered_size) break;
    if (size != name.size() || std::memcmp(offered + at + 1, name.data(), size) != 0) continue;
    *out = offered + at + 1;
    *out_size = static_cast<unsigned char>(size);
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int take_any_certificate(int, X509_STORE_CTX*) {
  return 1;
}

}  // namespace

base::Status Tls::use(const std::string& chain, const std::string& key) {
  const Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return refuse_pem("TLS cannot be used");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
  // A client of OpenSSL 3.2 or later would compress its certificate (RFC 8879), and the daemon,
  // which checks the handshake, reads plain ones alone.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
#endif
  // An idle connection keeps no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, const_cast<std::string*>(&protocol_));
  if (asks_) SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, take_any_certificate);
  TRY(use_chain(*context, chain));
  TRY(use_key(*context, key));
  const std::lock_guard lock(mutex_);
  context_ = context;
  return {};
}

Tls::Context Tls::current() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace gpu_platform::listener
