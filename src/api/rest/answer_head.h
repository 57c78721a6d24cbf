#pragma once

#include <string>
#include <string_view>

#include "api/rest/exchange.h"

// The heads of answers in HTTP/1.

namespace gpu_platform::api {

// How the body follows, and whether the connection goes on.
struct AnswerForm {
  bool is_chunked = false;
  bool has_length = false;  // the reply's body is all that follows
  bool keeps_alive = true;
  bool is_http_1_0 = false;
};

// Appends the head with the line behind it.
void append_head(std::string& out, const Reply& reply, const AnswerForm& form);

// Marks an answer that is there as a whole with its ETag. If the client has it already by its
// If-None-Match (`known_tags`), the answer says so [304] and loses its body.
void tag_reply(Reply& reply, std::string_view known_tags);

}  // namespace gpu_platform::api
