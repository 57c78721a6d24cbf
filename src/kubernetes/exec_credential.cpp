#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <yaml-cpp/binary.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"
#include "kubernetes/exec_plugin.h"
#include "kubernetes/json_values.h"

namespace gpu_platform::kubernetes {
namespace {

using base::Result;
using nlohmann::json;

// A time that no Instant holds is as good as its first or last one.
std::optional<base::Instant> parse_time(std::string_view text) {
  const auto time = base::parse_unix_time(text);
  if (!time) return std::nullopt;
  constexpr std::int64_t kLast = 9'000'000'000;  // the year 2255, near the end of an Instant
  return base::Instant(std::clamp<std::int64_t>(time->seconds, 1, kLast) * 1'000'000'000);
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string exec_info(const ClusterAccess& access) {
  const ExecPlugin& plugin = access.user.exec;
  json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    json cluster = {{"server", access.server}};
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (!access.proxy_url.empty()) cluster["proxy-url"] = access.proxy_url;
    if (access.skips_tls_verification) cluster["insecure-skip-tls-verify"] = true;
    if (!access.ca_pem.empty()) {
      cluster["certificate-authority-data"] = YAML::EncodeBase64(
          reinterpret_cast<const unsigned char*>(access.ca_pem.data()), access.ca_pem.size());
    }
    info["spec"]["cluster"] = std::move(cluster);
  }
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Credential> parse_exec_credential(std::string_view text, const std::string& api_version) {
  const auto refuse = [](std::string_view why) {
    return base::fail(base::ErrorCode::kUnauthenticated,
                      fmt::format("its output is not an ExecCredential: {}", why));
  };
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return refuse("it is not a JSON object");
  if (text_of(document, "kind") != "ExecCredential") return refuse("its kind is another");
  if (text_of(document, "apiVersion") != api_version) {
    return refuse(fmt::format("its apiVersion is not {}, which the kubeconfig names", api_version));
  }
  const json* status = member(document, "status");
  if (status == nullptr) return refuse("it has no status");
  Credential credential;
  credential.token = text_of(*status, "token");
  credential.certificate_pem = text_of(*status, "clientCertificateData");
  credential.key_pem = text_of(*status, "clientKeyData");
  if (!credential.token.empty() && !is_token(credential.token)) {
    return refuse("its token has characters that no token has");
  }
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return refuse("a certificate and its key belong together");
  }
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return refuse("it has neither a token nor a certificate");
  }
  if (const std::string at(text_of(*status, "expirationTimestamp")); !at.empty()) {
    const auto time = parse_time(at);
    if (!time) return refuse("its expirationTimestamp is not a time such as 2026-01-31T12:00:00Z");
    credential.expires_at = *time;
  }
  return credential;
}

}  // namespace gpu_platform::kubernetes
