#include "listener/rest/policy.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace gpu_platform::listener {

namespace {

constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                      "PATCH", "DELETE", "OPTIONS"};
// The one call that needs no credential: whether the door is open.
constexpr std::string_view kHealth = "/v1/health";

bool is_preflight(const Request& request) {
  return request.method == "OPTIONS" && !request.origin.empty() && request.asks_for_method;
}

bool asks_for_health(const Request& request) {
  return (request.method == "GET" || is_head(request)) && path_of(request.target) == kHealth;
}

Refusal refusal(int status, base::ErrorCode code, std::string why, std::string field = {}) {
  return {status, {code, std::move(why), std::move(field)}};
}

}  // namespace

bool is_from_elsewhere(const Request& request, const Policy& policy) {
  const auto& origins = policy.web_origins;
  if (std::ranges::find(origins, request.origin) != origins.end()) return false;
  // What says nothing is no browser of today; "none" is a person who typed the address.
  return !request.fetch_site.empty() && request.fetch_site != "same-origin" &&
         request.fetch_site != "none";
}

std::optional<Refusal> judge(const Request& request, const std::string& host, const Policy& policy,
                             bool has_certificate) {
  const auto& hosts = policy.host_names;
  if (!hosts.empty() && std::ranges::find(hosts, host) == hosts.end()) {
    return refusal(421, base::ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is not a name of this server (api.rest.host_names)", host),
                   "host");
  }
  if (std::ranges::find(kMethods, std::string_view(request.method)) == kMethods.end()) {
    return refusal(405, base::ErrorCode::kInvalidArgument,
                   fmt::format("the methods are {}", known_methods()), "method");
  }
  const auto& origins = policy.web_origins;
  const bool is_known_origin = request.origin.empty() || is_own_origin(request) ||
                               std::ranges::find(origins, request.origin) != origins.end();
  if (!is_known_origin) {
    return refusal(403, base::ErrorCode::kPermissionDenied,
                   "web pages of this origin may not call (api.rest.allowed_origins)", "origin");
  }
  if (has_certificate && request.bearer.empty() && is_from_elsewhere(request, policy)) {
    return refusal(403, base::ErrorCode::kPermissionDenied,
                   "a certificate is not accepted for requests that pages of other sites cause "
                   "(Sec-Fetch-Site; api.rest.allowed_origins)",
                   "origin");
  }
  const bool has_credential = has_certificate || !request.bearer.empty();
  const bool is_open = !request.needs_credential || asks_for_health(request);
  if (!has_credential && !is_preflight(request) && !is_open) {
    return refusal(401, base::ErrorCode::kUnauthenticated,
                   "a credential is required: send the header 'Authorization: Bearer TOKEN'",
                   "authorization");
  }
  return std::nullopt;
}

std::optional<OwnAnswer> own_answer(const Request& request) {
  if (is_preflight(request)) {
    return OwnAnswer{204,
                     {},
                     {},
                     {{"Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE"},
                      {"Access-Control-Allow-Headers",
                       "Authorization, Content-Type, Last-Event-ID, If-None-Match, "
                       "Idempotency-Key, X-Request-Id"},
                      {"Access-Control-Max-Age", "600"}}};
  }
  if (request.bearer.empty() && asks_for_health(request)) {
    return OwnAnswer{200, "application/json", R"({"status":"ok","uptime_seconds":null})", {}};
  }
  return std::nullopt;
}

std::string known_methods() {
  return fmt::format("{}", fmt::join(kMethods, ", "));
}

std::vector<std::pair<std::string, std::string>> fields_for(const Request& request) {
  std::vector<std::pair<std::string, std::string>> fields = {{"X-Content-Type-Options", "nosniff"}};
  if (!request.origin.empty()) {
    fields.emplace_back("Access-Control-Allow-Origin", request.origin);
    fields.emplace_back("Vary", "Origin");
  }
  return fields;
}

}  // namespace gpu_platform::listener
