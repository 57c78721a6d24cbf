#include "listener/rest/request.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace gpu_platform::listener {

namespace {

constexpr std::size_t kMaxTarget = 8 * 1024;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

base::Status refuse_target(std::string why) {
  return base::invalid("path", std::move(why));
}

// A segment that is hidden behind an escape is a trick: no client needs to write these so.
bool has_hidden_character(std::string_view path) {
  static constexpr std::array<std::string_view, 4> kHidden = {"%2e", "%2f", "%5c", "%25"};
  const std::string folded = lower(path);
  for (std::size_t at = folded.find('%'); at != std::string::npos; at = folded.find('%', at + 1)) {
    const std::string_view escape = std::string_view(folded).substr(at, 3);
    const bool is_control = escape.size() == 3 && (escape[1] == '0' || escape[1] == '1');
    if (is_control || escape == "%7f" || std::ranges::find(kHidden, escape) != kHidden.end()) {
      return true;
    }
  }
  return false;
}

bool has_odd_segment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the '/'
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    if (segment == "." || segment == ".." || (segment.empty() && !path.empty())) return true;
  }
  return false;
}

// Addresses end up in logs, histories and bookmarks.
bool has_credential(std::string_view query) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "access_token",  "token",   "bearer", "bearer_token",
      "authorization", "api_key", "apikey", "id_token"};
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    const std::string name = lower(parameter.substr(0, parameter.find('=')));
    if (std::ranges::find(kNames, std::string_view(name)) != kNames.end()) return true;
  }
  return false;
}

}  // namespace

bool is_own_origin(const Request& request) {
  const std::string_view scheme = request.is_over_tls ? "https://" : "http://";
  return !request.authority.empty() && request.origin.starts_with(scheme) &&
         std::string_view(request.origin).substr(scheme.size()) == request.authority;
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

base::Status check_target(std::string_view target) {
  if (target.size() > kMaxTarget) {
    return refuse_target(fmt::format("the request's target is longer than {} bytes", kMaxTarget));
  }
  if (!target.starts_with('/')) {
    return refuse_target("the request's target must be a path that begins with '/'");
  }
  const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f || c == '\\' || c == '#'; };
  if (std::ranges::any_of(target, is_odd)) {
    return refuse_target("the request's target has a character that must be escaped");
  }
  const std::string_view path = path_of(target);
  if (has_hidden_character(path) || has_odd_segment(path)) {
    return refuse_target("the path has empty, dotted or hidden segments");
  }
  if (path.size() < target.size() && has_credential(target.substr(path.size() + 1))) {
    return base::invalid(
        "authorization",
        "a credential does not belong into a URL, where logs and histories keep "
        "it: send the header 'Authorization: Bearer TOKEN', and revoke this token");
  }
  return {};
}

base::Result<std::string> bearer_in(std::string_view authorization) {
  const std::size_t space = authorization.find(' ');
  const bool is_bearer =
      space != std::string_view::npos && lower(authorization.substr(0, space)) == "bearer";
  const std::string_view secret = is_bearer ? authorization.substr(space + 1) : std::string_view();
  const bool is_sound = std::ranges::all_of(secret, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!secret.empty() && is_sound) return std::string(secret);
  return base::fail(base::ErrorCode::kUnauthenticated,
                    "the header Authorization must be 'Bearer TOKEN'", "authorization");
}

std::string host_name_of(std::string_view host) {
  std::string_view name = host;
  if (name.starts_with('[')) {
    const std::size_t end = name.find(']');
    if (end == std::string_view::npos) return {};
    name = name.substr(0, end + 1);
  } else {
    name = name.substr(0, name.find(':'));
  }
  std::string_view port = host.substr(name.size());
  if (!port.empty()) {
    port.remove_prefix(1);
    const bool is_number = !port.empty() && port.size() <= 5 &&
                           std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
    if (host[name.size()] != ':' || !is_number) return {};
  }
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == ':' || c == '[' || c == ']';
  };
  if (name.size() > 255 || !std::ranges::all_of(name, is_of_name)) return {};
  return lower(name);
}

std::string head_for_daemon(const Request& request) {
  std::string head;
  auto into = std::back_inserter(head);
  fmt::format_to(into, "{} {} HTTP/1.1\r\nHost: localhost\r\n", request.method, request.target);
  for (const auto& [name, value] : request.fields) fmt::format_to(into, "{}: {}\r\n", name, value);
  if (request.wants_websocket) head += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  if (!request.body.empty()) fmt::format_to(into, "Content-Length: {}\r\n", request.body.size());
  head += "\r\n";
  return head;
}

}  // namespace gpu_platform::listener
