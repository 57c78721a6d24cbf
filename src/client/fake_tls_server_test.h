#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/testing/certificates.h"
#include "http/testing/scripted_server.h"

namespace gpu_platform::client {

using http::make_authority;
using http::make_certificate;
using http::TestCertificate;

// A daemon for tests behind TLS (or behind plain TCP): a function says what is sent for a request,
// whose connection ends with that.
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

  FakeTlsServer(Options options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        server_({options_.shown, options_.clients_from, options_.highest_version},
                [this](const http::SeenRequest& request, http::Wire& wire) {
                  answer(request.text, wire);
                }) {}

  int port() const { return server_.port(); }
  // "https://127.0.0.1:PORT", or http without a certificate.
  std::string address(std::string_view host = "127.0.0.1") const { return server_.address(host); }
  // Each request so far, with its head.
  std::vector<std::string> requests() const {
    std::vector<std::string> texts;
    for (http::SeenRequest& request : server_.requests()) texts.push_back(std::move(request.text));
    return texts;
  }

 private:
  void answer(const std::string& request, http::Wire& wire) {
    if (options_.before_answer) options_.before_answer();
    wire.raw(handler_(request));
    if (options_.after_answer) {
      options_.after_answer([&] {
        std::string bytes(64 * 1024, '\0');
        const int got = wire.read(bytes.data(), static_cast<int>(bytes.size()));
        bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return bytes;
      });
    }
    wire.close();
  }

  const Options options_;
  const Handler handler_;
  http::ScriptedServer server_;
};

}  // namespace gpu_platform::client
