#include "bin/site_files.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::bin {

namespace {

// The error is the reason alone.
base::Result<std::string> read_file(const std::string& path) {
  errno = 0;
  std::string text = os::read_small_file(AT_FDCWD, path.c_str());
  if (text.empty() && errno != 0) {
    return base::fail(base::ErrorCode::kFailedPrecondition, ::strerrordesc_np(errno));
  }
  return text;
}

}  // namespace

base::Result<config::NetworkPlaces> read_network_places(
    const config::Configuration& configuration) {
  const std::string& path = configuration.network_file.path;
  if (path.empty()) return config::NetworkPlaces();
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file.is_open() || !(text << file.rdbuf())) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        fmt::format("cluster.network_file: {} cannot be read: {}", path, std::strerror(errno)),
        "cluster.network_file");
  }
  auto places = config::parse_network(text.str());
  if (places) return *std::move(places);
  return base::fail(base::ErrorCode::kFailedPrecondition, config::describe(places.error(), path),
                    "cluster.network_file");
}

base::Result<std::unique_ptr<api::WebTokenProver>> read_web_token_keys(
    const config::Configuration& configuration) {
  const std::string path = configuration.openid_keys.path;
  if (path.empty()) return nullptr;
  const auto& words = configuration.openid_algorithms.words;
  api::WebTokenRules rules{configuration.openid_issuer.text,
                           configuration.openid_audience.text,
                           {words.begin(), words.end()},
                           configuration.openid_user_claim.text,
                           configuration.openid_clock_skew};
  const auto read = [path] { return read_file(path); };
  auto made = api::WebTokenProver::make(std::move(rules), read, os::wall_now());
  if (made) return made;
  return base::fail(made.error().code,
                    fmt::format("access.openid.keys: {}: {}", path, made.error().message),
                    "access.openid.keys");
}

base::Status read_authorities(const config::Configuration& configuration,
                              api::CertificateProver& certificates) {
  const std::string& path = configuration.tls_client_ca.path;
  if (path.empty()) return {};
  const auto refuse = [&](std::string_view why) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("api.tls.client_ca: {}: {}", path, why), "api.tls.client_ca");
  };
  const auto text = read_file(path);
  if (!text) return refuse(text.error().message);
  auto authorities = api::ClientAuthorities::from_pem(*text);
  if (!authorities) return refuse(authorities.error().message);
  certificates.trust(*std::move(authorities));
  return {};
}

}  // namespace gpu_platform::bin
