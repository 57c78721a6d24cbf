#include "config/listen_address.h"

#include <algorithm>

#include "base/parse.h"

namespace gpu_platform::config {

namespace {

bool is_ipv4(std::string_view host) {
  int parts = 0;
  while (true) {
    const std::string_view part = host.substr(0, host.find('.'));
    const bool has_zeros = part.size() > 1 && part.front() == '0';
    if (has_zeros || !base::parse_count(part, 0, 255)) return false;
    ++parts;
    if (part.size() == host.size()) return parts == 4;
    host.remove_prefix(part.size() + 1);
  }
}

bool is_like_ipv6(std::string_view host) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF:.";
  return host.find(':') != std::string_view::npos &&
         host.find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = base::parse_count(text.substr(colon + 1), 1, 65'535);
  if (!port) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  ListenAddress address;
  address.port = static_cast<std::uint16_t>(*port);
  if (host.size() > 2 && host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!is_like_ipv6(host)) return std::nullopt;
    address.is_loopback = host == "::1";
  } else {
    if (!is_ipv4(host)) return std::nullopt;
    address.is_loopback = host.starts_with("127.");
  }
  address.host = host;
  return address;
}

}  // namespace gpu_platform::config
