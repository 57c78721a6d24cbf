#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "http/testing/certificates.h"

// A server of HTTP/1.1 for tests, on a free port of this machine: a script says what is sent for
// each request, byte by byte where a test wants that. With TLS if it is given a certificate.

namespace gpu_platform::http {

struct SeenRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string text;    // all of it, as it came
  int connection = 0;  // 1: the first that was accepted
  int number = 0;      // 1: the first request for this path, with any query

  std::string header(const std::string& name) const;
  bool has(std::string_view piece) const { return target.find(piece) != std::string::npos; }
};

// The answering side of a connection. Used by the script, on the connection's thread.
class Wire {
 public:
  Wire(int fd, SSL* tls) : fd_(fd), tls_(tls) {}

  void answer(int status, std::string_view body, std::string_view header_lines = "");
  void begin_stream();  // 200; pieces follow
  void piece(std::string_view bytes);
  void end_stream();
  void raw(std::string_view bytes);
  void drop() { is_dropped_ = true; }  // the connection is closed without more
  void close();                        // the same, with TLS's own farewell
  void hold();                         // returns when the client, or the server, has gone

  bool is_dropped() const { return is_dropped_; }
  int read(char* buffer, int size) const;

 private:
  int fd_;
  SSL* tls_;
  bool is_dropped_ = false;
};

class ScriptedServer {
 public:
  using Script = std::function<void(const SeenRequest& request, Wire& wire)>;
  struct Tls {
    TestCertificate shown;
    std::string clients_from;  // PEM of the authority that a client's certificate must have
    int highest_version = TLS1_3_VERSION;
  };

  explicit ScriptedServer(Script script) : ScriptedServer(Tls{}, std::move(script)) {}
  ScriptedServer(Tls tls, Script script);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // "https://127.0.0.1:PORT", or http without a certificate.
  std::string address(std::string_view host = "127.0.0.1") const;
  int port() const { return port_; }
  std::vector<SeenRequest> requests() const;
  int connections() const;
  // Closes its listening socket and all connections.
  void stop();

 private:
  void accept_all();
  void serve(int fd, int connection);

  Script script_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> requests_;
  std::map<std::string, int> seen_;  // requests by path
  std::set<int> open_;
  int connections_ = 0;
  bool is_stopped_ = false;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace gpu_platform::http
