#include "http/server.h"

#include <algorithm>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"

namespace gpu_platform::http {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";
constexpr std::string_view kUsualPort = "8443";
constexpr std::string_view kUsualPlainPort = "8080";
constexpr std::size_t kMaxHost = 253;
constexpr std::size_t kMaxToken = 8192;

bool is_of_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}
bool is_of_ipv6(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
         c == '.' || c == '%';
}

bool names_this_machine(const std::string& host) {
  in_addr address{};
  const bool is_ipv4 = ::inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (is_ipv4 && host.starts_with("127."));
}

base::Result<Server> bad(std::string message) {
  return base::invalid("server", std::move(message));
}

// "host:8443", "[::1]:8443"
base::Result<Server> parse_authority(std::string_view text, Server server) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return bad("']' is missing after the IPv6 address");
    server.host = text.substr(1, end - 1);
    if (server.host.empty() || !std::ranges::all_of(server.host, is_of_ipv6)) {
      return bad("not an IPv6 address");
    }
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad("only ':PORT' may follow the address");
  } else {
    const std::size_t colon = text.find(':');
    server.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon);
    if (server.host.empty()) return bad("the host is missing");
    if (server.host.size() > kMaxHost || !std::ranges::all_of(server.host, is_of_host)) {
      return bad("not a host name");
    }
  }
  if (port.empty()) {
    server.port = server.kind == Server::Kind::kTls ? kUsualPort : kUsualPlainPort;
    return server;
  }
  const auto number = base::parse_count(port.substr(1), 1, 65535);
  if (!number) return bad("the port is a number from 1 to 65535");
  server.port = std::to_string(*number);
  return server;
}

}  // namespace

std::string Server::authority() const {
  if (kind == Kind::kSocket) return "localhost";
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Server::text() const {
  if (kind == Kind::kSocket) return std::string(kUnix) + path;
  return std::string(kind == Kind::kTls ? kHttps : kHttp) + authority();
}

bool is_address(std::string_view text) {
  return text.find_first_of(":/") != std::string_view::npos;
}

bool is_valid_token(std::string_view token) {
  const auto is_visible = [](char c) { return c > ' ' && c < 0x7f; };
  return !token.empty() && token.size() <= kMaxToken && std::ranges::all_of(token, is_visible);
}

base::Result<Server> parse_server(std::string_view text) {
  Server server;
  if (text.starts_with(kUnix)) {
    server.path = text.substr(kUnix.size());
    if (server.path.empty()) return bad("the path of the socket is missing: write unix:PATH");
    return server;
  }
  const std::string scheme = base::to_lower(text.substr(0, text.find("//") + 2));
  if (scheme != kHttps && scheme != kHttp) {
    return bad("write https://HOST:PORT or unix:PATH");
  }
  server.kind = scheme == kHttps ? Server::Kind::kTls : Server::Kind::kPlain;
  text.remove_prefix(scheme.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  // What stands before '@' would be a secret that shells and process lists show.
  if (text.find('@') != std::string_view::npos) {
    return bad("an address has no user and no password; 'gpu-platform login' keeps a token");
  }
  if (text.find_first_of("/?#") != std::string_view::npos) {
    return bad("nothing may follow the port");
  }
  TRY_ASSIGN(server, parse_authority(text, std::move(server)));
  server.host = base::to_lower(server.host);
  if (server.kind == Server::Kind::kPlain && !names_this_machine(server.host)) {
    return bad(
        fmt::format("http without TLS goes only to this machine (127.0.0.1), because a token could "
                    "be read on the way: write https://{}",
                    server.host));
  }
  return server;
}

}  // namespace gpu_platform::http
