#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpu_platform::listener {

// A client's request, read and checked: nothing in it can mean two things.
struct Request {
  std::string method;
  std::string target;       // in origin form: "/v1/jobs?limit=2"
  std::string bearer;       // the text behind "Bearer"; empty: no credential
  std::string session;      // the token of a browser's cookie (browser_session.h)
  std::string origin;       // of the web page that calls; empty: none
  std::string authority;    // of this server, as the client names it: "gpu.example:8443"
  std::string fetch_site;   // where a browser says that the request comes from: "same-origin"
  bool is_over_tls = true;  // the connection
  bool wants_websocket = false;
  bool keeps_alive = true;
  bool expects_continue = false;
  bool needs_credential = true;  // false: the call is open to all
  bool asks_for_method = false;  // Access-Control-Request-Method: it may be a preflight
  std::vector<std::pair<std::string, std::string>> fields;  // that the daemon gets
  std::string body;
};

// The answer to a request that does not come as far as the daemon. The connection ends with it.
struct Refusal {
  int status = 400;
  base::Error error;
};

// Whether it asks for the head of an answer alone.
inline bool is_head(const Request& request) {
  return request.method == "HEAD";
}

// Whether the origin is this server, by the scheme of the connection and the name in the request.
bool is_own_origin(const Request& request);

// The path without its query.
std::string_view path_of(std::string_view target);

// Returns why the target is refused: another form than "/path?query", a path with empty or dotted
// segments, however they are written, or a credential in the query.
base::Status check_target(std::string_view target);

// Returns the token in the value of a field Authorization. The error is kUnauthenticated.
base::Result<std::string> bearer_in(std::string_view authorization);

// Returns the host without its port, in lower case; empty: not a host.
std::string host_name_of(std::string_view host);

// Returns the request as the daemon gets it, without the body.
std::string head_for_daemon(const Request& request);

}  // namespace gpu_platform::listener
