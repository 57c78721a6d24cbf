#include "listener/rest/browser_session.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpu_platform::listener {

namespace {

// The prefix has the browser take it over TLS alone, for this host alone and for all of its paths.
constexpr std::string_view kCookie = "__Host-gpu-platform";
constexpr std::string_view kRules = "Path=/; Secure; HttpOnly; SameSite=Strict";

bool is_of_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '~';
}

// Browsers say where a request comes from; what says nothing is no browser of today.
bool is_from_own_page(const Request& request, const Policy& policy) {
  if (is_from_elsewhere(request, policy)) return false;
  const auto& origins = policy.web_origins;
  const bool is_allowed = std::ranges::find(origins, request.origin) != origins.end();
  const bool says_own = request.origin.empty() && request.fetch_site == "same-origin";
  return says_own || is_own_origin(request) || is_allowed;
}

}  // namespace

std::string session_of(std::string_view cookies) {
  std::string found;
  int count = 0;
  while (!cookies.empty()) {
    std::string_view pair = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), pair.size() + 1));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != kCookie) continue;
    found = pair.substr(equals + 1);
    ++count;
  }
  return count == 1 && std::ranges::all_of(found, is_of_token) ? found : std::string();
}

std::optional<Refusal> enter_session(Request& request, const Policy& policy) {
  if (request.session.empty() || !request.bearer.empty()) return std::nullopt;
  const bool only_reads = (request.method == "GET" || is_head(request)) && !request.wants_websocket;
  const bool is_typed = request.fetch_site.empty() || request.fetch_site == "none";
  if (is_from_own_page(request, policy) || (only_reads && request.origin.empty() && is_typed)) {
    request.bearer = request.session;
    return std::nullopt;
  }
  return Refusal{
      403,
      {base::ErrorCode::kPermissionDenied,
       "the session of a browser is valid only for requests of this server's own pages", "origin"}};
}

bool begin_session(Request& request) {
  if (request.method != "POST" || path_of(request.target) != kSessionPath) return false;
  request.method = "GET";
  request.target = "/v1/whoami";
  std::erase_if(request.fields, [](const auto& field) { return field.first == "Content-Type"; });
  request.body.clear();
  return true;
}

AnswerFields session_fields(const Request& request) {
  if (request.bearer.empty() || !std::ranges::all_of(request.bearer, is_of_token)) return {};
  return {{"Set-Cookie", fmt::format("{}={}; {}", kCookie, request.bearer, kRules)},
          {"Cache-Control", "no-store"}};
}

std::optional<OwnAnswer> end_session(const Request& request) {
  if (path_of(request.target) != kSessionPath) return std::nullopt;
  if (request.method == "OPTIONS")
    return OwnAnswer{204, {}, {}, {{"Allow", "POST, DELETE, OPTIONS"}}};
  if (request.method != "DELETE") return std::nullopt;
  return OwnAnswer{
      204, {}, {}, {{"Set-Cookie", fmt::format("{}=; Max-Age=0; {}", kCookie, kRules)}}};
}

}  // namespace gpu_platform::listener
