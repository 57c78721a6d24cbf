#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

// Errors at the door: the one place that gives an ErrorCode its HTTP status and its exit code, and
// that writes and reads problem documents (RFC 9457).

namespace gpu_platform::api {

int http_status(base::ErrorCode code);
// Of the command line: 1 failure, 2 usage, 3 not found, 4 refused, 5 no daemon.
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

// What a client makes of an answer that is no success. Text that is no problem document of ours
// becomes kInternal (kUnavailable for 503) with the status in its message.
base::Error to_error(int status, std::string_view body);

}  // namespace gpu_platform::api
