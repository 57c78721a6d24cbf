#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/fake_core_test.h"
#include "api/rest/server.h"
#include "http/testing/certificates.h"
#include "listener/front.h"
#include "listener/testing/tls_client.h"
#include "os/testing/eventually.h"

// A front before a real server of the API, with users that a test names.

namespace gpu_platform::listener {

// The secret is the name of the user.
class NamedUsers final : public api::Authenticator {
 public:
  void authenticate(api::Credential credential, Done done) const override {
    if (credential.secret != "ann" && credential.secret != "bob") {
      return done(base::fail(base::ErrorCode::kUnauthenticated, "the token is not valid"));
    }
    api::Peer peer;
    peer.caller.user = credential.secret;
    peer.caller.uid = credential.secret == "ann" ? 5001 : 5002;
    peer.caller.door = model::Door::kListener;
    done(std::move(peer));
  }
  base::Status check_still_holds(const api::Peer&) const override { return {}; }
};

// Hands connections to the server, as the daemon does.
class ServerUpstream final : public Upstream {
 public:
  base::Result<int> open(const Credential& credential) override {
    ++opened;
    if (server == nullptr) return base::fail(base::ErrorCode::kUnavailable, "the daemon is gone");
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
      return std::unexpected(base::system_error("socketpair", errno));
    }
    server->adopt(pair[1], {api::Credential::Kind::kBearer, credential.secret, credential.address});
    return pair[0];
  }
  api::Server* server = nullptr;
  std::atomic<int> opened = 0;
};

class ListenerFront : public testing::Test {
 protected:
  ListenerFront() {
    ::signal(SIGPIPE, SIG_IGN);  // as the listener does
    std::string pattern = (std::filesystem::temp_directory_path() / "front-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    server_options_.socket_path = directory_ + "/s";
    server_options_.version = "1.2.3";
    server_options_.authenticator = &users_;
    front_options_.settings.threads = 2;
  }
  ~ListenerFront() override {
    front_.reset();
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  void start(bool has_tls = true, Door door = Door::kRest) {
    auto server = api::Server::start(server_options_, core_.access(), core_.hub());
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = *std::move(server);
    upstream_.server = server_.get();
    const auto made = http::make_certificate({.common_name = "first"});
    ASSERT_TRUE(tls_.use(made.pem(), made.key_pem()).has_value());
    ASSERT_TRUE(grpc_tls_.use(made.pem(), made.key_pem()).has_value());
    os::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(socket.get(), name, size), 0);
    ASSERT_EQ(::listen(socket.get(), 1024), 0);
    ASSERT_EQ(::getsockname(socket.get(), name, &size), 0);
    port_ = ntohs(address.sin_port);
    has_tls_ = has_tls;
    front_ =
        std::make_unique<Front>(front_options_, upstream_, Front::Certificates{tls_, grpc_tls_});
    ASSERT_TRUE(front_->listen(std::move(socket), {door, has_tls, "127.0.0.1"}).has_value());
    front_->start();
  }

  TlsClient::Options plain_or_tls() const { return {.has_tls = has_tls_}; }
  static std::string get(std::string_view target, std::string_view token = "ann",
                         std::string_view more = {}) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}{}\r\n", target,
                       token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token),
                       more);
  }
  TlsClient::Response ask(std::string_view bytes) {
    TlsClient client(port_, plain_or_tls());
    EXPECT_TRUE(client.send(bytes));
    auto response = client.receive();
    EXPECT_TRUE(response.has_value()) << bytes.substr(0, 200);
    return std::move(response).value_or(TlsClient::Response{});
  }
  static nlohmann::json parsed(const TlsClient::Response& response) {
    auto document = nlohmann::json::parse(response.body, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << response.body;
    return document;
  }
  template <class Condition>
  static bool eventually(Condition&& condition) {
    return os::eventually(std::forward<Condition>(condition));
  }

  std::string directory_;
  api::ServerOptions server_options_;
  FrontOptions front_options_;
  api::FakeCore core_;
  NamedUsers users_;
  ServerUpstream upstream_;
  Tls tls_{"http/1.1"};
  Tls grpc_tls_{"h2"};
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<Front> front_;
  std::uint16_t port_ = 0;
  bool has_tls_ = true;
};

}  // namespace gpu_platform::listener
