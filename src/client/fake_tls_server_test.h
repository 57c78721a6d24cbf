#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <openssl/ssl.h>

#include "http/server.h"

namespace gpu_platform::client {

// A certificate and its key, made for one test.
struct TestCertificate {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  std::string pem() const;
  std::string key_pem() const;
};

struct CertificateWish {
  std::string names = "IP:127.0.0.1,DNS:localhost";  // as OpenSSL's configuration has them
  long begins_in_seconds = -3600;
  long ends_in_seconds = 3600;
  bool is_authority = false;
};

// Signed by the issuer, or by itself.
TestCertificate make_certificate(const CertificateWish& wish,
                                 const TestCertificate* issuer = nullptr);

// A daemon for tests behind TLS (or behind plain TCP) on a port of this machine's own address. Each
// connection has a thread and gives its request to a function, which says what to send.
class FakeTlsServer {
 public:
  struct Options {
    TestCertificate shown;     // without one: plain TCP
    std::string clients_from;  // PEM of the authority that a client's certificate must have
    int highest_version = TLS1_3_VERSION;
    std::function<void()> before_answer;
    // What follows the answer on the same connection: `read` gives what has come, empty at the end.
    std::function<void(const std::function<std::string()>& read)> after_answer;
  };
  using Handler = std::function<std::string(const std::string& request)>;

  FakeTlsServer(Options options, Handler handler);
  ~FakeTlsServer();
  FakeTlsServer(const FakeTlsServer&) = delete;
  FakeTlsServer& operator=(const FakeTlsServer&) = delete;

  int port() const { return port_; }
  // "https://127.0.0.1:PORT", or http without a certificate.
  std::string address(std::string_view host = "127.0.0.1") const;
  // Each request so far, with its head.
  std::vector<std::string> requests() const;

 private:
  void accept_all();
  void serve(int fd);

  Options options_;
  Handler handler_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace gpu_platform::client
