#include "api/convert/problem.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/text_forms.h"

namespace gpu_platform::api {

namespace {

struct CodeEntry {
  base::ErrorCode code;
  int http_status;
  int exit_code;
  std::string_view type;  // last part of the problem's type
};

using base::ErrorCode;

constexpr CodeEntry kCodes[] = {
    {ErrorCode::kInvalidArgument, 400, 2, "invalid-argument"},
    {ErrorCode::kUnauthenticated, 401, 4, "unauthenticated"},
    {ErrorCode::kPermissionDenied, 403, 4, "permission-denied"},
    {ErrorCode::kNotFound, 404, 3, "not-found"},
    {ErrorCode::kFailedPrecondition, 409, 4, "failed-precondition"},
    {ErrorCode::kAlreadyExists, 409, 4, "already-exists"},
    {ErrorCode::kResourceExhausted, 429, 4, "resource-exhausted"},
    {ErrorCode::kUnavailable, 503, 5, "unavailable"},
    {ErrorCode::kDataLoss, 500, 1, "data-loss"},
    {ErrorCode::kInternal, 500, 1, "internal"},
};

const CodeEntry& entry(ErrorCode code) {
  for (const CodeEntry& candidate : kCodes) {
    if (candidate.code == code) return candidate;
  }
  return kCodes[std::size(kCodes) - 1];
}

std::string text_of(const nlohmann::json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

int http_status(ErrorCode code) {
  return entry(code).http_status;
}

int exit_code(ErrorCode code) {
  return entry(code).exit_code;
}

std::string_view status_title(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

Problem to_problem(base::Error error, std::string request_id) {
  const int status = http_status(error.code);
  return {status, std::move(error), std::move(request_id)};
}

std::string to_json(const Problem& problem) {
  std::string out =
      fmt::format(R"({{"type":"urn:gpu-platform:problem:{}","title":"{}","status":{})",
                  entry(problem.error.code).type, status_title(problem.status), problem.status);
  out += R"(,"detail":)";
  append_json_string(out, problem.error.message);
  out += fmt::format(R"(,"code":"{}","field":)", base::to_string(problem.error.code));
  if (problem.error.field.empty()) {
    out += "null";
  } else {
    append_json_string(out, problem.error.field);
  }
  out += R"(,"request_id":)";
  append_json_string(out, problem.request_id);
  out.push_back('}');
  return out;
}

namespace {

// Of what stands between us and a daemon, these mean the same as from the daemon; a 404, say, does
// not.
ErrorCode code_without_document(int status) {
  switch (status) {
    case 401:
      return ErrorCode::kUnauthenticated;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 429:
      return ErrorCode::kResourceExhausted;
    case 503:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Problem read_problem(int status, std::string_view body) {
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  if (document.is_object()) {
    const std::string code = text_of(document, "code");
    for (const CodeEntry& candidate : kCodes) {
      if (base::to_string(candidate.code) != code) continue;
      return {status,
              {candidate.code, text_of(document, "detail"), text_of(document, "field")},
              text_of(document, "request_id")};
    }
  }
  return {status,
          {code_without_document(status),
           fmt::format("the server answered {} {}", status, status_title(status)),
           {}},
          {}};
}

base::Error to_error(int status, std::string_view body) {
  return read_problem(status, body).error;
}

}  // namespace gpu_platform::api
