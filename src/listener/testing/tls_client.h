#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

// A blocking client for tests that sends exactly the bytes it is told to, over TLS or plain. It
// gives up after some silence, and believes every certificate.

namespace gpu_platform::listener {

struct TlsClientOptions {
  bool has_tls = true;
  int min_version = TLS1_3_VERSION;
  int max_version = TLS1_3_VERSION;
  std::string protocols = {};    // of ALPN, in its wire form: "\x02h2"
  int receive_buffer = 0;        // bytes; 0: the system's
  std::string certificate = {};  // PEM, with its key: shown to a server that asks
  std::string key = {};
  std::chrono::milliseconds timeout{20'000};
};

class TlsClient {
 public:
  using Options = TlsClientOptions;
  struct Response {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;                            // decoded
  };

  explicit TlsClient(std::uint16_t port, const Options& options = {}) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto timeout = options.timeout.count();
    const timeval limit{timeout / 1000, timeout % 1000 * 1000};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (options.receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer,
                   sizeof options.receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (is_connected_ && options.has_tls) shake_hands(options);
  }
  ~TlsClient() { close(); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool is_connected() const { return is_connected_; }
  void close() {
    if (ssl_ != nullptr) SSL_free(ssl_);
    if (context_ != nullptr) SSL_CTX_free(context_);
    if (socket_ >= 0) ::close(socket_);
    ssl_ = nullptr;
    context_ = nullptr;
    socket_ = -1;
  }
  int socket() const { return socket_; }

  // The common name of the server's certificate.
  std::string server_name() const {
    X509* const certificate = SSL_get1_peer_certificate(ssl_);
    if (certificate == nullptr) return {};
    char name[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof name);
    X509_free(certificate);
    return name;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = static_cast<int>(bytes.size());
      const long sent = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), size)
                                        : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // More bytes, up to so many at once; empty: the other side has closed, or says nothing more.
  std::string receive_some(std::size_t most = 65'536) {
    std::string bytes(most, '\0');
    const long got = ssl_ != nullptr ? SSL_read(ssl_, bytes.data(), static_cast<int>(most))
                                     : ::recv(socket_, bytes.data(), most, 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  // Waits; true when the other side has closed and nothing is left, false when it only says
  // nothing.
  bool is_closed() { return buffer_.empty() && receive_some().empty() && has_ended(); }
  // Reads on until the other side closes; false when it falls silent without that.
  bool is_closed_in_the_end() {
    buffer_.clear();
    while (!receive_some().empty()) continue;
    return has_ended();
  }

  // The next answer with its whole body; nothing when the connection ends before.
  std::optional<Response> receive() {
    auto response = receive_head();
    if (!response) return std::nullopt;
    if (response->headers.contains("transfer-encoding")) {
      while (auto chunk = receive_chunk()) response->body += *chunk;
      return is_whole_ ? response : std::nullopt;
    }
    const auto length = response->headers.find("content-length");
    if (length == response->headers.end()) return response;
    const std::size_t size = std::stoul(length->second);
    while (buffer_.size() < size) {
      if (!fill()) return std::nullopt;
    }
    response->body = take(size);
    return response;
  }
  std::optional<Response> receive_head() {
    const auto first = line();
    if (!first || first->size() < 12) return std::nullopt;
    Response response;
    response.status = std::stoi(first->substr(9, 3));
    while (auto field = line()) {
      if (field->empty()) return response;
      const std::size_t colon = field->find(": ");
      std::string name = field->substr(0, colon);
      for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      response.headers[name] = colon == std::string::npos ? "" : field->substr(colon + 2);
    }
    return std::nullopt;
  }
  // One chunk; nothing at the end of the body or when it is cut.
  std::optional<std::string> receive_chunk() {
    is_whole_ = false;
    const auto size_text = line();
    if (!size_text) return std::nullopt;
    const std::size_t size = std::stoul(*size_text, nullptr, 16);
    while (buffer_.size() < size + 2) {
      if (!fill()) return std::nullopt;
    }
    std::string chunk = take(size);
    take(2);
    is_whole_ = size == 0;
    if (is_whole_) return std::nullopt;
    return chunk;
  }

 private:
  // Asks the socket itself, because TLS reads nothing after an error either.
  bool has_ended() const {
    char bytes[4096];
    long got = 0;
    do got = ::recv(socket_, bytes, sizeof bytes, 0);
    while (got > 0);
    return got == 0 || errno == ECONNRESET;
  }
  void use_certificate(const Options& options) {
    BIO* const certificate_text = BIO_new_mem_buf(options.certificate.data(), -1);
    BIO* const key_text = BIO_new_mem_buf(options.key.data(), -1);
    X509* const certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_, certificate);
    SSL_CTX_use_PrivateKey(context_, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(certificate_text);
    BIO_free(key_text);
  }
  void shake_hands(const Options& options) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context_, options.min_version);
    SSL_CTX_set_max_proto_version(context_, options.max_version);
    if (!options.certificate.empty()) use_certificate(options);
    ssl_ = SSL_new(context_);
    if (!options.protocols.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    }
    SSL_set_fd(ssl_, socket_);
    is_connected_ = SSL_connect(ssl_) == 1;
  }
  bool fill() {
    const std::string more = receive_some();
    buffer_ += more;
    return !more.empty();
  }
  std::string take(std::size_t size) {
    std::string out = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return out;
  }
  std::optional<std::string> line() {
    while (true) {
      const std::size_t end = buffer_.find("\r\n");
      if (end != std::string::npos) {
        std::string out = take(end);
        take(2);
        return out;
      }
      if (!fill()) return std::nullopt;
    }
  }

  int socket_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  bool is_connected_ = false;
  bool is_whole_ = false;
  std::string buffer_;
};

}  // namespace gpu_platform::listener
