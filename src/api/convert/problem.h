#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

// Errors of the API. This is the one place that gives an ErrorCode its HTTP status and its exit
// code, and that writes and reads problem documents (RFC 9457).

namespace gpu_platform::api {

int http_status(base::ErrorCode code);
// Returns the exit code of the command line: 1 failure, 2 usage, 3 not found, 4 refused, 5 no
// daemon.
int exit_code(base::ErrorCode code);

// "Bad Request"; "Unknown" for a status that we never send.
std::string_view status_title(int status);

struct Problem {
  int status = 500;
  base::Error error;
  std::string request_id;  // the server's name for the request, to be found in its log
};

Problem to_problem(base::Error error, std::string request_id);

// {"type","title","status","detail","code","field","request_id"}; the media type is
// application/problem+json.
std::string to_json(const Problem& problem);

// Returns the problem document of an answer without success, with its status. Text that is none is
// the error of to_error() without a request id.
Problem read_problem(int status, std::string_view body);

// Returns the error that a client reads from an answer without success. Text that is not a problem
// document of ours has the status in its message; its code is kInternal, but for 401, 403, 429 and
// 503.
base::Error to_error(int status, std::string_view body);

}  // namespace gpu_platform::api
