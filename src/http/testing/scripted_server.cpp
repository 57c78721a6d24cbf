#include "http/testing/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::http {
namespace {

// The head of a request; its body is read by the caller.
SeenRequest parse_head(std::string_view head) {
  SeenRequest request;
  std::size_t at = head.find("\r\n");
  const std::string_view first = head.substr(0, at);
  request.method = first.substr(0, first.find(' '));
  request.target = first.substr(first.find(' ') + 1);
  request.target.erase(request.target.find(' '));
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      request.headers[name] = line.substr(colon + 2);
    }
    at = end;
  }
  return request;
}

std::optional<SeenRequest> read_request(const Wire& wire, std::string& buffer) {
  char piece[4096];
  std::optional<SeenRequest> request;
  std::size_t body_at = 0;
  while (true) {
    if (const std::size_t end = buffer.find("\r\n\r\n"); !request && end != std::string::npos) {
      request = parse_head(std::string_view(buffer).substr(0, end + 2));
      body_at = end + 4;
    }
    if (request) {
      const std::string length = request->header("content-length");
      const std::size_t size = length.empty() ? 0 : std::stoul(length);
      if (buffer.size() >= body_at + size) {
        request->body = buffer.substr(body_at, size);
        request->text = buffer.substr(0, body_at + size);
        buffer.erase(0, body_at + size);
        return request;
      }
    }
    const int got = wire.read(piece, sizeof piece);
    if (got <= 0) return std::nullopt;
    buffer.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string SeenRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

int Wire::read(char* buffer, int size) const {
  if (tls_ != nullptr) return SSL_read(tls_, buffer, size);
  return static_cast<int>(::recv(fd_, buffer, static_cast<std::size_t>(size), 0));
}

void Wire::raw(std::string_view bytes) {
  while (!bytes.empty() && !is_dropped_) {
    const int sent = tls_ != nullptr
                         ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                         : static_cast<int>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (sent <= 0) return drop();
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Wire::answer(int status, std::string_view body, std::string_view header_lines) {
  raw(fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                  header_lines, body));
}

void Wire::begin_stream() {
  raw("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void Wire::piece(std::string_view bytes) {
  raw(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

void Wire::end_stream() {
  raw("0\r\n\r\n");
}

void Wire::close() {
  if (tls_ != nullptr) SSL_shutdown(tls_);
  drop();
}

void Wire::hold() {
  char ignored[256];
  while (read(ignored, sizeof ignored) > 0) {
  }
  drop();
}

ScriptedServer::ScriptedServer(Tls tls, Script script)
    : script_(std::move(script)), tls_(nullptr, SSL_CTX_free) {
  if (tls.shown.certificate != nullptr) {
    tls_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_max_proto_version(tls_.get(), tls.highest_version);
    SSL_CTX_use_certificate(tls_.get(), tls.shown.certificate.get());
    SSL_CTX_use_PrivateKey(tls_.get(), tls.shown.key.get());
    if (!tls.clients_from.empty()) {
      BIO* bio =
          BIO_new_mem_buf(tls.clients_from.data(), static_cast<int>(tls.clients_from.size()));
      X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(tls_.get()), authority);
      X509_free(authority);
      BIO_free(bio);
      SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
  }
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 64) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  stop();
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void ScriptedServer::stop() {
  const std::scoped_lock lock(mutex_);
  is_stopped_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
}

void ScriptedServer::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::scoped_lock lock(mutex_);
    if (is_stopped_) {
      ::close(fd);
      return;
    }
    open_.insert(fd);
    threads_.emplace_back([this, fd, connection = ++connections_] { serve(fd, connection); });
  }
}

void ScriptedServer::serve(int fd, int connection) {
  // OpenSSL writes to connections that the client has closed. The client keeps its signals.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
  SSL* tls = tls_ != nullptr ? SSL_new(tls_.get()) : nullptr;
  if (tls != nullptr) SSL_set_fd(tls, fd);
  Wire wire(fd, tls);
  if (tls != nullptr && SSL_accept(tls) != 1) wire.drop();
  std::string buffer;
  while (!wire.is_dropped()) {
    std::optional<SeenRequest> request = read_request(wire, buffer);
    if (!request) break;
    request->connection = connection;
    {
      const std::scoped_lock lock(mutex_);
      request->number = ++seen_[request->target.substr(0, request->target.find('?'))];
      requests_.push_back(*request);
    }
    script_(*request, wire);
  }
  if (tls != nullptr) SSL_free(tls);
  const std::scoped_lock lock(mutex_);
  open_.erase(fd);
  ::close(fd);
}

std::string ScriptedServer::address(std::string_view host) const {
  return fmt::format("{}://{}:{}", tls_ != nullptr ? "https" : "http", host, port_);
}

std::vector<SeenRequest> ScriptedServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

int ScriptedServer::connections() const {
  const std::scoped_lock lock(mutex_);
  return connections_;
}

}  // namespace gpu_platform::http
