#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpu_platform::config {

// The address on which an interface listens.
struct ListenAddress {
  std::string host;  // numeric; IPv6 without brackets
  std::uint16_t port = 0;
  bool is_loopback = false;

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// Reads "127.0.0.1:8080" or "[::]:8443". The port is not 0. What stands in brackets is IPv6 only in
// form: the system judges it when it is opened.
std::optional<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace gpu_platform::config
