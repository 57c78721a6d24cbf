#include "http/tls.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

namespace gpu_platform::http {

namespace {

using Why = TransportError::Kind;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

std::unexpected<TransportError> failed(Why kind, std::string message) {
  return std::unexpected(TransportError{kind, std::move(message)});
}

// ---- the socket, as OpenSSL sees it: its own kind of it would raise SIGPIPE

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int send_some(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int receive_some(BIO* bio, char* room, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(socket_of(bio), room, static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  return command == BIO_CTRL_EOF && BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
}

BIO* socket_bio(int fd) {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(method, send_some);
    BIO_meth_set_read(method, receive_some);
    BIO_meth_set_ctrl(method, control);
    return method;
  }();
  BIO* bio = BIO_new(kMethod);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

// ---- what is said when it does not work

// Takes the latest of OpenSSL's errors and forgets the others.
unsigned long take_error() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return error;
}

std::string text_of(unsigned long error) {
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

std::string date_of(const ASN1_TIME* time) {
  tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown date";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// "DNS:a, DNS:b": the names that a certificate is for.
std::string names_of(const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string list;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    std::string text;
    if (name->type == GEN_DNS) {
      text.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                  static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      char buffer[INET6_ADDRSTRLEN] = {};
      const bool is_ipv4 = ASN1_STRING_length(name->d.iPAddress) == 4;
      ::inet_ntop(is_ipv4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), buffer,
                  sizeof buffer);
      text = buffer;
    }
    if (!text.empty()) list += (list.empty() ? "" : ", ") + text;
  }
  GENERAL_NAMES_free(names);
  return list.empty() ? "none" : list;
}

std::string why_not_trusted(const SSL* session, const Server& server) {
  const Certificate shown(SSL_get1_peer_certificate(session));
  const long result = SSL_get_verify_result(session);
  switch (result) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return server.tls.authorities.empty()
                 ? "its certificate comes from an authority that this machine does not trust; name "
                   "the authority's certificate with --ca-file FILE"
                 : fmt::format("its certificate does not come from an authority in {}",
                               server.tls.authorities);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("its certificate is not for '{}'{}", server.host,
                         shown ? "; it is for: " + names_of(shown.get()) : std::string());
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return shown ? fmt::format(
                         "its certificate expired on {}; its administrator must renew it, or this "
                         "machine's clock is wrong",
                         date_of(X509_get0_notAfter(shown.get())))
                   : "its certificate has expired; its administrator must renew it, or this "
                     "machine's clock is wrong";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet, or this machine's clock is wrong";
    default:
      return X509_verify_cert_error_string(result);
  }
}

// An alert or a mistake in what came.
TransportError judged(unsigned long error, const Server& server) {
  const std::string where = server.text();
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
      return {Why::kMalformed, fmt::format("{}: the server there does not use TLS", where)};
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return {Why::kMalformed, fmt::format("{}: it does not support TLS 1.3", where)};
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return {Why::kUntrusted,
              fmt::format("{}: it asks for a certificate of yours; give --cert FILE and --key FILE",
                          where)};
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return {Why::kUntrusted,
              fmt::format("{}: it does not accept {}: {}", where,
                          server.tls.certificate.empty() ? "us" : server.tls.certificate,
                          text_of(error))};
    default:
      return {Why::kBroken, fmt::format("{}: TLS failed: {}", where, text_of(error))};
  }
}

TransportError ended() {
  return {Why::kBroken, "the connection to the daemon ended"};
}

Transported<Context> make_context(const Server& server) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return failed(Why::kBroken, "TLS: " + text_of(take_error()));
  SSL_CTX* raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  const TlsFiles& files = server.tls;
  const auto unusable = [](const std::string& file) {
    return failed(Why::kUntrusted,
                  fmt::format("{} cannot be used: {}", file, text_of(take_error())));
  };
  const bool has_authorities = files.authorities.empty()
                                   ? SSL_CTX_set_default_verify_paths(raw) == 1
                                   : SSL_CTX_load_verify_file(raw, files.authorities.c_str()) == 1;
  if (!has_authorities) return unusable(files.authorities);
  if (files.certificate.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return unusable(files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return unusable(files.key);
  }
  return context;
}

bool is_ip_address(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Sets the name that the certificate must be for.
bool expect_host(SSL* session, const std::string& host) {
  if (is_ip_address(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  }
  SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(session, host.c_str()) == 1 &&
         SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

}  // namespace

struct TlsSession::State {
  Server server;
  Context context;
  Session session;

  // What a call that did not succeed came to; nothing where the stream has ended in good order.
  Transported<std::optional<Wants>> outcome(int returned) const {
    switch (SSL_get_error(session.get(), returned)) {
      case SSL_ERROR_WANT_READ:
        return Wants::kReadable;
      case SSL_ERROR_WANT_WRITE:
        return Wants::kWritable;
      case SSL_ERROR_ZERO_RETURN:
        return std::nullopt;
      case SSL_ERROR_SSL: {
        const unsigned long error = take_error();
        if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) break;
        return std::unexpected(judged(error, server));
      }
      default:
        break;
    }
    ERR_clear_error();
    return std::unexpected(ended());
  }
};

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

Transported<std::unique_ptr<TlsSession>> TlsSession::begin(int fd, const Server& server) {
  ERR_clear_error();
  auto context = make_context(server);
  if (!context) return std::unexpected(std::move(context).error());
  Session session(SSL_new(context->get()));
  if (session == nullptr || !expect_host(session.get(), server.host)) {
    return failed(Why::kBroken, "TLS: " + text_of(take_error()));
  }
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  SSL_set_alpn_protos(session.get(), kProtocols, sizeof kProtocols - 1);
  BIO* bio = socket_bio(fd);
  SSL_set_bio(session.get(), bio, bio);
  return std::unique_ptr<TlsSession>(new TlsSession(
      std::make_unique<State>(State{server, std::move(*context), std::move(session)})));
}

Transported<Wants> TlsSession::handshake() {
  ERR_clear_error();
  SSL* session = state_->session.get();
  const int done = SSL_connect(session);
  if (done == 1) return Wants::kNothing;
  const std::string where = state_->server.text();
  if (SSL_get_verify_result(session) != X509_V_OK) {
    const std::string why = why_not_trusted(session, state_->server);
    ERR_clear_error();
    return failed(Why::kUntrusted, fmt::format("{}: {}", where, why));
  }
  auto outcome = state_->outcome(done);
  if (outcome && outcome->has_value()) return **outcome;
  if (!outcome && outcome.error().kind != Why::kBroken) {
    return std::unexpected(std::move(outcome).error());
  }
  // No request was sent, so another attempt harms nothing.
  return failed(Why::kNoDaemon, outcome ? where + ": it ended the connection"
                                        : fmt::format("{}: {}", where, outcome.error().message));
}

Transported<Step> TlsSession::read(std::span<char> room) {
  ERR_clear_error();
  std::size_t got = 0;
  const int done = SSL_read_ex(state_->session.get(), room.data(), room.size(), &got);
  if (done == 1) return Step{got, Wants::kNothing};
  const auto outcome = state_->outcome(done);
  if (!outcome) return std::unexpected(outcome.error());
  return Step{0, outcome->value_or(Wants::kNothing)};
}

Transported<Step> TlsSession::write(std::string_view bytes) {
  ERR_clear_error();
  std::size_t sent = 0;
  const int done = SSL_write_ex(state_->session.get(), bytes.data(), bytes.size(), &sent);
  if (done == 1) return Step{sent, Wants::kNothing};
  const auto outcome = state_->outcome(done);
  if (!outcome) return std::unexpected(outcome.error());
  if (!outcome->has_value()) return std::unexpected(ended());
  return Step{0, **outcome};
}

}  // namespace gpu_platform::http
