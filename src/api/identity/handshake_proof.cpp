#include "api/identity/handshake_proof.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <utility>

namespace gpu_platform::api {

namespace {

struct FreeOpenSsl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, X509_free); }
  void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <class Type>
using Owned = std::unique_ptr<Type, FreeOpenSsl>;

constexpr std::size_t kMaxChain = 10;
constexpr std::size_t kMaxNames = 64;
constexpr int kSecurityLevel = 2;  // keys and hashes of at least 112 bits

std::unexpected<base::Error> unproven(std::string why) {
  return base::fail(base::ErrorCode::kUnauthenticated, "certificate: " + std::move(why));
}

// RFC 8446, section 4.
enum class Handshake : unsigned char {
  kClientHello = 1,
  kServerHello = 2,
  kEncryptedExtensions = 8,
  kCertificate = 11,
  kCertificateRequest = 13,
  kCertificateVerify = 15,
  kFinished = 20,
  kMessageHash = 254,
};

// Reads numbers and vectors of TLS; what is missing reads as nothing and is remembered.
class TlsReader {
 public:
  explicit TlsReader(std::string_view bytes) : rest_(bytes) {}

  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (const char c : take(bytes)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      is_good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view vector(std::size_t bytes_of_size) { return take(number(bytes_of_size)); }
  bool is_good() const { return is_good_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

struct HandshakeMessage {
  std::string_view whole;  // with its header
  std::string_view body;
};

// The messages one after the other.
class HandshakeReader {
 public:
  explicit HandshakeReader(std::string_view bytes) : bytes_(bytes) {}

  // Nothing if the next message is of another kind.
  std::optional<HandshakeMessage> next(Handshake kind) {
    TlsReader reader(bytes_.substr(at_));
    if (reader.number(1) != static_cast<std::size_t>(kind)) return std::nullopt;
    const std::string_view body = reader.vector(3);
    if (!reader.is_good()) return std::nullopt;
    const HandshakeMessage message{bytes_.substr(at_, body.size() + 4), body};
    at_ += message.whole.size();
    return message;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::string digest_of(const EVP_MD* algorithm, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, algorithm, nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

struct ServerHello {
  bool is_retry = false;
  const EVP_MD* hash = nullptr;  // null: of no cipher of TLS 1.3
};

ServerHello read_server_hello(std::string_view body) {
  // The hash of "HelloRetryRequest" in the place of a random number says that it is one.
  static const std::string retry = digest_of(EVP_sha256(), "HelloRetryRequest");
  TlsReader reader(body);
  reader.take(2);
  ServerHello hello;
  hello.is_retry = reader.take(32) == retry;
  reader.vector(1);
  const std::size_t cipher = reader.number(2);
  if (cipher == 0x1302) hello.hash = EVP_sha384();
  if (cipher == 0x1301 || cipher == 0x1303) hello.hash = EVP_sha256();
  return hello;
}

// The certificates of a message, as DER; empty if it is not right.
std::vector<std::string_view> read_chain(std::string_view body) {
  TlsReader reader(body);
  const bool has_context = !reader.vector(1).empty();
  TlsReader list(reader.vector(3));
  std::vector<std::string_view> chain;
  while (!list.is_at_end() && chain.size() < kMaxChain) {
    chain.push_back(list.vector(3));
    list.vector(2);
  }
  const bool is_good =
      reader.is_good() && reader.is_at_end() && list.is_good() && list.is_at_end() && !has_context;
  return is_good ? chain : std::vector<std::string_view>();
}

Owned<X509> parse_certificate(std::string_view der) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* at = begin;
  Owned<X509> certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  return at == begin + der.size() ? std::move(certificate) : nullptr;
}

// What a client signs: the transcript's hash behind words that no other signature has.
std::string signed_text(std::string_view transcript_hash) {
  std::string text(64, ' ');
  text += "TLS 1.3, client CertificateVerify";
  text += '\0';
  text += transcript_hash;
  return text;
}

struct SignatureScheme {
  std::size_t number;
  int key;  // of EVP_PKEY_base_id()
  const EVP_MD* (*hash)();
  bool is_pss;
};

const SignatureScheme* scheme_of(std::size_t number) {
  static constexpr std::array<SignatureScheme, 11> kSchemes = {{
      {0x0403, EVP_PKEY_EC, EVP_sha256, false},
      {0x0503, EVP_PKEY_EC, EVP_sha384, false},
      {0x0603, EVP_PKEY_EC, EVP_sha512, false},
      {0x0804, EVP_PKEY_RSA, EVP_sha256, true},
      {0x0805, EVP_PKEY_RSA, EVP_sha384, true},
      {0x0806, EVP_PKEY_RSA, EVP_sha512, true},
      {0x0809, EVP_PKEY_RSA_PSS, EVP_sha256, true},
      {0x080a, EVP_PKEY_RSA_PSS, EVP_sha384, true},
      {0x080b, EVP_PKEY_RSA_PSS, EVP_sha512, true},
      {0x0807, EVP_PKEY_ED25519, nullptr, false},
      {0x0808, EVP_PKEY_ED448, nullptr, false},
  }};
  for (const SignatureScheme& scheme : kSchemes) {
    if (scheme.number == number) return &scheme;
  }
  return nullptr;
}

bool is_signed_by(EVP_PKEY* key, std::string_view verify_body, std::string_view text) {
  TlsReader reader(verify_body);
  const SignatureScheme* const scheme = scheme_of(reader.number(2));
  const std::string_view signature = reader.vector(2);
  if (!reader.is_good() || !reader.is_at_end() || scheme == nullptr || key == nullptr) return false;
  if (EVP_PKEY_base_id(key) != scheme->key) return false;
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;
  const EVP_MD* const hash = scheme->hash == nullptr ? nullptr : scheme->hash();
  if (EVP_DigestVerifyInit(context.get(), &options, hash, nullptr, key) != 1) return false;
  if (scheme->is_pss && (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
                         EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1)) {
    return false;
  }
  return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

void add_name(std::vector<std::string>& names, std::string_view kind, const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size <= 0) return;
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  // A name that a reader sees otherwise than a program is none.
  for (const char c : name) {
    if ((c >= 0 && c < 0x20) || c == 0x7f) return;
  }
  if (names.size() < kMaxNames) names.push_back(std::string(kind) + name);
}

std::vector<std::string> names_of(const X509& certificate) {
  std::vector<std::string> names;
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  // Of several common names it is not said which one counts.
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, at) < 0) {
    add_name(names, "cn:", X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  const Owned<GENERAL_NAMES> more(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(more.get()); ++i) {
    int kind = 0;
    const auto* text = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(more.get(), i), &kind));
    if (kind == GEN_EMAIL) add_name(names, "email:", text);
    if (kind == GEN_DNS) add_name(names, "dns:", text);
    if (kind == GEN_URI) add_name(names, "uri:", text);
  }
  return names;
}

base::Instant instant_of(const ASN1_TIME& time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(&time, &parts) != 1) return base::Instant();
  // A year beyond what an Instant holds is one that never comes.
  constexpr std::int64_t kLatest = 9'000'000'000;
  return base::Instant(std::clamp<std::int64_t>(timegm(&parts), 0, kLatest) * 1'000'000'000);
}

}  // namespace

// A client's certificate with those that came with it.
class ClientChain {
 public:
  static std::optional<ClientChain> parse(const std::vector<std::string_view>& ders) {
    ClientChain chain;
    chain.others_.reset(sk_X509_new_null());
    for (const std::string_view der : ders) {
      Owned<X509> certificate = parse_certificate(der);
      if (certificate == nullptr) return std::nullopt;
      if (chain.own_ == nullptr) {
        chain.own_ = std::move(certificate);
      } else if (sk_X509_push(chain.others_.get(), certificate.get()) > 0) {
        (void)certificate.release();
      }
    }
    if (chain.own_ == nullptr) return std::nullopt;
    return chain;
  }

  const X509& own() const { return *own_; }
  EVP_PKEY* key() const { return X509_get0_pubkey(own_.get()); }

  struct Verdict {
    std::string why_not;      // empty: an authority has signed it, and it holds now
    base::Instant not_after;  // of the first of its chain that ends
  };
  Verdict check(const ClientAuthorities& authorities, base::Instant now) const {
    const Owned<X509_STORE_CTX> context(X509_STORE_CTX_new());
    auto* const store = static_cast<X509_STORE*>(authorities.store_.get());
    if (X509_STORE_CTX_init(context.get(), store, own_.get(), others_.get()) != 1) {
      return {"out of memory", {}};
    }
    X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT);
    X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(context.get());
    X509_VERIFY_PARAM_set_time(rules, now.unix_ns() / 1'000'000'000);
    X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
    if (X509_verify_cert(context.get()) != 1) {
      return {X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())), {}};
    }
    base::Instant not_after = instant_of(*X509_get0_notAfter(own_.get()));
    const STACK_OF(X509)* const chain = X509_STORE_CTX_get0_chain(context.get());
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      not_after = std::min(not_after, instant_of(*X509_get0_notAfter(sk_X509_value(chain, i))));
    }
    return {{}, not_after};
  }

 private:
  Owned<X509> own_;
  Owned<STACK_OF(X509)> others_;
};

