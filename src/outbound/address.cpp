#include "outbound/address.h"

#include <arpa/inet.h>

#include <memory>

#include <fmt/format.h>

#include "libcurl/library.h"

namespace gpu_platform::outbound {

namespace {

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (libcurl::curl().url_get(url.get(), part, &text, 0) != CURLUE_OK) return {};
  std::string copy = text;
  libcurl::curl().free(text);
  return copy;
}

// By number, or by the name that libcurl resolves without a server.
bool is_loopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

}  // namespace

base::Result<Address> parse_address(const std::string& text) {
  TRY(libcurl::load());
  const Url url(libcurl::curl().url(), libcurl::curl().url_cleanup);
  if (libcurl::curl().url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return base::invalid("url", "must be a URL such as https://alerts.example.org/hook");
  }
  if (!part_of(url, CURLUPART_USER).empty() || !part_of(url, CURLUPART_PASSWORD).empty()) {
    return base::invalid("url", "must have no user and no password; name files with the secrets");
  }
  Address address{.scheme = part_of(url, CURLUPART_SCHEME), .host = part_of(url, CURLUPART_HOST)};
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  address.is_this_machine = is_loopback(address.host);
  return address;
}

base::Result<Address> check_address(const Channel& channel, const std::string& url) {
  TRY_ASSIGN(Address address, parse_address(url));
  if (channel.kind == ChannelKind::kMail) {
    if (address.scheme == "smtp" || address.scheme == "smtps") return address;
    return base::invalid("url", "must begin with smtp:// or smtps://");
  }
  if (address.scheme != "https" && address.scheme != "http") {
    return base::invalid("url", "must begin with https://, or http:// to this machine");
  }
  // By a proxy it leaves the machine whatever the host is.
  const bool stays_here = address.is_this_machine && channel.proxy.empty();
  if (address.scheme == "http" && !stays_here && !channel.allow_plain_text) {
    return base::invalid("url",
                         "is http://, which others can read; use https, or allow_plain_text");
  }
  return address;
}

}  // namespace gpu_platform::outbound
