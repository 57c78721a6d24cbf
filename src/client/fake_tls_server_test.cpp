#include "client/fake_tls_server_test.h"

#include <algorithm>
#include <atomic>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace gpu_platform::client {

namespace {

template <class Write>
std::string in_pem(Write&& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  CHECK(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// One connection's bytes, with TLS or without.
struct Stream {
  int fd;
  SSL* tls;

  int read(char* room, int size) const {
    return tls != nullptr ? SSL_read(tls, room, size)
                          : static_cast<int>(::recv(fd, room, static_cast<std::size_t>(size), 0));
  }
  void write(std::string_view text) const {
    while (!text.empty()) {
      const int sent = tls != nullptr
                           ? SSL_write(tls, text.data(), static_cast<int>(text.size()))
                           : static_cast<int>(::send(fd, text.data(), text.size(), MSG_NOSIGNAL));
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
};

std::string read_request(const Stream& stream) {
  std::string bytes;
  char buffer[4096];
  while (true) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end != std::string::npos) {
      constexpr std::string_view kLength = "Content-Length: ";
      const std::size_t at = bytes.find(kLength);
      const std::size_t body = at == std::string::npos ? 0 : std::stoul(bytes.substr(at + 16));
      if (bytes.size() >= end + 4 + body) return bytes;
    }
    const int got = stream.read(buffer, sizeof buffer);
    if (got <= 0) return {};
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
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

TestCertificate make_certificate(const CertificateWish& wish, const TestCertificate* issuer) {
  static std::atomic<long> serial{1};
  TestCertificate made{{X509_new(), X509_free}, {EVP_EC_gen("P-256"), EVP_PKEY_free}};
  X509* certificate = made.certificate.get();
  const long number = serial++;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), number);
  X509_gmtime_adj(X509_getm_notBefore(certificate), wish.begins_in_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), wish.ends_in_seconds);
  X509_set_pubkey(certificate, made.key.get());
  const std::string name = fmt::format("test {}", number);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const TestCertificate& signer = issuer == nullptr ? made : *issuer;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get()));
  add_extension(certificate, NID_basic_constraints,
                wish.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!wish.is_authority) add_extension(certificate, NID_subject_alt_name, wish.names);
  CHECK(X509_sign(certificate, signer.key.get(), EVP_sha256()) > 0);
  return made;
}

FakeTlsServer::FakeTlsServer(Options options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)), context_(nullptr, SSL_CTX_free) {
  if (options_.shown.certificate != nullptr) {
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_max_proto_version(context_.get(), options_.highest_version);
    SSL_CTX_use_certificate(context_.get(), options_.shown.certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), options_.shown.key.get());
    if (!options_.clients_from.empty()) {
      BIO* bio = BIO_new_mem_buf(options_.clients_from.data(),
                                 static_cast<int>(options_.clients_from.size()));
      X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), authority);
      X509_free(authority);
      BIO_free(bio);
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
    }
  }
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CHECK(::listen(listener_, 16) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeTlsServer::~FakeTlsServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

std::string FakeTlsServer::address(std::string_view host) const {
  return fmt::format("{}://{}:{}", context_ != nullptr ? "https" : "http", host, port_);
}

std::vector<std::string> FakeTlsServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeTlsServer::accept_all() {
  while (true) {
    const int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void FakeTlsServer::serve(int fd) {
  // A client that breaks off must not end the test.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
  SSL* tls = nullptr;
  if (context_ != nullptr) {
    tls = SSL_new(context_.get());
    SSL_set_fd(tls, fd);
  }
  if (tls == nullptr || SSL_accept(tls) == 1) {
    const Stream stream{fd, tls};
    const std::string request = read_request(stream);
    if (!request.empty()) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      if (options_.before_answer) options_.before_answer();
      stream.write(handler_(request));
      if (options_.after_answer) {
        options_.after_answer([&] {
          std::string bytes(64 * 1024, '\0');
          const int got = stream.read(bytes.data(), static_cast<int>(bytes.size()));
          bytes.resize(static_cast<std::size_t>(std::max(got, 0)));
          return bytes;
        });
      }
      if (tls != nullptr) SSL_shutdown(tls);
    }
  }
  SSL_free(tls);
  ::close(fd);
}

}  // namespace gpu_platform::client
