#include "kubernetes/endpoint.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/exec_plugin.h"
#include "libcurl/library.h"

namespace gpu_platform::kubernetes {
namespace {

using base::Result;

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (libcurl::curl().url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  libcurl::curl().free(text);
  return copy;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

bool has_credentials(const UserAccess& user) {
  return !user.token.empty() || !user.token_file.empty() || !user.exec.command.empty();
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

std::unexpected<base::Error> wrong(const ClusterAccess& access, std::string key,
                                   std::string_view what) {
  return base::invalid(key, fmt::format("{}: {}: {}", access.origin, key, what));
}

}  // namespace

Result<Endpoint> endpoint_of(const ClusterAccess& access) {
  TRY(libcurl::load());
  const Url url(libcurl::curl().url(), libcurl::curl().url_cleanup);
  if (access.server.empty() ||
      libcurl::curl().url_set(url.get(), CURLUPART_URL, access.server.c_str(), 0) != CURLUE_OK) {
    return wrong(access, "server", "must be an address such as https://10.0.0.1:6443");
  }
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  const std::string host = part_of(url, CURLUPART_HOST);
  const std::string port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (scheme != "https" && scheme != "http") {
    return wrong(access, "server", "must begin with https:// or http://");
  }
  if (scheme == "http" && has_credentials(access.user) && !is_this_machine(host)) {
    return wrong(access, "server",
                 "is http, by which others could read the user's credentials; use https");
  }
  if (!access.user.token.empty() && !is_token(access.user.token)) {
    return wrong(access, "token", "has characters that no token has");
  }
  Endpoint endpoint;
  endpoint.ca_pem = access.ca_pem;
  endpoint.skips_verification = access.skips_tls_verification;
  endpoint.proxy_url = access.proxy_url;
  std::string path = part_of(url, CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  std::string shown_host = host;
  if (scheme == "https" && !access.tls_server_name.empty()) {
    // libcurl takes the name that it checks from the URL alone, so the URL has that name, and the
    // connection goes where the server is.
    shown_host = access.tls_server_name;
    endpoint.connect_to = fmt::format("{}:{}:{}:{}", shown_host, port, host, port);
    endpoint.host_header = fmt::format("{}:{}", host, port);
  }
  endpoint.is_tls = scheme == "https";
  endpoint.host = without_brackets(host);
  endpoint.port = port;
  endpoint.authority = fmt::format("{}:{}", host, port);
  endpoint.path = path;
  endpoint.checked_name = without_brackets(shown_host);
  endpoint.base_url = fmt::format("{}://{}:{}{}", scheme, shown_host, port, path);
  if (libcurl::curl().url_set(url.get(), CURLUPART_URL, endpoint.base_url.c_str(), 0) !=
      CURLUE_OK) {
    return wrong(access, "tls-server-name", "must be a host's name");
  }
  return endpoint;
}

}  // namespace gpu_platform::kubernetes
