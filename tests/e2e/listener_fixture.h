#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "harness.h"
#include "http/testing/certificates.h"
#include "listener/testing/tls_client.h"

// A daemon with a listener, reached over TLS with a certificate of the test.

namespace gpu_platform::e2e {

using listener::TlsClient;

inline std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, name, size), 0);
  EXPECT_EQ(::getsockname(socket, name, &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

inline void write_pem_file(const std::string& path, const std::string& text, mode_t mode = 0600) {
  // In one step, as renewal programs do.
  std::ofstream(path + ".new") << text;
  ::chmod((path + ".new").c_str(), mode);
  ::rename((path + ".new").c_str(), path.c_str());
}

inline std::string kernel_status(pid_t pid, const std::string& key) {
  for (const std::string& line : lines_of(read_file("/proc/" + std::to_string(pid) + "/status"))) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return {};
}

class ListenerProcess : public ::testing::Test {
 protected:
  ListenerProcess() { put("first"); }

  void put(const std::string& name) {
    const auto made = http::make_certificate({.common_name = name});
    write_pem_file(certificate(), made.pem());
    write_pem_file(key(), made.key_pem());
  }
  std::string certificate() const { return folder_.path() + "/server.crt"; }
  std::string key() const { return folder_.path() + "/server.key"; }

  std::string configuration(const std::string& rest = {}, bool has_tls = true) const {
    std::string text =
        "api:\n  rest:\n    address: 127.0.0.1:" + std::to_string(port_) + "\n" + rest;
    if (has_tls) text += "  tls:\n    certificate: " + certificate() + "\n    key: " + key() + "\n";
    return text;
  }
  void start(const std::string& rest = {}) {
    daemon_ = std::make_unique<Daemon>(DaemonOptions{.config = configuration(rest)});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    ASSERT_TRUE(answers()) << daemon_->log();
  }
  // Fails to start, and says why.
  std::string refusal(const std::string& config) {
    Daemon daemon({.config = config});
    EXPECT_FALSE(daemon.start());
    return daemon.log();
  }

  static std::string get(const std::string& target, const std::string& more = {}) {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
  }
  int status(const std::string& bytes) const {
    TlsClient client(port_);
    if (!client.is_connected() || !client.send(bytes)) return -1;
    const auto response = client.receive();
    return response ? response->status : 0;
  }
  bool is_healthy() const { return status(get("/v1/health")) == 200; }
  bool answers() const {
    return eventually([this] { return is_healthy(); });
  }
  std::string server_name() const { return TlsClient(port_).server_name(); }

  int files_of_daemon_with(const std::string& bytes) const {
    int found = 0;
    for (const auto& entry : entries_below(daemon_->directory())) {
      if (!entry.is_regular_file()) continue;
      found += read_file(entry.path()).find(bytes) != std::string::npos ? 1 : 0;
    }
    return found;
  }

  pid_t listener_pid() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const pid_t pid = std::stoi(name);
      if (kernel_status(pid, "PPid") != std::to_string(daemon_->pid())) continue;
      if (kernel_status(pid, "Name").starts_with("gpu-platform-li")) return pid;
    }
    return 0;
  }

  TemporaryDirectory folder_;
  std::uint16_t port_ = free_port();
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace gpu_platform::e2e
