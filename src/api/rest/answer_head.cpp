#include "api/rest/answer_head.h"

#include <iterator>

#include <fmt/format.h>

#include "api/convert/problem.h"
#include "base/hash.h"

namespace gpu_platform::api {

namespace {

bool has_body(int status) {
  return status != 204 && status != 304;
}

}  // namespace

void append_head(std::string& out, const Reply& reply, const AnswerForm& form) {
  auto into = std::back_inserter(out);
  fmt::format_to(into, "HTTP/1.1 {} {}\r\n", reply.status, status_title(reply.status));
  if (reply.status != 204) fmt::format_to(into, "Content-Type: {}\r\n", reply.content_type);
  for (const auto& [name, value] : reply.headers) fmt::format_to(into, "{}: {}\r\n", name, value);
  if (form.is_chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (form.has_length && has_body(reply.status)) {
    fmt::format_to(into, "Content-Length: {}\r\n", reply.body.size());
  }
  if (!form.keeps_alive) {
    out += "Connection: close\r\n";
  } else if (form.is_http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void tag_reply(Reply& reply, std::string_view known_tags) {
  const std::string mark = fmt::format("\"{:016x}\"", base::hash64(reply.body));
  if (known_tags == "*" || known_tags.find(mark) != std::string_view::npos) {
    reply.status = 304;
    reply.body.clear();
  }
  reply.headers.emplace_back("ETag", mark);
}

}  // namespace gpu_platform::api
