#include "kubernetes/testing/api_request.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpu_platform::kubernetes {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
        hex_value(text[i + 2]) >= 0) {
      decoded += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string_view reason_of(int code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "InternalError";
  }
}

}  // namespace

std::optional<ApiPath> parse_api_path(std::string_view path) {
  std::vector<std::string> parts = split(path, '/');
  ApiPath parsed;
  std::size_t next = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    parsed.version = parts[1];
    next = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    parsed.group = parts[1];
    parsed.version = parts[2];
    next = 3;
  } else {
    return std::nullopt;
  }
  // A namespace is an object, too: "/api/v1/namespaces/NAME/status".
  const bool is_namespaced = parts[next] == "namespaces" && parts.size() >= next + 3 &&
                             parts[next + 2] != "status" && parts[next + 2] != "finalize";
  if (is_namespaced) {
    parsed.namespace_name = parts[next + 1];
    next += 2;
  }
  parsed.resource = parts[next++];
  if (next < parts.size()) parsed.name = parts[next++];
  if (next < parts.size()) parsed.subresource = parts[next++];
  if (next < parts.size()) return std::nullopt;
  return parsed;
}

std::string ApiRequest::asked(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

bool ApiRequest::is_asked(const std::string& key) const {
  const std::string value = asked(key);
  return value == "1" || value == "true";
}

ApiRequest make_api_request(std::string method, std::string_view target) {
  ApiRequest request;
  request.method = std::move(method);
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = decode(target.substr(0, mark));
  for (const std::string& pair : split(target.substr(std::min(mark + 1, target.size())), '&')) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    request.query[decode(pair.substr(0, equals))] =
        decode(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
  }
  return request;
}

ApiAnswer json_answer(int status, const nlohmann::json& body) {
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

nlohmann::json status_object(const ApiError& error) {
  nlohmann::json status = {
      {"kind", "Status"},
      {"apiVersion", "v1"},
      {"metadata", nlohmann::json::object()},
      {"status", "Failure"},
      {"message", error.message},
      {"reason", error.reason.empty() ? std::string(reason_of(error.code)) : error.reason},
      {"code", error.code}};
  if (!error.name.empty()) status["details"]["name"] = error.name;
  if (!error.kind.empty()) status["details"]["kind"] = error.kind;
  return status;
}

ApiAnswer error_answer(const ApiError& error) {
  return json_answer(error.code, status_object(error));
}

ApiAnswer success_answer(int code) {
  return json_answer(code, {{"kind", "Status"},
                            {"apiVersion", "v1"},
                            {"metadata", nlohmann::json::object()},
                            {"status", "Success"},
                            {"code", code}});
}

}  // namespace gpu_platform::kubernetes
