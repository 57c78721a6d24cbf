#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

// The address of a daemon, and how it authenticates the caller.

namespace gpu_platform::http {

// Files in PEM form; empty: none.
struct TlsFiles {
  std::string authorities;  // of these alone a server's certificate may be; empty: the system's
  std::string certificate;  // of the caller, with its chain
  std::string key;          // of that certificate

  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

struct Server {
  enum class Kind : std::uint8_t {
    kSocket,  // a Unix socket: the daemon sees the caller
    kPlain,   // TCP without TLS, to this machine alone
    kTls,
  };

  Kind kind = Kind::kSocket;
  std::string path;  // of the socket
  std::string host;  // a name or an address; IPv6 without brackets
  std::string port;
  TlsFiles tls;
  std::string token;  // goes into no URL, message or log

  bool is_network() const { return kind != Kind::kSocket; }
  // "host:8443", as in a Host header.
  std::string authority() const;
  // As parse_server() reads it; without the token.
  std::string text() const;

  friend bool operator==(const Server&, const Server&) = default;
};

// "unix:PATH", "https://HOST[:PORT]" or "http://HOST[:PORT]", the last for this machine's own
// address alone. The error says what is wrong and repeats no secret.
base::Result<Server> parse_server(std::string_view text);

// Whether the text looks like an address, not like the name of a profile.
bool is_address(std::string_view text);

// A token may stand in a header: visible ASCII, neither empty nor endless.
bool is_valid_token(std::string_view token);

}  // namespace gpu_platform::http
