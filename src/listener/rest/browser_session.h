#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "listener/rest/policy.h"
#include "listener/rest/request.h"

// Sessions of web pages that this server shows itself. The browser keeps the token in a cookie that
// no script reads and no other site sends (docs/security.md, "Sessions of browsers").

namespace gpu_platform::listener {

inline constexpr std::string_view kSessionPath = "/v1/session";

// Returns the session's token in the text of a field "Cookie"; empty: there is none, or two.
std::string session_of(std::string_view cookies);

// Gives a request that has the cookie and no other credential the token in it. Returns a refusal if
// a page of another site may have sent it.
std::optional<Refusal> enter_session(Request& request, const Policy& policy);

// A request that begins a session becomes the question who its caller is. False: it begins none.
bool begin_session(Request& request);

using AnswerFields = std::vector<std::pair<std::string, std::string>>;
// What an answer 200 to that question gets: the browser keeps the token until it is closed.
AnswerFields session_fields(const Request& request);

// The answer to a request that ends a session; nothing for all others.
std::optional<OwnAnswer> end_session(const Request& request);

}  // namespace gpu_platform::listener
