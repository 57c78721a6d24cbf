#include "api/rest/replies.h"

#include "api/convert/json_writer.h"
#include "api/convert/problem.h"

namespace gpu_platform::api {

Reply problem_reply(base::Error error, const std::string& request_id) {
  const int status = http_status(error.code);
  return problem_reply(status, std::move(error), request_id);
}

Reply problem_reply(int status, base::Error error, const std::string& request_id) {
  Reply reply;
  reply.status = status;
  reply.content_type = "application/problem+json";
  if (status == http_status(base::ErrorCode::kUnauthenticated)) {
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  reply.body = to_json(Problem{status, std::move(error), request_id});
  return reply;
}

Reply json_reply(int status, const google::protobuf::Message& message, const Fields& fields) {
  Reply reply;
  reply.status = status;
  reply.body.reserve(1024);
  fields == nullptr ? append_json(reply.body, message)
                    : append_json(reply.body, message, fields->plan());
  return reply;
}

Reply event_stream(std::unique_ptr<BodySource> source) {
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.source = std::move(source);
  return reply;
}

}  // namespace gpu_platform::api
