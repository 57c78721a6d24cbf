#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/fake_core_test.h"
#include "api/rest/raw_client_test.h"
#include "api/rest/server.h"
#include "os/testing/eventually.h"

namespace gpu_platform::api {

// A server on a real socket before a FakeCore.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "api-socket-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    options_.socket_path = directory_ + "/s";
    options_.version = "1.2.3";
    options_.stop_grace = std::chrono::milliseconds(5'000);
  }
  ~ServerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  // The server's threads use what a test has added to the fixture.
  void TearDown() override { server_.reset(); }

  void start() {
    auto server = Server::start(options_, core_.access(), core_.hub());
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = *std::move(server);
  }

  RawResponse ask(std::string_view method, std::string_view target, std::string_view body = {},
                  std::string_view more_headers = {}) {
    RawClient client(options_.socket_path);
    auto response = client.request(method, target, body, more_headers);
    EXPECT_TRUE(response.has_value()) << method << " " << target;
    return std::move(response).value_or(RawResponse{});
  }
  static nlohmann::json parsed(const RawResponse& response) {
    nlohmann::json document = nlohmann::json::parse(response.body, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << response.body;
    return document;
  }

  static std::string name_of(std::uint32_t uid) {
    const auto user = host::system_users()->find(uid);
    return user ? user->name : std::to_string(uid);
  }

  template <class Condition>
  static bool eventually(Condition&& condition) {
    return os::eventually(std::forward<Condition>(condition));
  }
  bool all_connections_gone() {
    return eventually([&] { return server_->figures().connections == 0; });
  }

  // The user that the connections of this process are of.
  std::uint32_t uid_ = ::getuid();
  std::string user_ = name_of(uid_);
  std::string directory_;
  ServerOptions options_;
  FakeCore core_;
  std::unique_ptr<Server> server_;
};

}  // namespace gpu_platform::api