base::Result<ClientAuthorities> ClientAuthorities::from_pem(const std::string& text) {
  const std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  const Owned<BIO> reader(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  int count = 0;
  while (Owned<X509> authority{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), authority.get()) == 1) ++count;
  }
  if (count == 0) return base::invalid({}, "there is no certificate in it, as PEM");
  ClientAuthorities authorities;
  authorities.store_ = store;
  return authorities;
}

base::Result<ProvenCertificate> check_handshake(
    std::string_view messages, const ClientAuthorities& authorities,
    const std::function<bool(std::string_view digest)>& is_ours, base::Instant now) {
  HandshakeReader reader(messages);
  auto client_hello = reader.next(Handshake::kClientHello);
  auto server_hello = reader.next(Handshake::kServerHello);
  if (!client_hello || !server_hello) return unproven("no handshake");
  ServerHello hello = read_server_hello(server_hello->body);
  if (hello.hash == nullptr) return unproven("no cipher of TLS 1.3");
  std::string transcript;
  if (hello.is_retry) {
    // RFC 8446, section 4.4.1: the first hello stands there as its hash.
    const std::string digest = digest_of(hello.hash, client_hello->whole);
    transcript += static_cast<char>(Handshake::kMessageHash);
    transcript += {'\0', '\0', static_cast<char>(digest.size())};
    transcript += digest;
    transcript += server_hello->whole;
    client_hello = reader.next(Handshake::kClientHello);
    server_hello = reader.next(Handshake::kServerHello);
    if (!client_hello || !server_hello) return unproven("no handshake");
    const ServerHello second = read_server_hello(server_hello->body);
    if (second.is_retry || second.hash != hello.hash) return unproven("no handshake");
  }
  transcript += client_hello->whole;
  transcript += server_hello->whole;
  const auto extensions = reader.next(Handshake::kEncryptedExtensions);
  const auto request = reader.next(Handshake::kCertificateRequest);
  const auto server_certificate = reader.next(Handshake::kCertificate);
  const auto server_verify = reader.next(Handshake::kCertificateVerify);
  const auto server_finished = reader.next(Handshake::kFinished);
  const auto certificate = reader.next(Handshake::kCertificate);
  const auto verify = reader.next(Handshake::kCertificateVerify);
  if (!verify) return unproven("the handshake has no certificate of the client");
  for (const auto& part :
       {extensions, request, server_certificate, server_verify, server_finished, certificate}) {
    if (!part) return unproven("the handshake has no certificate of the client");
    transcript += part->whole;
  }
  const auto server_chain = read_chain(server_certificate->body);
  if (server_chain.empty() || !is_ours(digest_of(EVP_sha256(), server_chain.front()))) {
    return unproven("the handshake is with another server");
  }
  auto chain = ClientChain::parse(read_chain(certificate->body));
  if (!chain) return unproven("it cannot be read");
  const std::string text = signed_text(digest_of(hello.hash, transcript));
  if (!is_signed_by(chain->key(), verify->body, text)) return unproven("the signature is wrong");
  const ClientChain::Verdict verdict = chain->check(authorities, now);
  if (!verdict.why_not.empty()) return unproven(verdict.why_not);
  return ProvenCertificate{names_of(chain->own()), verdict.not_after,
                           std::make_shared<const ClientChain>(*std::move(chain))};
}

std::optional<base::Instant> end_of_chain(const ClientChain& chain,
                                          const ClientAuthorities& authorities, base::Instant now) {
  const ClientChain::Verdict verdict = chain.check(authorities, now);
  if (!verdict.why_not.empty()) return std::nullopt;
  return verdict.not_after;
}

std::string certificate_digest(const std::string& pem) {
  const Owned<BIO> reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Owned<X509> certificate(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
  unsigned char* der = nullptr;
  const int size = certificate == nullptr ? 0 : i2d_X509(certificate.get(), &der);
  if (size <= 0) return {};
  std::string digest =
      digest_of(EVP_sha256(), {reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

}  // namespace gpu_platform::api
